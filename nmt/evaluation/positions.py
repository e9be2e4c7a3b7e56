"""Measurements of single words: tables by sentence and position, and means by position and length.

Legend: N sentences, P positions. A table (N, P) holds one value for each word, such as 1 where a
probe has predicted it and 0 where not, and NaN where a sentence has no word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nmt.evaluation.alignment import Gold
from nmt.evaluation.buckets import assign, buckets
from nmt.evaluation.resampling import scored
from nmt.evaluation.scores.base import quotient


def at_positions(
    sentences: Sequence[Sequence[int]], positions: int, *, from_end: bool = False
) -> np.ndarray:
    """Symbols by position: N sentences -> (N, P) int64, -1 where a sentence is shorter.

    >>> at_positions([[5, 6, 7], [8]], 2).tolist(), at_positions([[5, 6, 7]], 2, from_end=True).tolist()
    ([[5, 6], [8, -1]], [[7, 6]])
    """
    table = np.full((len(sentences), positions), -1, dtype=np.int64)
    for row, sentence in zip(table, sentences, strict=True):
        symbols = (sentence[::-1] if from_end else sentence)[:positions]
        row[: len(symbols)] = symbols
    return table


def gains_at_positions(
    gains: Sequence[Sequence[float]],
    lengths: Sequence[int],
    golds: Sequence[Gold] | None,
    *,
    from_end: bool = False,
) -> np.ndarray:
    """The information gain of N references by position: (N, P), P the greatest length.

    The value at a source position is the mean gain of the target words that sure links join with
    that word; NaN where there is none. Without gold links positions are those of the target words.

    Args:
        gains: of each word of each reference, in nats.
        lengths: number of positions of each sentence: source words, or without gold links words of
            the reference.
        golds: gold links of each pair, or None.
        from_end: count positions from the last word.

    >>> gold = Gold(frozenset({(1, 0), (0, 1), (0, 2)}), frozenset())
    >>> gains_at_positions([[2.0, 1.0, 4.0, 9.0]], [3], [gold]).tolist()
    [[2.5, 2.0, nan]]
    >>> gains_at_positions([[2.0, 1.0], [5.0]], [2, 1], None, from_end=True).tolist()
    [[1.0, 2.0], [5.0, nan]]
    """
    table = np.full((len(gains), max(lengths, default=0)), np.nan)
    for number, (row, words, length) in enumerate(zip(table, gains, lengths, strict=True)):
        links = enumerate(range(len(words))) if golds is None else golds[number].sure
        at: dict[int, list[float]] = {}
        for place, word in links:
            at.setdefault(length - 1 - place if from_end else place, []).append(words[word])
        for place, values in at.items():
            row[place] = np.mean(values)
    return table


def means(
    tables: Mapping[str, np.ndarray],
    lengths: Sequence[int] | np.ndarray,
    edges: Sequence[int],
    *,
    resamples: int,
    confidence: float,
    positions: int | None = None,
) -> dict[str, Any]:
    """The mean of each table over all words, by length of the sentence and by position.

    Args:
        tables: (N, P) by name, all NaN at the same places.
        lengths: (N,) of the sentences.
        edges: last length of each bucket.
        resamples, confidence: of the bootstrap over sentences.
        positions: number of positions that get a mean of their own; None: all.

    Returns:
        `words`, and by name `score`, `low` and `high`; `by_length`, `by_position` (from 1) and
        `by_length_and_position`: a list of the same for each part that has a word.
    """
    first = next(iter(tables.values()))
    everyone = np.ones(len(first), dtype=bool)
    everywhere = slice(None)

    def part(inside: np.ndarray, columns: slice) -> dict[str, Any]:
        found: dict[str, Any] = {
            "words": int(np.isfinite(first[inside, columns]).sum()),
        }
        for name, table in tables.items():
            rows = table[inside, columns]
            known = np.isfinite(rows)
            some = known.any(1)
            sums = np.stack([np.nansum(rows, 1), known.sum(1)], 1)[some]
            found[name] = scored(sums, _mean, resamples, confidence)
        return found

    places = assign(lengths, edges)
    held = [
        (bucket.row(), places == place)
        for place, bucket in enumerate(buckets(edges))
        if np.isfinite(first[places == place]).any()
    ]
    at = [
        (number + 1, slice(number, number + 1))
        for number in range(first.shape[1])[:positions]
        if np.isfinite(first[:, number]).any()
    ]
    return {
        **part(everyone, everywhere),
        "by_length": [
            {**row, "sentences": int(inside.sum()), **part(inside, everywhere)}
            for row, inside in held
        ],
        "by_position": [{"position": number, **part(everyone, column)} for number, column in at],
        "by_length_and_position": [
            {**row, "position": number, **part(inside, column)}
            for row, inside in held
            for number, column in at
            if np.isfinite(first[inside, column]).any()
        ],
    }


def _mean(sums: np.ndarray) -> np.ndarray:
    return quotient(sums[..., 0], sums[..., 1])
