"""All scores of a test set from its records: the rows of `scores.csv`."""

import functools
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from nmt.config import EvaluationConfig
from nmt.evaluation.buckets import assign, buckets
from nmt.evaluation.curves import Curve, kernel
from nmt.evaluation.records import Record, in_order
from nmt.evaluation.resampling import interval
from nmt.evaluation.scores import NO_UNK, REGISTERED, Score, choose_scores

Name = TypeVar("Name", bound=Hashable)  # of a group of runs


def keep_statistics(
    records: Iterable[Record], settings: EvaluationConfig, language: str | None = None
) -> None:
    """Stores statistics that are slow to compute, or depend on the language, in the records.

    Args:
        language: of the target, for the tokenisers of text scores.
    """
    chosen = choose_scores(settings.scores, language=language)
    stored = [score for score in chosen if score.slow or score.signature is not None]
    for record in records:
        kept = {score.key: score.statistics(record) for score in stored}
        kept = {key: numbers for key, numbers in kept.items() if numbers is not None}
        if kept:
            record["statistics"] = {**(record.get("statistics") or {}), **kept}


def score_set(
    name: str,
    records: Iterable[Record],
    settings: EvaluationConfig,
    language: str | None = None,
) -> list[dict[str, Any]]:
    """Every chosen score of a test set, as rows of `scores.csv`.

    The result is a function of the set of records: neither their order nor the number of processes
    they come from matters.

    Args:
        name: of the test set.
        records: of `nmt.evaluation.records`; at least one.
        settings: scores, edges and side of the buckets, resamples of intervals.
        language: of the target, for the tokenisers of text scores.

    Raises:
        ValueError: if there is no record, or one twice.
    """
    measured = Measured(records, choose_scores(settings.scores, language=language), settings)
    if not len(measured.ids):
        raise ValueError("no sentences to score")
    everyone = np.ones(len(measured.ids), dtype=bool)
    keys = measured.scores
    return [
        row
        for key in keys
        for row in score_rows(measured, name, key, everyone, settings.edges or ())
    ]


def score_rows(
    measured: "Measured", test_set: str, key: str, inside: np.ndarray, edges: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """Rows of `scores.csv` of one score on a part of the sentences (N,): the part, then its buckets.

    Where the score is undefined there is no row.
    """
    parts: list[tuple[dict[str, Any], np.ndarray]] = [({}, inside)]
    if measured.scores[key].by_length:
        places = assign(measured.lengths, edges)
        parts += [(b.row(), inside & (places == n)) for n, b in enumerate(buckets(edges))]
    subset = "no_unk" if key == NO_UNK.key else "all"
    head = {"set": test_set, "subset": subset, "score": key.removesuffix("_no_unk")}
    for where, part in parts:
        found = measured.of(key, part)
        if found is not None:
            yield head | where | found


class Measured:
    """The statistics of some scores, sentence by sentence, and the scores of any part of them.

    Attributes:
        scores: by key; BLEU and BLEU with `<unk>` forbidden (`bleu_no_unk`) always, and first.
        ids: (N,) of the sentences, ascending.
        lengths: (N,) that they are bucketed by.
        unknown: (N,) words of the pair that the shortlists lack; -1 where that is not known.
        tables: by key (N, F), a row of NaN where a sentence has none.
    """

    def __init__(
        self,
        records: Iterable[Record],
        scores: Sequence[Score],
        settings: EvaluationConfig,
        *,
        computed: Collection[str] | None = None,
    ) -> None:
        """Raises ValueError where a sentence occurs twice.

        Args:
            computed: keys of the scores whose statistics are computed where records lack them,
                of those that take long; None: all.
        """
        ordered = in_order(records)
        self.resamples = settings.resamples
        given = {score.key: score for score in scores}
        self.scores = {"bleu": REGISTERED["bleu"], NO_UNK.key: NO_UNK} | given
        self.ids = np.array([record["id"] for record in ordered], dtype=np.int64)
        self.lengths = np.array([record["length"] for record in ordered], dtype=np.int64)
        counts = [record.get("unknown_words") for record in ordered]
        self.unknown = np.array([-1 if count is None else sum(count) for count in counts])
        self.tables = {
            key: score.table(ordered, compute=computed is None or key in computed or not score.slow)
            for key, score in self.scores.items()
        }

    def has(self, key: str) -> np.ndarray:
        """Which sentences have a score: (N,) bool; none has one that was not measured."""
        if key not in self.tables:
            return np.zeros(len(self.ids), dtype=bool)
        return ~np.isnan(self.tables[key][:, 0])

    def of(self, key: str, inside: np.ndarray) -> dict[str, Any] | None:
        """`value`, `low`, `high`, `sentences` and `interval` of a part (N,), as in `scores.csv`.

        None where no sentence of the part has the score, or it is undefined.
        """
        rows = self.tables[key][inside & self.has(key)]
        combine = self.scores[key].combine
        value = float(combine(rows.sum(axis=0))) if len(rows) else np.nan
        if not np.isfinite(value):
            return None
        low, high = interval(rows, combine, resamples=self.resamples)
        return {
            "value": value,
            "low": low,
            "high": high,
            "sentences": len(rows),
            "interval": "" if low is None else "sentences",
        }


def length_curves(
    groups: Mapping[Name, Sequence[Measured]], keys: Iterable[str]
) -> dict[str, dict[Name, Curve]]:
    """The curve over length of each score for each group of runs that has it.

    The curves of a score are of the sentences for which all these runs have it, so that any two can be
    compared by `nmt.evaluation.curves.difference` and `ratio`.

    Args:
        groups: by name, the runs that differ by nothing but their seed, on one test set.
        keys: of scores.

    Returns:
        By key, then by name. A score is absent without a common sentence, and with too few sentences
        of similar lengths for a curve.
    """
    curves: dict[str, dict[Name, Curve]] = {}
    known: dict[tuple[int, bytes], np.ndarray] = {}  # several scores are functions of the same sums
    for key in keys:
        having = {name: rs for name, rs in groups.items() if all(run.has(key).any() for run in rs)}
        runs = [run for each in having.values() for run in each]
        if not runs:
            continue
        ids = functools.reduce(np.intersect1d, [run.ids[run.has(key)] for run in runs])
        first = runs[0]
        of_length = kernel(first.lengths[np.searchsorted(first.ids, ids)]) if len(ids) else None
        if of_length is None or not len(of_length.lengths):
            continue
        curves[key] = {}
        for name, members in having.items():
            values = []
            for run in members:
                table = run.tables[key][np.searchsorted(run.ids, ids)]
                place = id(run), table.tobytes()
                if place not in known:
                    known[place] = of_length.sums(table, run.resamples)
                values.append(run.scores[key].curve(known[place]))
            curves[key][name] = Curve(of_length, [np.stack(values)])
    return curves
