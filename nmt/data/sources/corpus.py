"""`Corpus`: a parallel text read row by row, identified by a digest of its content."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from nmt.data.sources.lines import Stamp, check_unchanged, read_parallel
from nmt.utils.errors import InputError

PART = 5_000  # rows of a part, where a corpus can be read in parts by several processes


class Row(NamedTuple):
    """One pair as its source has it: raw text, or tokens joined by spaces where tokenised."""

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
        parts: what to read, one after the other; each part can be read by a process of its own.
    """

    key: str
    identity: str
    tokenised: bool
    parts: tuple[Any, ...]

    def __iter__(self) -> Iterator[Row]:
        return read_parts(self.parts)


def read_parts(parts: Sequence[Any]) -> Iterator[Row]:
    """Rows of some parts of a corpus, in order."""
    for part in parts:
        yield from part


@dataclass(frozen=True)
class LineAligned:
    """Line i of two files, and of a third one with alignments where there is one.

    It is made before the digests of the files are computed, and raises InputError for a file that has
    changed since: the rows always belong to the digest.
    """

    paths: tuple[Path, ...]
    limit: int | None
    stamps: tuple[Stamp, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "stamps", self.stamps or tuple(map(Stamp.of, self.paths)))

    def __iter__(self) -> Iterator[Row]:
        try:
            for source, target, *alignment in read_parallel(self.paths, self.limit):
                yield Row(source, target, alignment[0] if alignment else None)
        except InputError:
            self._check()  # a file that is being written looks damaged, or out of step
            raise
        self._check()

    def _check(self) -> None:
        for path, stamp in zip(self.paths, self.stamps, strict=True):
            check_unchanged(path, stamp)


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
