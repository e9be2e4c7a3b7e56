"""Weights of the features by coordinate search for BLEU on development sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from nmt.evaluation.scores.bleu import bleu, sentence_statistics
from nmt.utils.progress import Stage

Weights = tuple[float, ...]
TUNED = range(7)  # the eighth feature, sentence length, stays off as in Thot's own tuning
SIGNED = (0, 2)  # penalties and bonuses by length: may be negative
STEPS = (0.5, 0.25, 0.125)  # of the first rounds, relative to the weight; later ones have the last
LEAST = 0.2  # a weight of less moves as one of this size


class System(Protocol):
    weights: Weights

    def translate(self, sources: Sequence[Sequence[str]]) -> list[list[str]]: ...


def tune(
    system: System,
    sources: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    *,
    rounds: int = 3,
    progress: bool = False,
) -> tuple[float, float]:
    """Moves one weight at a time up or down by `STEPS`, and keeps what helps.

    A weight that helps is moved on in its direction. Afterwards the system has the best weights.

    Args:
        system: a loaded system; its weights are where the search starts.
        sources, references: development sentences.
        rounds: passes over all weights.
        progress: show a progress bar.

    Returns:
        BLEU of the sentences with the first weights, and with the best.
    """

    def score(weights: Weights) -> float:
        system.weights = weights
        stage.advance()
        pairs = zip(system.translate(sources), references, strict=True)
        return float(bleu(np.sum([sentence_statistics(h, r) for h, r in pairs], axis=0)))

    best = tuple(system.weights)
    first_score = best_score = 0.0
    with Stage("tuning", unit="trial", shown=progress) as stage:
        best_score = first_score = score(best)
        for step in [STEPS[min(n, len(STEPS) - 1)] for n in range(rounds)]:
            for feature in TUNED:
                for direction in (1.0, -1.0):
                    improved = False
                    while (tried := moved(best, feature, direction * step)) != best:
                        found = score(tried)
                        if found <= best_score:
                            break
                        best, best_score, improved = tried, found, True
                    if improved:
                        break
    system.weights = best
    return first_score, best_score


def moved(weights: Weights, feature: int, share: float) -> Weights:
    """The weights with one of them moved by a share of its size; positive ones stay positive.

    >>> moved((1.0, 2.0), 1, -0.5)
    (1.0, 1.0)
    >>> moved((0.1, 0.1), 0, -0.5), moved((0.1, 0.05), 1, -0.5)
    ((0.0, 0.1), (0.1, 0.05))
    """
    value = weights[feature] + share * max(abs(weights[feature]), LEAST)
    if feature not in SIGNED and value <= 0:
        return weights
    return (*weights[:feature], round(value, 6), *weights[feature + 1 :])
