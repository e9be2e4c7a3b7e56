"""Is one system better than another? Paired tests on sentence statistics.

The two tests are those of `sacrebleu.significance`, which takes text and one resample at a time;
here they run on stored statistics, all resamples at once:

- `bootstrap`: paired bootstrap resampling (Koehn, 2004),
- `randomisation`: approximate randomisation (Riezler and Maxwell, 2005).

The bootstrap departs from sacrebleu's, which shifts the absolute differences of the resamples by
their mean, and that is above 0 even where the systems are alike: of pairs that differ by chance (50
to 200 sentences, outputs swapped by a coin) it finds 10 to 14 in 100 at p < 0.05, some of them with
an interval that holds 0. Here the differences themselves are shifted, as a test of no difference
asks (Efron and Tibshirani, 1993, section 16.4), and 4 to 7 in 100 are found. Resamples of a handful
of sentences vary too little for that: at p < 0.05 up to 8 in 100 are found of 30 sentences, 11 of
20, 23 of 5, and any difference of a single one. Below `FEWEST` sentences there is no p.

Approximate randomisation counts the shuffles at least as far apart as the outputs; sacrebleu, which
counts those farther apart, finds any difference in a single sentence.

Legend: N sentences, R resamples or trials.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nmt.evaluation.bleu import WIDTH, bleu_scores
from nmt.evaluation.bootstrap import SEED, resampled_sums
from nmt.evaluation.buckets import assign, buckets

TRIALS = {"bootstrap": 1000, "randomisation": 10000}  # sacrebleu's numbers
TIE = 1e-9  # BLEU points below which two scores are the same but for rounding
FEWEST = 30  # sentences whose bootstrap has a p
CHUNK = 1 << 22


def compare(
    name_a: str,
    statistics_a: np.ndarray,
    name_b: str,
    statistics_b: np.ndarray,
    lengths: Sequence[int] | np.ndarray,
    edges: Sequence[int],
    *,
    test: str = "bootstrap",
    trials: int | None = None,
    confidence: float = 0.95,
    seed: int = SEED,
) -> list[dict[str, Any]]:
    """Compares two systems on the whole set and in each length bucket.

    Args:
        statistics_a, statistics_b: (N, 10) of `sentence_statistics`, sentence n the same in both.
        lengths: (N,) the length that each sentence is bucketed by.
        edges: last length of each bucket.
        test: `bootstrap` or `randomisation`.
        trials: resamples or trials; None: 1,000 or 10,000, as sacrebleu.

    Returns:
        One row for the whole set (`bucket` is `all`), then one for each bucket with sentences:
        `a`, `b`, `test`, `bucket`, `from`, `to`, `sentences`, `score_a`, `score_b`,
        `delta` (a - b, BLEU points), `low`, `high` (bootstrap interval of delta), `p` (two-sided;
        None of a bootstrap of fewer than `FEWEST` sentences), `p_corrected` (Holm's correction for
        the number of buckets with a p; of the whole set p itself).
    """
    if test not in TRIALS:
        raise ValueError(f"test={test}: must be one of {', '.join(TRIALS)}")
    statistics_a, statistics_b = np.asarray(statistics_a), np.asarray(statistics_b)
    if len(statistics_a) != len(statistics_b):
        raise ValueError(
            f"{name_a} has {len(statistics_a)} sentences and {name_b} {len(statistics_b)}"
        )
    places = assign(lengths, edges)
    whole: dict[str, Any] = {"bucket": "all", "from": 1, "to": None}
    subsets = [(whole, np.ones(len(places), dtype=bool))]
    subsets += [
        ({"bucket": bucket.name, **bucket.row()}, places == place)
        for place, bucket in enumerate(buckets(edges))
    ]
    rows = [
        {"a": name_a, "b": name_b, "test": test, **head}
        | _scores(statistics_a[inside], statistics_b[inside], test, trials, confidence, seed)
        for head, inside in subsets
        if inside.any()
    ]
    corrected = [rows[0]["p"], *holm([row["p"] for row in rows[1:]])]
    return [row | {"p_corrected": p} for row, p in zip(rows, corrected, strict=True)]


def _scores(
    a: np.ndarray, b: np.ndarray, test: str, trials: int | None, confidence: float, seed: int
) -> dict[str, Any]:
    """The measured part of a row."""
    score_a, score_b = float(bleu_scores(a.sum(axis=0))), float(bleu_scores(b.sum(axis=0)))
    deltas = bootstrap_deltas(a, b, trials or TRIALS["bootstrap"], seed)
    observed = abs(score_a - score_b)
    p: float | None = None
    if test == "randomisation":
        p = p_value(randomised_differences(a, b, trials or TRIALS[test], seed), observed)
    elif len(a) >= FEWEST:
        p = p_value(np.abs(deltas - deltas.mean()), observed)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(deltas, [tail, 1.0 - tail])
    return {
        "sentences": len(a),
        "score_a": score_a,
        "score_b": score_b,
        "delta": score_a - score_b,
        "low": float(low),
        "high": float(high),
        "p": p,
    }


def bootstrap_deltas(a: np.ndarray, b: np.ndarray, resamples: int, seed: int = SEED) -> np.ndarray:
    """BLEU of a minus BLEU of b on the same sentences drawn with replacement: (R,) float64."""
    sums = resampled_sums(np.concatenate([a, b], axis=1), resamples, seed)  # (R, 20)
    return bleu_scores(sums[:, :WIDTH]) - bleu_scores(sums[:, WIDTH:])


def randomised_differences(
    a: np.ndarray, b: np.ndarray, trials: int, seed: int = SEED
) -> np.ndarray:
    """Absolute differences in BLEU of shuffled systems: (N, 10) twice -> (R,) float64.

    A trial swaps the two outputs of each sentence or leaves them, each with probability 1/2.
    """
    generator = np.random.default_rng(seed)
    a, b = a.astype(np.float64), b.astype(np.float64)
    both, change, base = (a + b).sum(axis=0), a - b, b.sum(axis=0)
    differences = []
    for count in _counts(len(a), trials):
        kept = generator.integers(2, size=(count, len(a)), dtype=bool)
        first = base + kept.astype(np.float64) @ change
        differences.append(np.abs(bleu_scores(first) - bleu_scores(both - first)))
    return np.concatenate(differences)


def p_value(differences: np.ndarray, observed: float) -> float:
    """The share of differences by chance at least as large as the observed one: (R,) -> 0 to 1.

    One is added to both counts, for the observed difference is one of those that chance could make.
    """
    return float(((differences >= observed - TIE).sum() + 1) / (len(differences) + 1))


def _counts(size: int, trials: int) -> list[int]:
    """Sizes of chunks of trials; multiples of 32, so that random bits are drawn as in one piece."""
    step = max(32, CHUNK // size // 32 * 32)
    return [min(step, trials - start) for start in range(0, trials, step)]


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction (1979) for testing several hypotheses at once.

    A hypothesis that was not tested (None) stays so, and is not counted.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    >>> holm([None, 0.25, 0.5])
    [None, 0.5, 0.5]
    """
    corrected: list[float | None] = [None] * len(p_values)
    ascending = sorted((p, position) for position, p in enumerate(p_values) if p is not None)
    largest = 0.0
    for rank, (p, position) in enumerate(ascending):
        largest = max(largest, min(1.0, (len(ascending) - rank) * p))
        corrected[position] = largest
    return corrected
