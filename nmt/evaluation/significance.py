"""Paired bootstrap test of the score difference of two systems (Koehn, 2004).

Under the null hypothesis, the mean difference is 0. So the mean of the resampled differences is subtracted
from them (Efron and Tibshirani, 1993, section 16.4). `sacrebleu.significance` does this with absolute
differences, whose mean is above 0 even for equal systems. Both tests were run on pairs of systems that differ
only by chance (50 to 200 sentences, outputs swapped at random). At p < 0.05, sacrebleu's test reports 10 to
14 % of these pairs as significant, some with an interval that contains 0. The test in this module reports 4 to 7 %.

Resamples of few sentences vary too little. At p < 0.05, up to 8 % of such pairs are significant in this test
with 30 sentences, 11 % with 20, 23 % with 5, and every pair with a single sentence. Therefore, p is None with
fewer than `FEWEST` sentences.

All systems use the same resamples (`nmt.evaluation.resampling`), so the resampled scores of two systems can
be subtracted.

Array shapes: N sentences, S systems, F statistics per sentence, R resamples.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from nmt.evaluation.buckets import parts_by_length
from nmt.evaluation.resampling import (
    Combine,
    count_documents,
    interval_row,
    resampled_sums,
    widening,
)

TIE = 1e-9  # smaller differences of scores are rounding errors
FEWEST = 30  # minimum number of sentences for a p-value
TESTED = ("score_a", "score_b", "delta", "low", "high", "interval", "p", "p_corrected")


def paired_differences(
    tables: Mapping[str, np.ndarray],
    combine: Combine,
    lengths: np.ndarray,
    edges: Sequence[int] | None,
    resamples: int = 1000,
    documents: np.ndarray | None = None,
) -> Iterator[dict[str, Any]]:
    """Compares every pair of systems by a score, on the whole set and in each length bucket.

    Args:
        tables: the statistics (N, F) of each system, for the same N sentences in the same order.
        combine: computes scores (...) from sums (..., F).
        lengths: (N,) lengths that determine the buckets.
        edges: largest length of each bucket, or None for the whole set only.
        documents: (N,) document index of each sentence, or None to resample sentences.

    Yields:
        For each pair, a row for the whole set (`bucket` is `all`), then a row for each bucket. Rows with an
        undefined score are left out. Keys: `a`, `b`, `bucket`, `from`, `to`, `sentences`,
        `score_a`, `score_b`, `delta` (a - b), `low`, `high` (bootstrap interval of delta), `interval`
        (what was resampled), `p` (two-sided, by bootstrap; None with fewer than `FEWEST` sentences) and
        `p_corrected` (p with Holm's correction for the tested buckets; for the whole set, p itself).
    """
    table = np.stack([*tables.values()], axis=1)  # (N, S, F)
    scored = []
    for head, inside in parts_by_length(lengths, edges):
        if inside.any():
            drawn = None if documents is None else documents[inside]
            sums = resampled_sums(table[inside].reshape(inside.sum(), -1), resamples, drawn)
            values = combine(sums.reshape(-1, *table.shape[1:]))  # (1 + R, S)
            scored.append((head, int(inside.sum()), count_documents(drawn), values))
    for (one, a), (other, b) in combinations(enumerate(tables), 2):
        rows: list[dict[str, Any]] = [
            head | {"a": a, "b": b} | _test(values[:, one], values[:, other], sentences, drawn)
            for head, sentences, drawn, values in scored
            if np.isfinite(values[0, [one, other]]).all()
        ]
        corrected = holm([None if row["bucket"] == "all" else row["p"] for row in rows])
        for row, p in zip(rows, corrected, strict=True):
            row["p_corrected"] = row["p"] if row["bucket"] == "all" else p
        yield from rows


def _test(
    first: np.ndarray, second: np.ndarray, sentences: int, documents: int | None
) -> dict[str, Any]:
    """Tests the difference of two scores; each array (1 + R,) has the score on all sentences, then on R resamples.

    `documents` is the number of resampled documents, or None if sentences were resampled. p is the share of
    the resampled differences (minus their mean) that are at least as large as the observed difference. The
    observed difference is counted as one of them.
    """
    delta, *_ = deltas = first - second
    by_chance = deltas[1:][~np.isnan(deltas[1:])]
    by_chance = np.abs(by_chance - by_chance.mean())
    enough = sentences >= FEWEST
    if documents is not None:
        enough = enough and documents > 1
        by_chance = by_chance * widening(max(documents, 2))
    p = ((by_chance >= abs(delta) - TIE).sum() + 1) / (len(by_chance) + 1)
    row = interval_row(deltas, sentences, documents)
    row |= {"score_a": float(first[0]), "score_b": float(second[0]), "delta": row.pop("value")}
    return row | {"p": float(p) if enough else None}


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Corrects p-values for multiple testing with the step-down method of Holm (1979).

    None stands for a hypothesis that was not tested. It is ignored and stays None.

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
