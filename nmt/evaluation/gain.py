"""Nats that one model gives the words of a reference more than another, by source position.

Legend: N sentences, P positions. A table (N, P) has the mean gain of the target words that belong to
the source word at a position, and NaN where there are none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nmt.evaluation.alignment import Gold


def gains_at_positions(
    gains: Sequence[Sequence[float]],
    lengths: Sequence[int],
    golds: Sequence[Gold] | None,
    *,
    from_end: bool = False,
) -> np.ndarray:
    """The gains of N references as a table (N, P), P the greatest length.

    Args:
        gains: nats of each word of each reference.
        lengths: of what positions are counted in: source words, or without gold links words of the
            reference.
        golds: sure links tell which source words a target word belongs to; None: its own place does.
        from_end: whether they are counted from the last word.

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
