"""Omissions and repetitions: attention mass of source words, and repeated n-grams.

The coverage of a source word (Tu et al., 2016) is the attention that it has received. Attention is
computed before the target word is chosen: where the translation leaves a word out, the model attends
to that word at the next step, and then finds the given target word improbable. A step is therefore
weighted by the probability of the given word, relative to the most probable one.

Legend: I target and J source words; `</s>` follows on both axes of weights.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

NGRAM = 3  # words of a repeated n-gram


def attention_mass(weights: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """The attention of each source word, summed over target steps weighted by `expected`.

    Args:
        weights: (I + 1, J + 1) between words; the step and the column of `</s>` are left out.
        expected: (I + 1,) p(y_i) / max_y p(y) of each step: 1 for what a greedy search would write.

    Returns:
        (J,), between 0 and I.

    >>> weights = np.array([[0.9, 0.0, 0.1], [0.7, 0.2, 0.1], [0, 0, 1.0]])
    >>> attention_mass(weights, np.array([1.0, 1.0, 1.0])).round(2).tolist()
    [1.6, 0.2]
    >>> attention_mass(weights, np.array([1.0, 0.5, 1.0])).round(2).tolist()
    [1.25, 0.1]
    """
    mass: np.ndarray = np.asarray(expected)[:-1] @ np.asarray(weights, np.float64)[:-1, :-1]
    return mass


def repeated_ngrams(hypothesis: Sequence[str], reference: Sequence[str]) -> tuple[int, int]:
    """How many n-grams of a translation repeat one of it, and how many it has.

    An n-gram counts as often as it occurs more than once, and more often than in the reference.

    >>> repeated_ngrams("a b c d a b c d".split(), "a b c d".split())
    (2, 6)
    """
    found, wanted = _ngrams(hypothesis), _ngrams(reference)
    repeated = sum(count - max(1, min(count, wanted[ngram])) for ngram, count in found.items())
    return repeated, found.total()


def _ngrams(words: Sequence[str]) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(words[start:] for start in range(NGRAM)), strict=False))
