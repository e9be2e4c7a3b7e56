"""Paired significance tests of two systems on statistics of sentences.

The two tests are those of `sacrebleu.significance`, which takes text and one resample at a time;
here they run on stored statistics of any score, all resamples at once:

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

All systems are resampled alike (`nmt.evaluation.resampling`), so that the resamples of a pair are
differences of what each has.

Legend: N sentences, S systems, F statistics of a sentence, R resamples or trials.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from nmt.config.keys import CONFIDENCE
from nmt.evaluation.buckets import assign, buckets
from nmt.evaluation.resampling import Combine, interval_of, kept_sums, resampled_sums

TIE = 1e-9  # two scores nearer than this are the same but for rounding
FEWEST = 30  # sentences whose bootstrap has a p
FEW_SENTENCES = f"intervals of fewer than {FEWEST} sentences are too narrow"


def compare(
    statistics: Mapping[str, Mapping[str, np.ndarray]],
    combine: Mapping[str, Combine],
    lengths: Sequence[int] | np.ndarray,
    edges: Sequence[int],
    *,
    resamples: int = 1000,
    confidence: float = CONFIDENCE,
) -> dict[str, list[dict[str, Any]]]:
    """Compares every pair of systems by each score, on the whole set and in each length bucket.

    Args:
        statistics: by system, by score (N, F), sentence n the same in all.
        combine: by score: sums (..., F) -> scores (...).
        lengths: (N,) the length that each sentence is bucketed by.
        edges: last length of each bucket.
        resamples: of the bootstrap, and trials of the randomisation.

    Returns:
        By score, of each pair one row for the whole set (`bucket` is `all`), then one for each
        bucket with sentences whose scores are defined: `a`, `b`, `bucket`, `from`, `to`,
        `sentences`, `score_a`, `score_b`, `delta` (a - b), `low`, `high` (bootstrap interval of
        delta), `p` (two-sided, by bootstrap; None of fewer than `FEWEST` sentences),
        `p_randomised`, and both with `_corrected` (Holm's correction for the number of buckets with
        a p; of the whole set p itself).
    """
    places = assign(lengths, edges)
    whole: dict[str, Any] = {"bucket": "all", "from": 1, "to": None}
    subsets = [(whole, np.ones(len(places), dtype=bool))]
    subsets += [
        ({"bucket": bucket.name, **bucket.row()}, places == place)
        for place, bucket in enumerate(buckets(edges))
    ]
    found: dict[str, list[dict[str, Any]]] = {}
    for score, formula in combine.items():
        table = np.stack([statistics[name][score] for name in statistics], axis=1)  # (N, S, F)
        rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for head, inside in subsets:
            if inside.any():
                for row in _pairs([*statistics], table[inside], formula, resamples, confidence):
                    rows.setdefault((row["a"], row["b"]), []).append(row | head)
        order = [pair for pair in combinations(statistics, 2) if pair in rows]
        found[score] = [row for pair in order for row in _corrected(rows[pair])]
    return found


def _pairs(
    names: list[str], table: np.ndarray, combine: Combine, resamples: int, confidence: float
) -> Iterator[dict[str, Any]]:
    """The measured part of a row of `compare` for each pair of systems with defined scores.

    Args:
        table: (N, S, F) statistics of the sentences.
    """
    flat = table.reshape(len(table), -1)
    shape = -1, *table.shape[1:]
    sums, kept = table.sum(axis=0), kept_sums(flat, resamples).reshape(shape)
    scores, resampled = combine(sums), combine(resampled_sums(flat, resamples).reshape(shape))
    for one, other in combinations(range(len(names)), 2):
        if not np.isfinite(scores[[one, other]]).all():
            continue
        delta = float(scores[one] - scores[other])
        deltas = resampled[:, one] - resampled[:, other]
        low, high = interval_of(deltas, confidence)
        # a trial swaps the two outputs of each sentence or leaves them, each with probability 1/2
        swapped = sums[other] + (kept[:, one] - kept[:, other])
        shuffled = combine(swapped) - combine(sums[one] + sums[other] - swapped)
        few = len(table) < FEWEST
        yield {
            "a": names[one],
            "b": names[other],
            "sentences": len(table),
            "score_a": float(scores[one]),
            "score_b": float(scores[other]),
            "delta": delta,
            "low": low,
            "high": high,
            "p": None if few else _p_value(deltas - np.nanmean(deltas), delta),
            "p_randomised": _p_value(shuffled, delta),
        }


def _p_value(by_chance: np.ndarray, observed: float) -> float:
    """The share of differences by chance (R,) at least as large as the observed one.

    One is added to both counts, for the observed difference is one of those that chance could make.
    Differences that are not defined (NaN) are left out.
    """
    known = np.abs(by_chance[~np.isnan(by_chance)])
    beyond = (known >= abs(observed) - TIE).sum()
    return float((beyond + 1) / (len(known) + 1))


def _corrected(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of a pair with their p-values corrected; the whole set is not one of the buckets."""
    for name in ("p", "p_randomised"):
        parts = [row for row in rows if row["bucket"] != "all"]
        for row in rows:
            row[f"{name}_corrected"] = row[name]
        for row, p in zip(parts, holm([row[name] for row in parts]), strict=True):
            row[f"{name}_corrected"] = p
    return rows


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
