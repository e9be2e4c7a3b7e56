"""Scores of a whole set besides BLEU by length."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from sacrebleu.metrics import BLEU, CHRF


def sacrebleu_score(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, Any]:
    """sacreBLEU (Post, 2018) of detokenised text, with its own tokeniser and signature.

    Returns:
        `score` (0 to 100) and `signature`.
    """
    return _scored(BLEU(force=True), hypotheses, references)


def chrf_score(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, Any]:
    """chrF2 (Popović, 2015) of detokenised text: `score` (0 to 100) and `signature`."""
    return _scored(CHRF(), hypotheses, references)


def _scored(
    metric: BLEU | CHRF, hypotheses: Sequence[str], references: Sequence[str]
) -> dict[str, Any]:
    score = metric.corpus_score(list(hypotheses), [list(references)]).score
    return {"score": score, "signature": str(metric.get_signature())}


def perplexity(nll: float, words: int) -> float | None:
    """exp(nats / words); None where it exceeds every float.

    >>> round(perplexity(3 * math.log(50), 3), 6)
    50.0
    """
    exponent = nll / words
    return math.exp(exponent) if exponent < 700 else None


def spread(weights: np.ndarray) -> np.ndarray:
    """Entropy of attention weights in nats: (..., S) -> (...); 0 one word, log S all alike.

    Weights of 0 (padding) add nothing.

    >>> spread(np.array([[1.0, 0.0], [0.5, 0.5]])).round(4).tolist()
    [0.0, 0.6931]
    """
    weights = np.asarray(weights, dtype=np.float64)
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    # 0.0 - x instead of -x: no negative zero for a weight of exactly 1
    return 0.0 - (weights * logs).sum(axis=-1)
