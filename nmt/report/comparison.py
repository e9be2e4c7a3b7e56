"""What can only be said of several runs together: shared subsets and significance.

Every score comes from `nmt.evaluation`; this file decides which sentences and which pairs it is asked
about.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nmt.config import EvaluationConfig
from nmt.config.keys import CONFIDENCE, EDGES
from nmt.evaluation import significance
from nmt.evaluation.buckets import buckets
from nmt.evaluation.results import score_of
from nmt.evaluation.scores import NO_UNK, REGISTERED, Score
from nmt.evaluation.summary import Measured, by_length, by_unknown_words
from nmt.report.groups import bleu_of, paired, paired_note
from nmt.report.no_unk import no_unk_subset
from nmt.report.runs import FinishedRun, known_scores
from nmt.report.table import levels
from nmt.utils.errors import InputError
from nmt.utils.progress import Stage


@dataclass(frozen=True)
class SetComparison:
    """All runs on one test set.

    Attributes:
        name: of the test set.
        runs: those that were scored on it.
        results: `test.<set>` of results.json by label, its `bleu.no_unk` and `by_length.no_unk` on
            the shared subset, and scores filled in that the records give and results.json lacks.
        known: how to show each score that some run has, by key: the entries of results.json.
        no_unk_pairs: sentences without unknown words for every run.
        no_unk_shared: whether some run alone would have had more of them.
        recounted: labels of the runs whose buckets had other edges, or were of the other side, than
            the first run's, and are counted anew.
        confidence: share of the resamples inside the intervals by label; that of differences is the
            largest.
        significance: rows of `nmt.evaluation.significance.compare` by key of the score.
        paired: labels of the runs that these rows are of, and whose sentences a page shows
            (`nmt.report.groups.paired`).
    """

    name: str
    runs: list[FinishedRun]
    results: dict[str, dict[str, Any]]
    known: dict[str, dict[str, Any]]
    no_unk_pairs: int
    no_unk_shared: bool
    recounted: list[str]
    confidence: dict[str, float]
    significance: dict[str, list[dict[str, Any]]]
    paired: list[str]

    def rows(self, label: str) -> list[dict[str, Any]]:
        """The buckets of a run: `by_length` of its results."""
        found: list[dict[str, Any]] = self.results[label]["by_length"]
        return found

    def shown_scores(self) -> dict[str, dict[str, Any]]:
        """How to show every score, by key; BLEU first, then without unknown words.

        In a sentence BLEU is called by its `name`: the title tells two columns apart.
        """
        bleu = self.known.get("bleu") or REGISTERED["bleu"].description()
        return {
            "bleu": bleu | {"title": "BLEU, all", "name": bleu["title"]},
            "bleu_no_unk": bleu | {"title": NO_UNK.title},
            **{key: about for key, about in self.known.items() if key != "bleu"},
        }

    @property
    def levels(self) -> str:
        """The confidence levels of the runs' own intervals, as people write them."""
        return levels(self.confidence.values())

    @property
    def level_of_differences(self) -> str:
        """The confidence level of the intervals of differences, as people write it."""
        return levels([max(self.confidence.values())])

    @property
    def pairs_note(self) -> str | None:
        """Of which runs pairs and sentences are; None where they are of all."""
        return paired_note(len(self.runs), "runs")

    def pairable(self) -> list[FinishedRun]:
        """The runs that are compared pair by pair, and whose sentences are shown."""
        return [run for run in self.runs if run.label in self.paired]

    def compared(self, run: FinishedRun) -> FinishedRun:
        """One of the runs with `results` in place of what it measured alone."""
        test = {**run.results["test"], self.name: self.results[run.label]}
        return replace(run, results={**run.results, "test": test})


def scored_sets(runs: Sequence[FinishedRun]) -> list[str]:
    """Every test set that some run was scored on."""
    return list(dict.fromkeys(name for run in runs for name in run.sets))


def compare_sets(
    runs: Sequence[FinishedRun],
    resamples: int = 1000,
    scores: Sequence[Score] | None = None,
    *,
    shown: bool = False,
) -> list[SetComparison]:
    """`compare_set` on every test set that some run was scored on."""
    return [compare_set(runs, name, resamples, scores, shown=shown) for name in scored_sets(runs)]


def compare_set(
    runs: Sequence[FinishedRun],
    name: str,
    resamples: int = 1000,
    scores: Sequence[Score] | None = None,
    *,
    shown: bool = False,
) -> SetComparison:
    """Compares runs on one test set.

    Buckets are those of the first run: where another run has others, its sentences are counted anew.

    Args:
        runs: those not scored on the set are passed over.
        resamples: bootstrap resamples behind the intervals of shared subsets; resamples and trials
            behind each test.
        scores: that are tested, and computed where only the records give them. None: those of nmt
            that results.json of some run has. Those are completed from the records in any case;
            what takes long is computed anew for `scores` only.
        shown: show progress.

    Raises:
        InputError: where buckets differ, and the sentences of a run are not there; or where runs have
            other statistics for a score.
    """
    present = [run for run in runs if name in run.sets]
    known = known_scores(present)
    own = [score for key, score in REGISTERED.items() if key in known]
    computed = {score.key for score in scores or ()}
    own_or_asked = [*(scores or ()), *(score for score in own if score.key not in computed)]
    if scores is None:
        scores = own
    confidence = {run.label: run.confidence(name) for run in present}
    limits = edges(present, name)
    measured = {}
    with Stage(f"measuring {name}", len(present), "run", shown=shown) as stage:
        for run in present:
            settings = EvaluationConfig(
                edges=limits, resamples=resamples, confidence=confidence[run.label]
            )
            table = Measured(run.translations(name), own_or_asked, settings, computed=computed)
            measured[run.label] = table
            stage.advance()
    _check_widths(measured, name)
    subset, shared = no_unk_subset(present, name)
    results: dict[str, dict[str, Any]] = {}
    recounted: list[str] = []
    side = _side(present[0].results["test"][name]) if present else "source"
    for run in present:
        result = {**run.results["test"][name]}
        result["by_length"] = [dict(row) for row in result.get("by_length") or []]
        table = measured[run.label]
        if _counted_otherwise(result, side, limits):
            table.lengths = _lengths_of(run, table, measured[present[0].label])
            result |= {
                "bucket_by": side,
                "by_length": by_length(table, limits),
            }
            recounted.append(run.label)
        _fill(result, table, computed)
        if shared:
            _rescore_no_unk(result, table, np.isin(table.ids, list(subset)))
        results[run.label] = result
    level = max(confidence.values(), default=CONFIDENCE)
    pairs = paired(bleu_of(results), [run.label for run in present if run.external])
    with Stage(f"testing differences on {name}", shown=shown):
        tested = _significance(
            {label: measured[label] for label in pairs}, scores, limits, resamples, level
        )
    for score in scores:
        if score.key in tested or any(score_of(each, score.key) for each in results.values()):
            known.setdefault(score.key, score.description())
    return SetComparison(
        name=name,
        runs=present,
        results=results,
        known=known,
        no_unk_pairs=len(subset),
        no_unk_shared=shared,
        recounted=recounted,
        confidence=confidence,
        significance=tested,
        paired=pairs,
    )


def edges(runs: Sequence[FinishedRun], name: str) -> list[int]:
    """Last lengths of the buckets, as the first run that says so was scored with."""
    for run in runs:
        configured = (run.config.get("evaluation") or {}).get("edges")
        if configured:
            return list(configured)
    scored = [run.results["test"][name] for run in runs if name in run.sets]
    found = {row["to"] for result in scored for row in result.get("by_length") or []}
    return sorted(found - {None}) or list(EDGES)


def _check_widths(measured: Mapping[str, Measured], name: str) -> None:
    """Refuses runs whose records have other numbers of statistics for a score."""
    widths: dict[str, tuple[str, int]] = {}
    for label, each in measured.items():
        for key, table in each.tables.items():
            if not each.has(key).any():
                continue
            first, width = widths.setdefault(key, (label, table.shape[1]))
            if table.shape[1] != width:
                raise InputError(
                    f"{label}: translations/{name}.jsonl: {key}: {table.shape[1]} statistics a "
                    f"sentence, where {first} has {width}"
                )


def _side(result: Mapping[str, Any]) -> str:
    return str(result.get("bucket_by") or "source")


def _counted_otherwise(result: Mapping[str, Any], side: str, limits: Sequence[int]) -> bool:
    """Whether the buckets of a test set are not those of `limits` on this side."""
    known = {(bucket.first, bucket.last) for bucket in buckets(limits)}
    rows = result["by_length"]
    return _side(result) != side or any((row["from"], row["to"]) not in known for row in rows)


def _lengths_of(run: FinishedRun, measured: Measured, first: Measured) -> np.ndarray:
    """The lengths (N,) of a run's sentences as the first run has them.

    Raises:
        InputError: where the sentences are not all there.
    """
    if not len(measured.ids) or not np.isin(measured.ids, first.ids).all():
        raise InputError(
            f"{run.label}: its buckets have other evaluation.edges, or another evaluation.bucket_by, "
            "than the first run's, and its sentences, or the first run's, are not there to count anew"
        )
    return first.lengths[np.searchsorted(first.ids, measured.ids)]


def _inside(row: Mapping[str, Any], lengths: np.ndarray) -> np.ndarray:
    """Which sentences (N,) belong to a bucket; a length of 0 counts as 1."""
    last = np.inf if row.get("to") is None else row["to"]
    return (np.maximum(lengths, 1) >= row["from"]) & (lengths <= last)


def _rescore_no_unk(result: dict[str, Any], measured: Measured, subset: np.ndarray) -> None:
    """Scores without unknown words on the sentences in `subset` (N,)."""
    result["bleu"] = {**result["bleu"], "no_unk": measured.of(NO_UNK.key, subset)}
    for row in result["by_length"]:
        row["no_unk"] = measured.of(NO_UNK.key, subset & _inside(row, measured.lengths))


def _fill(result: dict[str, Any], measured: Measured, asked: Collection[str]) -> None:
    """Puts in the scores and the intervals that only the records give, and buckets' mean lengths.

    Args:
        asked: keys of the scores that were asked for: a section is begun for these alone.
    """
    everyone = np.ones(len(measured.ids), dtype=bool)
    for key in measured.others:
        section = measured.scores[key].section
        if section:
            found = {**(result.get(section) or {})}
            _complete(found, key, measured, everyone, add=key in asked)
            if found:
                found.setdefault("sentences", int(measured.has(key).sum()))
                result[section] = found
        else:
            _complete(result, key, measured, everyone)
    result.setdefault("by_unknown_words", by_unknown_words(measured))
    for row in result["by_length"]:
        inside = _inside(row, measured.lengths)
        if not inside.any():
            continue
        row.setdefault("mean_length", float(measured.lengths[inside].mean()))
        for key in measured.others:
            if measured.scores[key].by_length:
                _complete(row, key, measured, inside)


def _complete(
    row: dict[str, Any], key: str, measured: Measured, inside: np.ndarray, *, add: bool = True
) -> None:
    """Puts in a score of the sentences `inside` (N,), or its interval beside a score without one.

    An interval is left out where the records give another score: it would be of another text.

    Args:
        add: whether a score that the row lacks is put in.
    """
    stored = row.get(key)
    known = stored if isinstance(stored, dict) else {}
    value = known.get("score")
    if (value is None and not add) or any(known.get(end) is not None for end in ("low", "high")):
        return
    found = measured.of(key, inside)
    if found is None or found["score"] is None:
        return
    if value is None:
        row[key] = known | found
    elif math.isclose(value, found["score"], rel_tol=1e-6, abs_tol=1e-9):
        row[key] = known | {end: found[end] for end in ("low", "high")}


def _significance(
    measured: Mapping[str, Measured],
    scores: Sequence[Score],
    limits: Sequence[int],
    resamples: int,
    confidence: float,
) -> dict[str, list[dict[str, Any]]]:
    """The tests of each score on the sentences that all runs which have it have it for."""
    alike: dict[Any, list[Score]] = {}  # scores that the same runs have for the same sentences
    for score in scores if resamples else ():
        having = tuple(label for label, each in measured.items() if each.has(score.key).any())
        if len(having) > 1:
            ids = (measured[label].ids[measured[label].has(score.key)] for label in having)
            common = functools.reduce(np.intersect1d, ids)
            alike.setdefault((having, tuple(common.tolist())), []).append(score)
    found: dict[str, list[dict[str, Any]]] = {}
    for (having, common), together in alike.items():
        if not common:
            continue
        places = {label: np.searchsorted(measured[label].ids, common) for label in having}
        found |= significance.compare(
            {
                label: {s.key: measured[label].tables[s.key][places[label]] for s in together}
                for label in having
            },
            {score.key: score.combine for score in together},
            measured[having[0]].lengths[places[having[0]]],
            limits,
            resamples=resamples,
            confidence=confidence,
        )
    return {
        score.key: [row for row in found[score.key] if score.by_length or row["bucket"] == "all"]
        for score in scores
        if score.key in found
    }
