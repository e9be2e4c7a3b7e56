"""Tokenised text, made once for each text and tokenisation.

It is used again after a change of the vocabularies, of the filters or of the cap on length.
"""

from __future__ import annotations

import importlib.metadata
import logging
import re
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import datasets
import numpy as np

from nmt.config import DataConfig, TextConfig, TokenizerConfig
from nmt.data.cache import Facts, build_once, map_rows
from nmt.data.sources import SIDES, digest, open_source
from nmt.data.tokenise import LANGUAGES, UNSPACED, split, tokeniser
from nmt.utils.errors import InputError

log = logging.getLogger(__name__)

FORMAT = 3
EXAMINED = 2_000  # rows in which marks of other tools and text without spaces are looked for

COLUMNS = {
    "line": "int64",
    **dict.fromkeys(SIDES, "string"),
    **{f"{side}_words": "int32" for side in SIDES},
    "alignment": "string",
}
HELD_OUT_COLUMNS = COLUMNS | {"target_text": "string"}

# Marks of other tools in tokenised text, and what they are.
MARKS = {
    r"&(?:apos|quot|amp|lt|gt|#124|#91|#93);": "XML escapes of Moses' tokenizer.perl",
    r"\S@@(?: |$)": "subwords of subword-nmt",
    "▁": "subwords of SentencePiece",
    "￭": "joiners of OpenNMT's tokenizer",
}


class Text(NamedTuple):
    """A tokenised text.

    Attributes:
        rows: columns `line` (number in the source, from 0), `source` and `target` (tokens joined by
            spaces), `source_words` and `target_words` (their numbers), `alignment`, and, but for
            training text, `target_text` (raw).
        lines: rows of the source, including those that were left out because a side has no words.
        fingerprint: changes when a row could.
    """

    rows: datasets.Dataset
    lines: int
    fingerprint: str


def tokenise_text(text: TextConfig, data: DataConfig, key: str, tokenizer: TokenizerConfig) -> Text:
    """The tokenised text of a section of the configuration, from the cache or made now.

    Args:
        text: the section.
        data: the whole section `data`, for languages and cache.
        key: name of the section, such as `data.test.mine`.
        tokenizer: how raw text becomes tokens.

    Raises:
        InputError: if the text is empty or cannot be read.
    """
    source = open_source(text, data, key)
    columns = COLUMNS if key == "data.train" else HELD_OUT_COLUMNS
    options: dict[str, Any] = {
        "languages": list(data.languages),
        "tokenised": text.tokenised or text.grammar is not None,
        "normalise": tokenizer.normalise,
        "characters": tokenizer.characters,
        "first": text.skip or 0,
        "columns": list(columns),
    }
    version = importlib.metadata.version("sacremoses")
    fingerprint = digest(FORMAT, source.identity, version, options)

    def build(folder: Path) -> Facts:
        log.info("preparing %s", key)
        scratch = folder / "scratch"
        scratch.mkdir()
        raw = source.read(scratch)
        if not len(raw):
            raise InputError(f"{key}: empty corpus; give at least one pair of sentences")
        features = datasets.Features({n: datasets.Value(kind) for n, kind in columns.items()})
        file, arguments = folder / "text.arrow", {"with_indices": True, "fn_kwargs": options}
        rows = map_rows(raw, _tokenise, features, file, fingerprint, **arguments)
        if not len(rows):
            raise InputError(f"{key}: empty corpus; none of {len(raw)} pairs has words")
        _warn(rows, key, data.languages, options["tokenised"])
        if "target_text" in columns and len(rows) < len(raw):
            empty = np.setdiff1d(np.arange(len(raw)) + options["first"], rows["line"]) + 1
            listed = ", ".join(map(str, empty[:5])) + (", …" if len(empty) > 5 else "")
            log.warning("%s: pairs with an empty side are left out: line %s", key, listed)
        shutil.rmtree(scratch)
        return {"lines": len(raw)}

    rows, facts = build_once(Path(data.cache), f"text-{fingerprint}", build)
    return Text(rows, facts["lines"], fingerprint)


def _tokenise(
    rows: dict[str, list[Any]],
    numbers: list[int],
    languages: list[str],
    tokenised: bool,
    normalise: bool,
    characters: bool,
    first: int,
    columns: list[str],
) -> dict[str, list[Any]]:
    """Tokenises a batch of rows, whose numbers in the source start at `first`.

    Rows with an empty side are left out.
    """
    tools = [tokeniser(language, normalise, characters) for language in languages]
    result = []
    alignments = rows.get("alignment", [None] * len(numbers))
    for number, *texts, alignment in zip(
        numbers, rows["source"], rows["target"], alignments, strict=True
    ):
        texts = [text or "" for text in texts]
        if tokenised:
            sides = [split(text) for text in texts]
        else:
            sides = [tool.tokenise(text) for tool, text in zip(tools, texts, strict=True)]
        if all(sides):
            detokenised = tokenised and "target_text" in columns
            text = tools[1].detokenise(sides[1]) if detokenised else texts[1]
            words = [" ".join(side) for side in sides]
            result.append((first + number, *words, *map(len, sides), alignment, text))
    return {name: [row[place] for row in result] for place, name in enumerate(columns)}


def _warn(rows: datasets.Dataset, key: str, languages: list[str], tokenised: bool) -> None:
    """Logs what makes tokens something else than words, from the first rows of a text."""
    sample = rows[:EXAMINED]
    for language, name in zip(languages, SIDES, strict=True):
        where, text = f"{key} ({name})", "\n".join(sample[name])
        if not tokenised and language not in LANGUAGES:
            log.warning("%s: Moses has no rules for %r; those of English are used", where, language)
        for pattern, what in MARKS.items():
            if tokenised and (marks := re.findall(pattern, text, re.MULTILINE)):
                log.warning("%s: holds %s (%s); undo them first", where, marks[0].strip(), what)
        # A word of these scripts has two to four characters, a sentence several words.
        letters = len(re.findall(f"[{UNSPACED}]", text))
        tokens = len(re.findall(f"[{UNSPACED}]+", text))
        if letters > 5 * tokens:
            log.warning(
                "%s: few spaces between words, so that clauses count as words (buckets,"
                " data.max_length); type tokenizer.characters=true to count characters, or"
                " tokenizer=bpe",
                where,
            )
