"""Finds output lines that belong to other lines of the test set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

WINDOW = 10  # `first_misfit` compares this many lines before and after a line
RARE = 5  # words and pairs of words that occur in at most this many references tell which one a line fits
SAMPLE = 2000  # maximum number of lines that `misplaced` looks at
FEWEST = 5  # number, and share, of lines that fit another reference
SHARE = 0.05  # real systems reach 0.023 (WMT24), a file in another order 0.97

Words = Sequence[Sequence[str]]
Holders = dict[Any, list[int]]  # lines by a word, or by a pair of words, that they have


def first_misfit(outputs: Words, references: Words) -> int:
    """Returns the number of the first line (from 1) at which outputs no longer match their references.

    Outputs before this line share words with their own reference. Later outputs share words with the previous
    reference (if a line was added) or with the next reference (if a line is missing).

    >>> first_misfit([["a"], ["b"], ["b2"], ["c"], ["d"]], [["a"], ["b"], ["c"], ["d"]])
    3
    """
    shift = 1 if len(outputs) > len(references) else -1

    def similarity(output: int, reference: int) -> float:
        if not (0 <= output < len(outputs) and 0 <= reference < len(references)):
            return 0.0
        shared = Counter(outputs[output]) & Counter(references[reference])
        return 2 * shared.total() / max(1, len(outputs[output]) + len(references[reference]))

    own = np.array([similarity(i, i) for i in range(len(references))])
    shifted = np.array([similarity(i + shift, i) for i in range(len(references))])
    before = np.convolve(own, np.ones(WINDOW))[: len(own)]  # sums over WINDOW lines
    after = np.convolve(shifted[::-1], np.ones(WINDOW))[: len(own)][::-1]
    scores = np.concatenate([[0.0], before]) + np.concatenate([after, [0.0]])
    return int(np.argmax(scores)) + 1


def rare_features(references: Words) -> Holders:
    """Returns the rare words and pairs of neighbouring words, each with the lines (from 0) that have it."""
    holders: Holders = {}
    for n, reference in enumerate(references):
        for each in _features(reference):
            holders.setdefault(each, []).append(n)
    return {each: lines for each, lines in holders.items() if len(lines) <= RARE}


def misplaced(outputs: Words, rare: Holders) -> dict[int, int]:
    """Returns the lines (from 1) that fit the reference of another line, and this line; {} if they are few.

    A line fits another reference if they share three or more rare words or pairs of neighbouring words, and it
    shares none with its own.

    Args:
        rare: the `rare_features` of the references.

    >>> lines = [[f"{n}.{k}" for k in range(9)] for n in range(9)]
    >>> misplaced(lines[::-1], rare_features(lines))[1]
    9
    """
    known = 0
    misplaced = {}
    for n in range(0, len(outputs), max(1, -(-len(outputs) // SAMPLE))):
        common = rare.keys() & _features(outputs[n])
        if sum(n in rare[each] for each in common) >= 3:  # a shortcut for most lines
            known += 1
            continue
        shared = Counter(line for each in common for line in rare[each])
        if not shared:
            continue
        most = max(shared.values())
        known += most >= 3
        if most >= 3 and not shared[n]:
            misplaced[n + 1] = min(line for line, count in shared.items() if count == most) + 1
    return misplaced if len(misplaced) >= max(FEWEST, SHARE * known) else {}


def _features(words: Sequence[str]) -> set[Any]:
    return {*words, *pairwise(words)}
