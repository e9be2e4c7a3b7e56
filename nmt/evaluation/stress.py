"""Test sets of long inputs: neighbouring sentences of a test set, concatenated."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from nmt.evaluation.examples import Example

TOLERANCE = 0.25  # share by which an input may be longer or shorter than asked for


def joined(examples: Sequence[Example], length: int, count: int) -> list[Example]:
    """Inputs of about `length` source words, made of sentences that follow one another.

    From each start sentences are added as long as that brings the input nearer to `length`; an
    input further from it than a quarter is not used, and the next start is tried. No sentence is
    used twice.

    Args:
        examples: in the order of the text.
        length: source words to reach.
        count: most inputs to make; fewer where the text ends.

    >>> text = [Example(n, ["a"] * 9, ["b"] * 8) for n in range(5)]
    >>> [(each.id, len(each.source)) for each in joined(text, length=20, count=3)]
    [(0, 18), (1, 18)]
    """
    inputs: list[Example] = []
    start = 0
    while start < len(examples) and len(inputs) < count:
        candidate, end = examples[start], start + 1
        while end < len(examples) and _nearer(candidate, examples[end], length):
            candidate, end = candidate + examples[end], end + 1
        fits = abs(len(candidate.source) - length) <= TOLERANCE * length
        if fits:
            inputs.append(dataclasses.replace(candidate, id=len(inputs)))
        start = end if fits else start + 1
    return inputs


def _nearer(candidate: Example, following: Example, length: int) -> bool:
    longer = len(candidate.source) + len(following.source)
    return abs(longer - length) < abs(len(candidate.source) - length)


def joined_name(name: str, length: int) -> str:
    """The name of the set of concatenated sentences of about `length` words of the set `name`."""
    return f"{name}-joined{length}"


def stress_sets(
    name: str, examples: Sequence[Example], lengths: Iterable[int], count: int
) -> dict[str, list[Example]]:
    """A test set of concatenated inputs for each length that the text allows, by its name.

    >>> text = [Example(n, ["a"] * 9, ["b"] * 8) for n in range(5)]
    >>> {name: len(inputs) for name, inputs in stress_sets("mine", text, [20, 90], 3).items()}
    {'mine-joined20': 2}
    """
    sets = {joined_name(name, length): joined(examples, length, count) for length in lengths}
    return {name: inputs for name, inputs in sets.items() if inputs}
