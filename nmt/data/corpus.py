"""`Corpus`: a parallel text read row by row, identified by a digest of its content."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from nmt.data.lines import read_parallel

PART = 5_000  # rows of a part, where a corpus can be read in parts by several processes


class Row(NamedTuple):
    """One pair as its source has it: raw text, or tokens joined by spaces if tokenised."""

    source: str
    target: str
    alignment: str | None


@dataclass(frozen=True)
class Corpus:
    """A parallel text that can be read from start to end, more than once.

    Attributes:
        key: configuration key it was described by, such as `data.train`.
        identity: digest of everything that its rows depend on.
        tokenised: the rows hold tokens, not raw text.
        parts: iterables of rows, read one after the other; each can be read by another process.
        first: number of the first row in its source, from 0.
    """

    key: str
    identity: str
    tokenised: bool
    parts: tuple[Any, ...]
    first: int = 0

    def __iter__(self) -> Iterator[Row]:
        return read_parts(self.parts)


def read_parts(parts: Sequence[Any]) -> Iterator[Row]:
    """Rows of some parts of a corpus, in order."""
    return itertools.chain.from_iterable(parts)


@dataclass(frozen=True)
class LineAligned:
    """Line i of two files, and of a third one with alignments if there is one."""

    paths: tuple[Path, ...]
    limit: int | None = None

    def __iter__(self) -> Iterator[Row]:
        for source, target, *alignment in read_parallel(self.paths, self.limit):
            yield Row(source, target, alignment[0] if alignment else None)


@dataclass(frozen=True)
class Slice:
    """The rows of some parts from `start` on, up to `stop` or (None) to their end."""

    parts: tuple[Any, ...]
    start: int
    stop: int | None

    def __iter__(self) -> Iterator[Row]:
        return itertools.islice(read_parts(self.parts), self.start, self.stop)


def digest(*parts: Any) -> str:
    """A short digest of `parts` (plain values)."""
    content = json.dumps(parts, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]
