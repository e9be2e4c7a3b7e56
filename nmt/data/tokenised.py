"""Tokenised corpora on disk: one memory-mapped Arrow folder each.

A folder depends on the text and the tokenisation alone, and is used again after a change of the
vocabularies, of the filters or of the cap on length.
"""

from __future__ import annotations

import importlib.metadata
import json
import logging
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import numpy as np

from nmt.config import DataConfig, TextConfig, TokenizerConfig
from nmt.data.cache import build_once
from nmt.data.sources import PART, Corpus, Row, digest, open_corpus
from nmt.data.tokenise import LANGUAGES, UNSPACED, split, tokeniser
from nmt.utils.errors import InputError
from nmt.utils.threads import shared_cores

log = logging.getLogger(__name__)

FORMAT = 2
PARALLEL_FROM = 20_000  # rows below which starting processes costs more than it saves
EXAMINED = 2_000  # rows in which marks of other tools and text without spaces are looked for

RAW = datasets.Features({name: datasets.Value("string") for name in Row._fields})
TOKENISED = datasets.Features(
    {
        "line": datasets.Value("int64"),
        "source": datasets.Value("string"),
        "target": datasets.Value("string"),
        "source_words": datasets.Value("int32"),
        "target_words": datasets.Value("int32"),
        "alignment": datasets.Value("string"),
    }
)
TEXTS = {name: datasets.Value("string") for name in ("source_text", "target_text")}

# Marks of other tools in tokenised text, and what they are.
MARKS = {
    r"&(?:apos|quot|amp|lt|gt|#124|#91|#93);": "XML escapes of Moses' tokenizer.perl",
    r"\S@@(?: |$)": "subwords of subword-nmt",
    "▁": "subwords of SentencePiece",
    "￭": "joiners of OpenNMT's tokenizer",
}


@dataclass(frozen=True)
class TokenisedText:
    """A tokenised corpus.

    Attributes:
        rows: columns `line` (number in the source, from 0), `source` and `target` (tokens joined by
            spaces), `source_words` and `target_words` (their numbers), `alignment`, and, but for
            training text, `source_text` and `target_text` (raw).
        fingerprint: changes when a row could.
        lines: rows of the corpus, including those that were left out because a side has no words.
    """

    rows: datasets.Dataset
    fingerprint: str
    lines: int


def tokenise_text(
    text: TextConfig, data: DataConfig, key: str, tokenizer: TokenizerConfig
) -> TokenisedText:
    """The tokenised text of a section of the configuration, from the cache or made now.

    Args:
        text: the section.
        data: the whole section `data`, for languages and cache.
        key: name of the section, such as `data.test.mine`.
        tokenizer: how raw text becomes tokens.

    Raises:
        InputError: if the text is empty or cannot be read.
    """
    split = {"data.train": "train", "data.valid": "valid"}.get(key, "test")
    corpus = open_corpus(text, data, key, split)
    keep_raw = split != "train"
    # fmt: off
    tokenise = _Tokenise(
        list(data.languages), tokenizer.normalise, tokenizer.characters, corpus.tokenised, keep_raw,
        corpus.first,
    )
    # fmt: on
    version = importlib.metadata.version("sacremoses")
    fingerprint = digest(FORMAT, corpus.identity, version, *vars(tokenise).values())

    def build(folder: Path) -> None:
        log.info("preparing %s", key)
        scratch = folder / "scratch"
        lines = _read(corpus, scratch)
        features = datasets.Features({**TOKENISED, **TEXTS}) if keep_raw else TOKENISED
        rows = map_rows(
            lines, tokenise, features, folder / "text.arrow", fingerprint, with_indices=True
        )
        if not len(rows):
            raise InputError(f"{key}: empty corpus; none of {len(lines)} pairs has words")
        _warn(rows, corpus, data.languages)
        if keep_raw and len(rows) < len(lines):
            numbers = np.arange(corpus.first, corpus.first + len(lines))
            empty = np.setdiff1d(numbers, rows.data.column("line").to_numpy()) + 1
            listed = ", ".join(map(str, empty[:5])) + (", …" if len(empty) > 5 else "")
            log.warning("%s: pairs with an empty side are left out: line %s", key, listed)
        (folder / "text.json").write_text(json.dumps({"lines": len(lines)}))
        del rows, lines
        shutil.rmtree(scratch)

    folder = build_once(Path(data.cache), f"text-{fingerprint}", build)
    lines = json.loads((folder / "text.json").read_text())["lines"]
    return TokenisedText(open_arrow(folder), fingerprint, lines)


def map_rows(
    rows: datasets.Dataset,
    function: Callable[..., dict[str, list[Any]]],
    features: datasets.Features,
    file: Path,
    fingerprint: str,
    **options: Any,
) -> datasets.Dataset:
    """`rows.map` from batches of rows to new columns, in a file and on all cores."""
    return rows.map(
        function,
        batched=True,
        remove_columns=rows.column_names,
        features=features,
        num_proc=processes(len(rows)),
        cache_file_name=str(file),
        new_fingerprint=fingerprint,
        **options,
    )


def processes(rows: int) -> int | None:
    """Number of processes for so many rows: one per core, or None if one process is faster."""
    cores = shared_cores()
    return cores if rows >= PARALLEL_FROM and cores > 1 else None


def open_arrow(folder: Path) -> datasets.Dataset:
    """The Arrow files of a folder, memory-mapped, in the order of their names."""
    files = sorted(folder.glob("*.arrow"))
    return datasets.concatenate_datasets([datasets.Dataset.from_file(str(file)) for file in files])


def _read(corpus: Corpus, scratch: Path) -> datasets.Dataset:
    """All rows of a corpus as an Arrow table in `scratch`."""
    if next(iter(corpus), None) is None:
        raise InputError(f"{corpus.key}: empty corpus; give at least one pair of sentences")
    parts = list(corpus.parts)
    workers = processes(PART * len(parts))
    try:
        return datasets.Dataset.from_generator(
            _rows,
            features=RAW,
            cache_dir=str(scratch),
            gen_kwargs={"parts": parts},
            num_proc=workers and min(workers, len(parts)),
            fingerprint=corpus.identity,
        )
    except Exception as error:
        cause: BaseException | None = error  # the library wraps errors in its own
        while cause is not None and not isinstance(cause, InputError | OSError):
            cause = cause.__cause__ or cause.__context__
        raise cause or error from None


def _rows(parts: list[Callable[[], Iterator[Row]]]) -> Iterator[dict[str, Any]]:
    for part in parts:
        for row in part():
            yield row._asdict()


@dataclass(frozen=True)
class _Tokenise:
    """Tokenises a batch of rows; rows with an empty side are left out."""

    languages: list[str]
    normalise: bool
    characters: bool
    tokenised: bool
    keep_raw: bool
    first: int

    def __call__(self, rows: dict[str, list[Any]], numbers: list[int]) -> dict[str, list[Any]]:
        tools = [tokeniser(name, self.normalise, self.characters) for name in self.languages]
        result: dict[str, list[Any]] = {name: [] for name in (*TOKENISED, *TEXTS)}
        columns = (numbers, rows["source"], rows["target"], rows["alignment"])
        for number, *texts, alignment in zip(*columns, strict=True):
            if self.tokenised:
                sides = [split(text) for text in texts]
            else:
                sides = [tool.tokenise(text) for tool, text in zip(tools, texts, strict=True)]
            if not all(sides):
                continue
            result["line"].append(self.first + number)
            result["alignment"].append(alignment)
            for name, tool, text, tokens in zip(
                ("source", "target"), tools, texts, sides, strict=True
            ):
                result[name].append(" ".join(tokens))
                result[f"{name}_words"].append(len(tokens))
                if self.keep_raw:
                    raw = tool.detokenise(tokens) if self.tokenised else text
                    result[f"{name}_text"].append(raw)
        return {
            name: column for name, column in result.items() if self.keep_raw or name in TOKENISED
        }


def _warn(rows: datasets.Dataset, corpus: Corpus, languages: list[str]) -> None:
    """Logs what makes tokens something else than words, from the first rows of a text."""
    sample = rows[:EXAMINED]
    for language, name in zip(languages, ("source", "target"), strict=True):
        where, text = f"{corpus.key} ({name})", "\n".join(sample[name])
        if not corpus.tokenised and language not in LANGUAGES:
            log.warning("%s: Moses has no rules for %r; those of English are used", where, language)
        for pattern, what in MARKS.items():
            if corpus.tokenised and (marks := re.findall(pattern, text, re.MULTILINE)):
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
