"""Computes the scores of a test set from its records."""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from nmt.config.keys import EDGES
from nmt.config.schema import EvaluationConfig
from nmt.evaluation.buckets import parts_by_length
from nmt.evaluation.records import Record, in_order
from nmt.evaluation.resampling import (
    count_documents,
    interval_row,
    number_documents,
    resampled_sums,
)
from nmt.evaluation.scores import NO_UNK, REGISTERED, Score, choose_scores
from nmt.evaluation.scores.text import ChrF, SacreBleu, Ter, TextScore
from nmt.utils.processes import map_in_processes
from nmt.utils.progress import Stage
from nmt.utils.text import counted

PART = 20  # number of sentences in a task for a worker process


def keep_statistics(
    records: Sequence[Record], settings: EvaluationConfig, language: str | None = None
) -> None:
    """Stores the statistics of slow or language-dependent scores in the records."""
    for score in choose_scores(settings.scores, language=language):
        if score.slow or score.signature is not None:
            for record, numbers in zip(records, score.all_statistics(records), strict=True):
                _keep(record, score, numbers)


def _keep(record: Record, score: Score, numbers: Sequence[float] | None) -> None:
    if numbers is not None:
        record["statistics"] = {**(record.get("statistics") or {}), score.key: [*numbers]}


def compute_statistics(
    records: Mapping[str, Sequence[Record]], score: Score, *, shown: bool = False
) -> None:
    """Stores the statistics of a slow score in the records that lack them.

    sacreBLEU, chrF and TER are computed in several processes. Other scores are computed in this process,
    because they may use threads (for example of torch), which do not survive a fork.

    Args:
        records: records of one test set, by name of the run or system.
        shown: whether to show progress.
    """
    jobs = []
    if isinstance(score, TextScore) and any(records.values()):
        score.count_references(chain.from_iterable(records.values()))
    for name, rows in records.items():
        lacking = [row for row in rows if score.key not in (row.get("statistics") or {})]
        jobs += [(name, lacking[at : at + PART]) for at in range(0, len(lacking), PART)]
    count = sum(len(part) for _, part in jobs)
    if not count:
        return

    parts = [part for _, part in jobs]
    is_ours = type(score) in (SacreBleu, ChrF, Ter)
    results = (
        map_in_processes(score.all_statistics, parts, count)
        if is_ours
        else map(score.all_statistics, parts)
    )
    title = f"{score.title} of {counted(len({name for name, _ in jobs}), 'system')}"
    with Stage(title, count, "sentence", shown=shown) as stage:
        for (name, part), found in zip(jobs, results, strict=True):
            stage.set_postfix_str(name, refresh=False)
            for record, numbers in zip(part, found, strict=True):
                _keep(record, score, numbers)
            stage.advance(len(part))


def statistics_tables(
    scores: Mapping[str, Score], records: Sequence[Record], *, compute_slow: bool
) -> dict[str, np.ndarray]:
    """Returns the statistics (N, F) of N sentences by key of the score; scores of one field share a table.

    Args:
        compute_slow: whether to compute statistics of slow scores that are missing in the records.
    """
    tables: dict[str, np.ndarray] = {}
    of_field: dict[str, np.ndarray] = {}
    for key, score in scores.items():
        is_field = score.field and not score.slow and type(score).statistics is Score.statistics
        if is_field and score.field in of_field:
            tables[key] = of_field[score.field]
            continue
        tables[key] = score.table(records, compute=compute_slow or not score.slow)
        if is_field:
            of_field[score.field] = tables[key]
    return tables


class Measured:
    """Statistics of each sentence for several scores, and the scores of any subset of the sentences.

    The results do not depend on the order of the records or on the number of processes.

    Args:
        records: records of a test set (`nmt.evaluation.records`).
        scores: scores in addition to BLEU and `bleu_no_unk`, which are always computed.
        resamples: number of bootstrap resamples for intervals; 0: no intervals.
        edges: largest length of each length bucket.
        compute_slow: whether to compute statistics of slow scores that are missing in the records.

    Attributes:
        scores: scores by key. BLEU and `bleu_no_unk` are first.
        ids: (N,) ids of the sentences, ascending.
        lengths: (N,) lengths that determine the buckets.
        documents: (N,) document index of each sentence; None if any record names no document.
        domains: (N,) domain name of each sentence; None if any record names no domain.
        tables: statistics (N, F) by key of the score. The row of a sentence without statistics is NaN.

    Raises:
        ValueError: if a sentence occurs twice.
    """

    def __init__(
        self,
        records: Iterable[Record],
        scores: Sequence[Score],
        resamples: int = 1000,
        edges: Sequence[int] = EDGES,
        *,
        compute_slow: bool = True,
    ) -> None:
        ordered = in_order(records)
        self.resamples = resamples
        self.edges = edges
        given = {score.key: score for score in scores}
        self.scores = {"bleu": REGISTERED["bleu"], NO_UNK.key: NO_UNK} | given
        self.ids = np.array([record["id"] for record in ordered], dtype=np.int64)
        self.lengths = np.array([record["length"] for record in ordered], dtype=np.int64)
        self.documents = number_documents(record.get("document") for record in ordered)
        domains = [record.get("domain") for record in ordered]
        self.domains = None if None in domains or not domains else np.array(domains)
        self.tables = statistics_tables(self.scores, ordered, compute_slow=compute_slow)

    def has(self, key: str) -> np.ndarray:
        """Tells which sentences have a score: (N,) bool; all False if the score was not computed."""
        if key not in self.tables:
            return np.zeros(len(self.ids), dtype=bool)
        return ~np.isnan(self.tables[key][:, 0])

    def overall(self, key: str) -> float:
        """Returns a score of all sentences that have it; NaN if there are none."""
        rows = self.tables[key][self.has(key)]
        return float(self.scores[key].combine(rows.sum(axis=0))) if len(rows) else np.nan

    def of(self, key: str, inside: np.ndarray) -> dict[str, Any] | None:
        """Returns `value`, `low`, `high`, `sentences` and `interval` for the sentences in a mask (N,).

        Returns None if no sentence in the mask has the score, or if the score is undefined.
        """
        chosen = inside & self.has(key)
        rows = self.tables[key][chosen]
        if not len(rows):
            return None
        documents = None if self.documents is None else self.documents[chosen]
        resamples = self.resamples if len(rows) > 1 else 0  # one sentence has no variance
        values = self.scores[key].combine(resampled_sums(rows, resamples, documents))
        row = interval_row(values, len(rows), count_documents(documents))
        return row if np.isfinite(row["value"]) else None

    def rows(self, test_set: str, key: str) -> Iterator[dict[str, Any]]:
        """Yields the rows of `scores.csv` for one score: the whole set, then its buckets.

        Buckets in which the score is undefined are left out.
        """
        subset = "no_unk" if key == NO_UNK.key else "all"
        head = {"set": test_set, "subset": subset, "score": key.removesuffix("_no_unk")}
        edges = self.edges if self.scores[key].by_length else None
        for where, part in parts_by_length(self.lengths, edges):
            if (numbers := self.of(key, part)) is not None:
                yield head | where | numbers


def score_set(
    name: str, records: Iterable[Record], settings: EvaluationConfig, language: str | None = None
) -> list[dict[str, Any]]:
    """Computes the rows of `scores.csv` for a test set; statistics stored in the records are reused."""
    chosen = choose_scores(settings.scores, language=language)
    measured = Measured(records, chosen, settings.resamples, settings.edges or ())
    return [row for key in measured.scores for row in measured.rows(name, key)]


@dataclass(frozen=True, eq=False)
class CommonSentences:
    """The N sentences that have a score in all runs of a comparison."""

    ids: np.ndarray  # (N,) ascending
    lengths: np.ndarray  # (N,)
    documents: np.ndarray | None  # (N,) document index of each sentence; None if unknown
    domains: np.ndarray | None  # (N,) domain name of each sentence; None if unknown
    tables: list[np.ndarray]  # statistics (N, F) of each run


def common_sentences(runs: Sequence[Measured], key: str) -> CommonSentences:
    """Selects the sentences that have a score in all runs."""
    ids = functools.reduce(np.intersect1d, [run.ids[run.has(key)] for run in runs])
    indices = [np.searchsorted(run.ids, ids) for run in runs]
    tables = [
        run.tables[key]
        if len(ids) == len(run.ids)
        else run.tables[key][at]  # a copy only if needed
        for run, at in zip(runs, indices, strict=True)
    ]
    first, at = runs[0], indices[0]
    documents = None if first.documents is None else first.documents[at]
    domains = None if first.domains is None else first.domains[at]
    return CommonSentences(ids, first.lengths[at], documents, domains, tables)
