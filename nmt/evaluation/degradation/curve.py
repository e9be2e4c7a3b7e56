"""Scores over length of several runs on one text, all resampled with the same sentences.

Legend: N sentences, M samples (the sentences themselves and R resamples), C cells of length (each
with sentences), B buckets (the cells with enough sentences), F statistics of a sentence.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nmt.evaluation.buckets import assign
from nmt.evaluation.degradation.fit import LengthAxis, Range, inside
from nmt.evaluation.records import Record, in_order
from nmt.evaluation.resampling import bucket_sums
from nmt.evaluation.scores import Score

WIDTH = 5  # words of a bucket
FEWEST_SENTENCES = 20  # of a bucket that is fitted to: BLEU of fewer is biased


@dataclass(frozen=True)
class ResampledText:
    """Sentences that were resampled: the same for every run and score on them.

    Attributes:
        first, last: (C,) the lengths that a cell begins and ends with.
        fitted: (C,) which cells are buckets.
        sentences: (C,) in the sample.
        axis: the buckets.
    """

    first: np.ndarray
    last: np.ndarray
    fitted: np.ndarray
    sentences: np.ndarray
    axis: LengthAxis

    def inside(self, part: Range, cap: int | None) -> np.ndarray:
        """Which cells (C,) lie entirely in a range."""
        return inside(self.first, self.last, part, cap)


@dataclass(frozen=True, eq=False)
class Curve:
    """A score of one run over length.

    Attributes:
        text: the sentences.
        score: what is measured.
        sums: (M, C, F) sums of its statistics.
    """

    text: ResampledText
    score: Score
    sums: np.ndarray

    @functools.cached_property
    def buckets(self) -> np.ndarray:
        """(M, B) scores of the buckets, from the summed statistics of each; 0 of an empty one."""
        scores = self.score.values(self.sums[:, self.text.fitted])
        return np.where(self.text.axis.weights > 0, scores, 0.0)

    def corpus(self, part: Range, cap: int | None) -> np.ndarray | None:
        """(M,) the score of all sentences of a range; None where it has none."""
        if (part, cap) not in self._corpora:
            cells = self.text.inside(part, cap)
            sums = np.matmul(cells.astype(np.float64), self.sums)
            self._corpora[part, cap] = self.score.values(sums) if cells.any() else None
        return self._corpora[part, cap]

    @functools.cached_property
    def _corpora(self) -> dict[tuple[Range, int | None], np.ndarray | None]:
        """A cache: a run is compared with many others."""
        return {}


def curves(
    records: Mapping[str, Iterable[Record]],
    scores: Sequence[Score],
    *,
    resamples: int = 1000,
) -> dict[str, dict[str, Curve]]:
    """Measures runs on one text by each score, on the sentences for which all runs with that score have it.

    Args:
        records: of `nmt.evaluation.records`, by run.
        scores: what to measure.
        resamples: R, of the sentences: drawn once for all runs and scores that have the same.

    Returns:
        By key of the score and by run; a run in which no sentence has the score is absent.
    """
    ordered = {label: in_order(rows) for label, rows in records.items()}
    ids = {label: np.array([row["id"] for row in rows]) for label, rows in ordered.items()}
    lengths = {label: np.array([row["length"] for row in rows]) for label, rows in ordered.items()}
    tables = {
        score.key: {label: score.table(rows) for label, rows in ordered.items() if rows}
        for score in scores
    }
    by_key = {score.key: score for score in scores}
    return measured_curves(tables, ids, lengths, by_key, resamples=resamples)


def measured_curves(
    tables: Mapping[str, Mapping[str, np.ndarray]],
    ids: Mapping[str, np.ndarray],
    lengths: Mapping[str, np.ndarray],
    scores: Mapping[str, Score],
    *,
    resamples: int = 1000,
) -> dict[str, dict[str, Curve]]:
    """As `curves`, of statistics by score and run (N, F), NaN where a sentence has none.

    Args:
        ids: (N,) of each run's sentences, ascending.
        lengths: (N,) of each run's sentences.
        scores: by the keys of `tables`.
    """
    alike: dict[tuple[bytes, tuple[str, ...]], list[str]] = {}
    for key in scores:
        found = {label: ids[label][~np.isnan(table[:, 0])] for label, table in tables[key].items()}
        having = tuple(label for label, known in found.items() if len(known))
        if having:
            common = functools.reduce(np.intersect1d, (found[label] for label in having))
            if len(common):
                alike.setdefault((common.tobytes(), having), []).append(key)
    results: dict[str, dict[str, Curve]] = {key: {} for key in scores}
    for (common_ids, having), together in alike.items():
        common = np.frombuffer(common_ids, dtype=np.int64)
        places = {label: np.searchsorted(ids[label], common) for label in having}
        owners = [(key, label) for key in together for label in having]
        parts = [tables[key][label][places[label]] for key, label in owners]
        text, sums = _resampled(lengths[having[0]][places[having[0]]], parts, resamples)
        for (key, label), found_sums in zip(owners, sums, strict=True):
            results[key][label] = Curve(text, scores[key], found_sums)
    return results


def _resampled(
    lengths: np.ndarray, parts: Sequence[np.ndarray], resamples: int
) -> tuple[ResampledText, list[np.ndarray]]:
    """The text of sentences (N,), and of each table (N, F) its sums (M, C, F): one product for all."""
    longest = int(lengths.max(initial=1))
    edges = np.arange(WIDTH, longest + WIDTH, WIDTH)
    cells = assign(lengths, edges.tolist())
    counts = np.bincount(cells, minlength=len(edges))
    enough = np.flatnonzero(counts >= FEWEST_SENTENCES)
    end = int(enough[-1]) + 1 if len(enough) else 0  # what lies beyond is one cell
    cells = np.minimum(cells, end)
    kept = np.unique(cells)
    places = np.searchsorted(kept, cells)
    first = kept * WIDTH + 1
    last = np.where(kept < end, first + WIDTH - 1, max(longest, 1))
    rows = np.concatenate([np.ones((len(lengths), 1)), lengths[:, None], *parts], axis=1)
    whole = np.stack([rows[places == place].sum(axis=0) for place in range(len(kept))])
    sums = np.concatenate([whole[None], bucket_sums(rows, places, resamples)])
    fitted = (whole[:, 0] >= FEWEST_SENTENCES) & (kept < end)
    weights, words = sums[:, fitted, 0], sums[:, fitted, 1]
    means = np.where(weights > 0, words / np.maximum(weights, 1), words[:1] / weights[:1])
    axis = LengthAxis(first[fitted], last[fitted], weights, means)
    text = ResampledText(first, last, fitted, whole[:, 0], axis)
    ends = 2 + np.cumsum([part.shape[1] for part in parts])
    return text, np.split(sums[:, :, 2:], (ends - 2)[:-1], axis=2)
