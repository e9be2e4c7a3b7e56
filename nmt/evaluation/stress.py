"""Stress of length: neighbouring sentences joined into longer inputs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nmt.evaluation.alignment import Gold

TOLERANCE = 0.25  # share by which an input may be longer or shorter than asked for


@dataclass(frozen=True)
class JoinedPair:
    """A sentence pair, or several joined.

    Attributes:
        source, target: tokens.
        gold: gold links, where every part has them.
        text: the target as its file has it, where every part has it.
        parts: ids of the sentences it is made of.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    gold: Gold | None = None
    text: str | None = None
    parts: tuple[int, ...] = ()

    def __add__(self, other: "JoinedPair") -> "JoinedPair":
        """This pair followed by another; gold links move with their words."""
        gold = text = None
        if self.gold is not None and other.gold is not None:
            gold = self.gold | other.gold.shifted(len(self.source), len(self.target))
        if self.text is not None and other.text is not None:
            text = f"{self.text} {other.text}"
        return JoinedPair(
            self.source + other.source,
            self.target + other.target,
            gold,
            text,
            self.parts + other.parts,
        )


def joined(pairs: Sequence[JoinedPair], length: int, count: int) -> list[JoinedPair]:
    """Inputs of about `length` source words, made of sentences that follow one another.

    From each start sentences are added as long as that brings the input nearer to `length`; an
    input further from it than a quarter is not used, and the next start is tried. No sentence is
    used twice.

    Args:
        pairs: in the order of the text.
        length: source words to reach.
        count: most inputs to make; fewer where the text ends.

    >>> text = [JoinedPair(("a",) * 9, ("b",) * 8, parts=(n,)) for n in range(5)]
    >>> [(len(pair.source), pair.parts) for pair in joined(text, length=20, count=3)]
    [(18, (0, 1)), (18, (2, 3))]
    """
    inputs: list[JoinedPair] = []
    start = 0
    while start < len(pairs) and len(inputs) < count:
        candidate, end = pairs[start], start + 1
        while end < len(pairs) and _nearer(candidate, pairs[end], length):
            candidate, end = candidate + pairs[end], end + 1
        fits = abs(len(candidate.source) - length) <= TOLERANCE * length
        if fits:
            inputs.append(candidate)
        start = end if fits else start + 1
    return inputs


def _nearer(candidate: JoinedPair, following: JoinedPair, length: int) -> bool:
    longer = len(candidate.source) + len(following.source)
    return abs(longer - length) < abs(len(candidate.source) - length)


def joined_name(name: str, length: int) -> str:
    """Of the set of a test set's sentences joined to a length in words."""
    return f"{name}-joined{length}"


def stress_sets(
    name: str, pairs: Sequence[JoinedPair], lengths: Iterable[int], count: int
) -> dict[str, list[JoinedPair]]:
    """A test set of joined inputs for each length that the text allows, by set name.

    >>> text = [JoinedPair(("a",) * 9, ("b",) * 8) for _ in range(5)]
    >>> {name: len(inputs) for name, inputs in stress_sets("mine", text, [20, 90], 3).items()}
    {'mine-joined20': 2}
    """
    sets = {joined_name(name, length): joined(pairs, length, count) for length in lengths}
    return {name: inputs for name, inputs in sets.items() if inputs}
