"""All scores of a test set from its records: the rows of `scores.csv`."""

import functools
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from nmt.config import EvaluationConfig
from nmt.evaluation.buckets import split_by_length
from nmt.evaluation.records import Record, in_order
from nmt.evaluation.resampling import interval_of, resampled_sums
from nmt.evaluation.scores import NO_UNK, REGISTERED, Score, choose_scores


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


class Measured:
    """The statistics of some scores, sentence by sentence, and the scores of any part of them.

    They are a function of the set of records: neither their order nor the number of processes they
    come from matters.

    Args:
        records: of `nmt.evaluation.records`.
        scores: beside BLEU and BLEU with `<unk>` forbidden (`bleu_no_unk`).
        settings: edges of the buckets, resamples of intervals.
        computed: keys of the scores whose statistics are computed where records lack them, of those
            that take long; None: all.

    Attributes:
        scores: by key, these two first.
        ids: (N,) of the sentences, ascending.
        lengths: (N,) that they are bucketed by.
        tables: by key (N, F), a row of NaN where a sentence has none.

    Raises:
        ValueError: if a sentence occurs twice.
    """

    def __init__(
        self,
        records: Iterable[Record],
        scores: Sequence[Score],
        settings: EvaluationConfig,
        *,
        computed: Collection[str] | None = None,
    ) -> None:
        ordered = in_order(records)
        self.resamples, self.edges = settings.resamples, list(settings.edges or ())
        given = {score.key: score for score in scores}
        self.scores = {"bleu": REGISTERED["bleu"], NO_UNK.key: NO_UNK} | given
        self.ids = np.array([record["id"] for record in ordered], dtype=np.int64)
        self.lengths = np.array([record["length"] for record in ordered], dtype=np.int64)
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
        if not len(rows):
            return None
        resamples = self.resamples if len(rows) > 1 else 0  # one sentence tells nothing of another
        value, *_ = values = self.scores[key].combine(resampled_sums(rows, resamples))
        if not np.isfinite(value):
            return None
        low, high = interval_of(values[1:])
        return {
            "value": float(value),
            "low": low,
            "high": high,
            "sentences": len(rows),
            "interval": "" if low is None else "sentences",
        }

    def rows(
        self, test_set: str, key: str, inside: np.ndarray | None = None
    ) -> Iterator[dict[str, Any]]:
        """Rows of `scores.csv` of one score on a part of the sentences (N,): the part, then its buckets.

        Where the score is undefined there is no row.
        """
        inside = np.ones(len(self.ids), dtype=bool) if inside is None else inside
        parts: list[tuple[dict[str, Any], np.ndarray]] = [({}, inside)]
        if self.scores[key].by_length:
            for first, last, part in split_by_length(self.lengths, self.edges):
                parts.append(({"from": first, "to": last}, inside & part))
        subset = "no_unk" if key == NO_UNK.key else "all"
        head = {"set": test_set, "subset": subset, "score": key.removesuffix("_no_unk")}
        for where, part in parts:
            numbers = self.of(key, part)
            if numbers is not None:
                yield head | where | numbers


def score_set(
    name: str, records: Iterable[Record], settings: EvaluationConfig, language: str | None = None
) -> list[dict[str, Any]]:
    """Every chosen score of a test set, as rows of `scores.csv`; arguments as of `keep_statistics`."""
    measured = Measured(records, choose_scores(settings.scores, language=language), settings)
    return [row for key in measured.scores for row in measured.rows(name, key)]


def common_tables(runs: Sequence[Measured], key: str) -> tuple[np.ndarray, list[np.ndarray]]:
    """The sentences for which all runs have a score: their lengths (N,), and (N, F) of each run."""
    ids = functools.reduce(np.intersect1d, [run.ids[run.has(key)] for run in runs])
    places = [np.searchsorted(run.ids, ids) for run in runs]
    tables = [run.tables[key][at] for run, at in zip(runs, places, strict=True)]
    return runs[0].lengths[places[0]], tables
