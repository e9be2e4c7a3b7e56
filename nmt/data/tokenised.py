"""Tokenised corpora on disk: one memory-mapped Arrow folder each.

A folder depends on the text and the tokenisation alone: after a change of vocabularies, of the cap on
length or of another corpus it is used again.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import datasets

from nmt.data.cache import build_once
from nmt.data.sources.corpus import PART, Corpus, Row, digest, read_parts
from nmt.data.tokenise import split, tokeniser
from nmt.utils.errors import InputError
from nmt.utils.threads import shared_cores

FORMAT = 1
PARALLEL_FROM = 20_000  # rows below which starting processes costs more than it saves

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
WITH_RAW = datasets.Features(
    {
        **TOKENISED,
        "source_text": datasets.Value("string"),
        "target_text": datasets.Value("string"),
    }
)


@dataclass(frozen=True)
class TokenisedText:
    """A tokenised corpus.

    Attributes:
        rows: columns `line` (from 0, in the source), `source` and `target` (tokens joined by
            spaces), `source_words` and `target_words` (their numbers), `alignment`, and, except
            for training text, `source_text` and `target_text` (raw).
        fingerprint: changes when a row could.
        lines: rows of the corpus, those with an empty side and those dropped included.
        dropped: rows that filters left out, by reason (`nmt.data.filtering.filters`).
    """

    rows: datasets.Dataset
    fingerprint: str
    lines: int
    dropped: Mapping[str, int] = field(default_factory=dict)

    @property
    def empty(self) -> int:
        """Rows left out because a side has no words."""
        return self.lines - len(self.rows) - sum(self.dropped.values())


def tokenise_corpus(
    corpus: Corpus,
    languages: tuple[str, str],
    *,
    cache: Path,
    normalise: bool = True,
    raw: bool = True,
    verify: bool = False,
) -> TokenisedText:
    """The tokenised corpus, from the cache or made now.

    Args:
        corpus: what to tokenise.
        languages: of source and target, as Moses names them.
        cache: folder of prepared text.
        normalise: normalise punctuation first (raw text only).
        raw: keep the raw text beside the tokens.
        verify: read all of a cached text to see that it is as it was written.

    Raises:
        InputError: where the corpus is empty or cannot be read.
    """
    for language in languages:
        tokeniser(language, normalise)
    version = importlib.metadata.version("sacremoses")
    fingerprint = digest(FORMAT, corpus.identity, list(languages), normalise, raw, version)

    def build(folder: Path) -> None:
        scratch = folder / "scratch"
        lines = _read(corpus, scratch)
        rows = lines.map(
            _Tokenise(languages, normalise, corpus.tokenised, raw),
            batched=True,
            with_indices=True,
            remove_columns=lines.column_names,
            features=WITH_RAW if raw else TOKENISED,
            num_proc=processes(len(lines)),
            cache_file_name=str(folder / "text.arrow"),
            new_fingerprint=fingerprint,
            desc=f"tokenise {corpus.key}",
        )
        if not len(rows):
            raise InputError(f"{corpus.key}: empty corpus; none of {len(lines)} pairs has words")
        (folder / "text.json").write_text(json.dumps({"lines": len(lines)}))
        del rows, lines
        shutil.rmtree(scratch)

    folder = build_once(cache, f"text-{fingerprint}", build, verify=verify)
    lines = json.loads((folder / "text.json").read_text())["lines"]
    return TokenisedText(open_arrow(folder), fingerprint, lines)


def _read(corpus: Corpus, scratch: Path) -> datasets.Dataset:
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
            split=datasets.NamedSplit(re.sub(r"\W+", "_", corpus.key)),  # what its bar is of
        )
    except Exception as error:
        raise _reason(error) from None


def _rows(parts: list[Any]) -> Iterator[dict[str, Any]]:
    for row in read_parts(parts):
        yield row._asdict()


def _reason(error: BaseException) -> BaseException:
    """The InputError or OSError that `datasets` has wrapped in an error of its own."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, InputError | OSError):
        cause = cause.__cause__ or cause.__context__
    return cause or error


@dataclass(frozen=True)
class _Tokenise:
    languages: tuple[str, str]
    normalise: bool
    tokenised: bool
    raw: bool

    def __call__(self, rows: dict[str, list[Any]], lines: list[int]) -> dict[str, list[Any]]:
        result: dict[str, list[Any]] = {name: [] for name in (WITH_RAW if self.raw else TOKENISED)}
        source_tool, target_tool = (tokeniser(name, self.normalise) for name in self.languages)
        for line, source_text, target_text, alignment in zip(
            lines, rows["source"], rows["target"], rows["alignment"], strict=True
        ):
            if self.tokenised:
                source, target = split(source_text), split(target_text)
            else:
                source = source_tool.tokenise(source_text)
                target = target_tool.tokenise(target_text)
            if not source or not target:
                continue
            result["line"].append(line)
            result["source"].append(" ".join(source))
            result["target"].append(" ".join(target))
            result["source_words"].append(len(source))
            result["target_words"].append(len(target))
            result["alignment"].append(alignment)
            if self.raw:
                if self.tokenised:
                    source_text = source_tool.detokenise(source)
                    target_text = target_tool.detokenise(target)
                result["source_text"].append(source_text)
                result["target_text"].append(target_text)
        return result


def processes(rows: int) -> int | None:
    """Number of processes for so many rows: one per core, or None where this process does it faster."""
    cores = shared_cores()
    return cores if rows >= PARALLEL_FROM and cores > 1 else None


def open_arrow(folder: Path) -> datasets.Dataset:
    """The Arrow files of a folder, memory-mapped, in the order of their names."""
    files = sorted(folder.glob("*.arrow"))
    parts = [datasets.Dataset.from_file(str(file)) for file in files]
    return parts[0] if len(parts) == 1 else datasets.concatenate_datasets(parts)
