"""What can only be said of several runs together: shared subsets, significance, decay with length.

Every score comes from `nmt.evaluation`; this file decides which sentences and which pairs it is asked about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from sacrebleu.metrics import BLEU

from nmt.evaluation import significance
from nmt.evaluation.bleu import bleu_scores
from nmt.evaluation.bootstrap import interval
from nmt.report.runs import CONFIDENCE, Run

EDGES = (10, 20, 30, 40, 50, 60)


@dataclass(frozen=True)
class Decay:
    """How BLEU falls with length.

    Attributes:
        best, last: the bucket of highest BLEU and the one of longest sentences, as rows of `by_length`.
        drop: BLEU of the best bucket less that of the last, in points.
        slope: BLEU points per 10 more words: least squares over the buckets, each at the mean length of its sentences
            and weighing as many as it has; None where there is one bucket only.
    """

    best: dict[str, Any]
    last: dict[str, Any]
    drop: float
    slope: float | None


@dataclass(frozen=True)
class SetComparison:
    """All runs on one test set.

    Attributes:
        name: of the test set.
        runs: those that were scored on it.
        scores: `test.<set>` of results.json by label, its `bleu.no_unk` and `by_length.no_unk` on the shared subset.
        lengths: its rows of `by_length` by label, each with `mean_length`, `sacrebleu` and `error_rate` where known.
        decay: by label.
        no_unk_pairs: sentences without unknown words for every run.
        no_unk_shared: whether some run alone would have had more of them.
        confidence: share of the resamples inside the intervals by label; differences have the largest of them.
        significance: rows of `nmt.evaluation.significance.compare` by paired bootstrap, for every pair of runs, each
            with `p_randomised` and `p_randomised_corrected` by approximate randomisation.
    """

    name: str
    runs: list[Run]
    scores: dict[str, dict[str, Any]]
    lengths: dict[str, list[dict[str, Any]]]
    decay: dict[str, Decay]
    no_unk_pairs: int
    no_unk_shared: bool
    confidence: dict[str, float]
    significance: list[dict[str, Any]]

    def compared(self, run: Run) -> Run:
        """One of the runs with `scores` in place of what it measured alone."""
        test = {**run.results["test"], self.name: self.scores[run.label]}
        return replace(run, results={**run.results, "test": test})


def test_sets(runs: Sequence[Run]) -> list[str]:
    """Every test set that some run was scored on."""
    return list(dict.fromkeys(name for run in runs for name in run.sets))


def compare_set(runs: Sequence[Run], name: str, resamples: int = 1000) -> SetComparison:
    """Compares runs on one test set.

    Args:
        runs: those not scored on the set are passed over.
        resamples: bootstrap resamples behind the intervals of shared subsets; resamples, or trials, behind each test.
    """
    present = [run for run in runs if name in run.sets]
    translations = {run.label: run.translations(name) for run in present}
    subset, shared = _no_unk_subset(present, translations)
    confidence = {run.label: run.confidence(name) for run in present}
    scores, lengths, decay = {}, {}, {}
    scorers: dict[tuple[str, ...], BLEU] = {}
    for run in present:
        rows = translations[run.label]
        result = dict(run.results["test"][name])
        by_length = [dict(row) for row in result.get("by_length") or []]
        if shared:
            settings = {"resamples": resamples, "confidence": confidence[run.label]}
            _rescore_no_unk(result, by_length, rows, subset, settings)
        _add_error_rates(by_length, result)
        _add_sentences(by_length, rows, scorers)
        scores[run.label] = {**result, "by_length": by_length}
        lengths[run.label] = by_length
        if by_length:
            decay[run.label] = measure_decay(by_length)
    return SetComparison(
        name=name,
        runs=present,
        scores=scores,
        lengths=lengths,
        decay=decay,
        no_unk_pairs=len(subset),
        no_unk_shared=shared,
        confidence=confidence,
        significance=_significance(
            present, translations, name, resamples, max(confidence.values(), default=CONFIDENCE)
        ),
    )


def measure_decay(by_length: Sequence[dict[str, Any]]) -> Decay:
    """The fall of BLEU over the buckets of one run.

    >>> rows = [
    ...     {"from": 1, "to": 10, "score": 30.0, "sentences": 5},
    ...     {"from": 11, "to": 20, "score": 20.0, "sentences": 5},
    ... ]
    >>> decay = measure_decay(rows)
    >>> decay.drop, round(decay.slope, 6)
    (10.0, -10.0)
    """
    best, last = max(by_length, key=lambda row: row["score"]), by_length[-1]
    at = np.array([_mean_length(row) for row in by_length])
    slope = None
    if len(by_length) > 1:
        score = np.array([row["score"] for row in by_length])
        weight = np.array([row["sentences"] for row in by_length], dtype=float)
        centred = at - np.average(at, weights=weight)
        slope = float(10 * (weight * centred * score).sum() / (weight * centred**2).sum())
    return Decay(best, last, best["score"] - last["score"], slope)


def bucket_name(row: dict[str, Any]) -> str:
    """`11–20`, or `61+` for the open bucket."""
    return f"{row['from']}+" if row.get("to") is None else f"{row['from']}–{row['to']}"


def edges(runs: Sequence[Run], name: str) -> list[int]:
    """Last lengths of the buckets, as the first run that says so was scored with."""
    for run in runs:
        configured = (run.config.get("evaluation") or {}).get("edges")
        if configured:
            return list(configured)
    scored = [run.results["test"][name] for run in runs if name in run.sets]
    found = {row["to"] for result in scored for row in result.get("by_length") or []}
    return sorted(found - {None}) or list(EDGES)


def _mean_length(row: dict[str, Any]) -> float:
    if row.get("mean_length") is not None:
        return row["mean_length"]
    return row["from"] + 5.0 if row.get("to") is None else (row["from"] + row["to"]) / 2


def _inside(row: dict[str, Any], length: int) -> bool:
    return (length >= row["from"] or row["from"] == 1) and (
        row.get("to") is None or length <= row["to"]
    )


def _no_unk_subset(
    runs: Sequence[Run], translations: dict[str, list[dict[str, Any]]]
) -> tuple[set[int], bool]:
    """Sentences that every run with a shortlist can write without `<unk>`; whether any run loses some by that.

    An outside system can write any word, so that it narrows nothing.
    """
    own = {
        run.label: {row["id"] for row in translations[run.label] if row.get("no_unk")}
        for run in runs
        if not run.external
    }
    own = {label: ids for label, ids in own.items() if ids}
    if not own:
        return set(), False
    subset = set.intersection(*own.values())
    return subset, any(ids != subset for ids in own.values())


def _rescore_no_unk(
    result: dict[str, Any],
    by_length: list[dict[str, Any]],
    rows: list[dict[str, Any]],
    subset: set[int],
    settings: dict[str, Any],
) -> None:
    """Scores the sentences in `subset`; `settings` are of `nmt.evaluation.bootstrap.interval`."""
    judged = [
        row for row in rows if row["id"] in subset and row.get("bleu_stats_no_unk") is not None
    ]
    if not judged:
        return
    result["bleu"] = {**result["bleu"], "no_unk": _score(judged, settings)}
    for bucket in by_length:
        inside = [row for row in judged if _inside(bucket, row["length"])]
        bucket["no_unk"] = _score(inside, settings) if inside else None


def _score(rows: list[dict[str, Any]], settings: dict[str, Any]) -> dict[str, Any]:
    statistics = np.array([row["bleu_stats_no_unk"] for row in rows], dtype=np.int64)
    low, high = interval(statistics, bleu_scores, **settings)
    score = float(bleu_scores(statistics.sum(axis=0)))
    return {"score": score, "low": low, "high": high, "sentences": len(rows)}


def _add_error_rates(by_length: list[dict[str, Any]], result: dict[str, Any]) -> None:
    aligned = (result.get("alignment") or {}).get("by_length") or []
    rows = {(row["from"], row.get("to")): row for row in aligned}
    for bucket in by_length:
        row = rows.get((bucket["from"], bucket.get("to")))
        if row is not None:
            keys = ("error_rate", "low", "high", "sentences")
            bucket["error_rate"] = {key: row.get(key) for key in keys}


def _add_sentences(
    by_length: list[dict[str, Any]],
    rows: list[dict[str, Any]],
    scorers: dict[tuple[str, ...], BLEU],
) -> None:
    """Mean length of a bucket's sentences, and sacreBLEU of their text as people read it.

    Scorers are kept by the references they hold, so that those of a bucket are counted once for all runs.
    """
    for bucket in by_length:
        inside = [row for row in rows if _inside(bucket, row["length"])]
        if not inside:
            continue
        bucket["mean_length"] = float(np.mean([row["length"] for row in inside]))
        if all(row.get("raw_reference") is not None for row in inside):
            references = tuple(row["raw_reference"] for row in inside)
            if references not in scorers:
                scorers[references] = BLEU(force=True, references=[list(references)])
            hypotheses = [row["detokenised"] for row in inside]
            bucket["sacrebleu"] = scorers[references].corpus_score(hypotheses, None).score


def _significance(
    runs: Sequence[Run],
    translations: dict[str, list[dict[str, Any]]],
    name: str,
    resamples: int,
    confidence: float,
) -> list[dict[str, Any]]:
    if resamples == 0:
        return []
    by_id = {
        run.label: {row["id"]: row for row in translations[run.label] if row.get("bleu_stats")}
        for run in runs
    }
    by_id = {label: rows for label, rows in by_id.items() if rows}
    if len(by_id) < 2:
        return []
    common = sorted(set.intersection(*(set(rows) for rows in by_id.values())))
    if not common:
        return []
    statistics = {
        label: np.array([rows[i]["bleu_stats"] for i in common], dtype=np.int64)
        for label, rows in by_id.items()
    }
    first = next(iter(by_id.values()))
    lengths = [first[i]["length"] for i in common]
    limits = edges(runs, name)
    rows = []
    for a, b in combinations(by_id, 2):
        bootstrap, randomised = (
            significance.compare(
                a,
                statistics[a],
                b,
                statistics[b],
                lengths,
                limits,
                test=test,
                trials=resamples,
                confidence=confidence,
            )
            for test in ("bootstrap", "randomisation")
        )
        rows += [
            row | {"p_randomised": other["p"], "p_randomised_corrected": other["p_corrected"]}
            for row, other in zip(bootstrap, randomised, strict=True)
        ]
    return rows
