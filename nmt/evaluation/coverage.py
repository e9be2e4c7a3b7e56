"""Source words that a translation leaves out, and words that it repeats.

Tu et al. (2016) call the attention that a source word has received so far its coverage. Legend: I
target and J source words; `</s>` follows on both axes of weights.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

NGRAM = 3  # words of a repeated n-gram


def attention_mass(weights: np.ndarray) -> np.ndarray:
    """The attention that each source word receives, summed over the target words.

    Args:
        weights: (I + 1, J + 1) between words; the step and the column of `</s>` are left out.

    Returns:
        (J,), between 0 and I.

    >>> attention_mass(np.array([[0.9, 0.0, 0.1], [0.7, 0.2, 0.1], [0, 0, 1.0]])).round(2).tolist()
    [1.6, 0.2]
    """
    mass: np.ndarray = np.asarray(weights, dtype=np.float64)[:-1, :-1].sum(axis=0)
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
