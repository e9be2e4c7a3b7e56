"""Corpus BLEU from integer sentence statistics, equal to sacrebleu with `tokenize="none"`.

A sentence is reduced to ten integers, in this order: the correct n-grams of order 1 to 4 (clipped),
the n-grams of order 1 to 4 in the hypothesis, the length of the hypothesis, the length of the
reference. Their sums over any set of sentences give the BLEU of that set (Papineni et al., 2002).

sacrebleu smooths an order without a match (`smooth_method="exp"`), where multi-bleu, which scored
the paper, gives 0; the two agree as soon as every order has a match.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
from sacrebleu.metrics import BLEU

ORDERS = 4
CORRECT = slice(0, ORDERS)
TOTAL = slice(ORDERS, 2 * ORDERS)
HYPOTHESIS_LENGTH = 2 * ORDERS
REFERENCE_LENGTH = 2 * ORDERS + 1
WIDTH = 2 * ORDERS + 2
FEWEST_MATCHES = 10  # 4-grams; intervals of BLEU from fewer lie too low


@cache
def _scorer() -> BLEU:
    return BLEU(tokenize="none", force=True)


def sentence_statistics(hypothesis: Sequence[str | None], *references: Sequence[str]) -> np.ndarray:
    """The sufficient statistics of one sentence.

    A token is compared whole, whatever characters it holds: sacrebleu joins and splits a line at
    every Unicode space (U+00A0 and U+2009 among them), so tokens are handed to it as numbers.

    Args:
        hypothesis: tokens, without `</s>`; None is the symbol `<unk>`, which matches nothing.
        references: tokens of each reference. The reference length is that of the nearest one.

    Returns:
        (10,) int64: 4 correct, 4 total, hypothesis length, reference length.

    >>> sentence_statistics("the cat sat".split(), "the cat sat down".split()).tolist()
    [3, 2, 1, 0, 3, 2, 1, 0, 3, 4]
    """
    numbers: dict[str | None, str] = {}
    hypothesis_line, *reference_lines = (
        " ".join(numbers.setdefault(token, str(len(numbers))) for token in tokens)
        for tokens in (hypothesis, *references)
    )
    score = _scorer().corpus_score([hypothesis_line], [[line] for line in reference_lines])
    return np.array([*score.counts, *score.totals, score.sys_len, score.ref_len], dtype=np.int64)


def bleu(statistics: Sequence[int] | np.ndarray, *, effective_order: bool = False) -> float:
    """BLEU, 0 to 100, of summed statistics (10,), by sacrebleu's own formula.

    Args:
        effective_order: leave out orders that the hypotheses are too short for, as is usual for BLEU
            of single sentences.

    >>> round(bleu([6, 4, 2, 1, 7, 6, 5, 4, 7, 8]), 4)
    42.3837
    """
    counts = [int(count) for count in statistics]
    score = BLEU.compute_bleu(
        correct=counts[CORRECT],
        total=counts[TOTAL],
        sys_len=counts[HYPOTHESIS_LENGTH],
        ref_len=counts[REFERENCE_LENGTH],
        smooth_method="exp",
        effective_order=effective_order,
    ).score
    return min(score, 100.0)  # exp(log(100)) is 100.00000000000004


def bleu_scores(statistics: np.ndarray) -> np.ndarray:
    """BLEU of many sums of statistics at once: the same formula as `bleu`, vectorised.

    Args:
        statistics: (..., 10), integers in any numeric type.

    Returns:
        (...) float64, 0 to 100.
    """
    statistics = np.asarray(statistics, dtype=np.float64)
    correct, total = statistics[..., CORRECT], statistics[..., TOTAL]
    # Every order without a match halves the count that stands for its zero (NIST smoothing).
    halvings = np.cumsum(correct == 0, axis=-1)
    smoothed = np.where(correct > 0, correct, np.exp2(-halvings))
    with np.errstate(divide="ignore", invalid="ignore"):
        log_precisions = np.log(100.0 * smoothed / total).mean(axis=-1)
        scores = brevity_penalties(statistics) * np.exp(log_precisions)
    defined = (correct > 0).any(axis=-1) & (total > 0).all(axis=-1)
    return np.where(defined, np.minimum(scores, 100.0), 0.0)


def brevity_penalties(statistics: np.ndarray) -> np.ndarray:
    """The factor by which BLEU punishes short output: (..., 10) -> (...) float64, 0 to 1."""
    hypothesis = np.asarray(statistics[..., HYPOTHESIS_LENGTH], dtype=np.float64)
    reference = np.asarray(statistics[..., REFERENCE_LENGTH], dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(hypothesis >= reference, 1.0, np.exp(1.0 - reference / hypothesis))


def enough_matches(statistics: np.ndarray) -> np.ndarray:
    """Whether enough 4-grams match for an interval of BLEU: (..., 10) -> (...) bool."""
    return np.asarray(statistics[..., ORDERS - 1] >= FEWEST_MATCHES)
