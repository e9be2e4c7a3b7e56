"""Scores over length of several runs on one text, all resampled with the same sentences.

Legend: N sentences, M samples (the sentences themselves and R resamples), C cells of length (each
with sentences), B buckets (the cells with enough sentences), F statistics of a sentence.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nmt.evaluation.buckets import assign
from nmt.evaluation.degradation.fit import LengthAxis, Range, inside
from nmt.evaluation.records import Record, in_order
from nmt.evaluation.resampling import bucket_sums
from nmt.evaluation.scores import Score

WIDTH = 5  # words of a bucket
MOST_SUMS = 1 << 25  # that memory holds at a time (256 MB), unless they are of one score
FEWEST_SENTENCES = 20  # of a bucket that is fitted to: BLEU of fewer is biased


@dataclass(frozen=True)
class ResampledText:
    """Sentences that were resampled: the same for every run and score on them.

    Attributes:
        cells: (N,) the cell of each sentence.
        first, last: (C,) the lengths that a cell begins and ends with.
        fitted: (C,) which cells are buckets.
        sentences: (C,) in the sample.
        axis: the buckets.
    """

    cells: np.ndarray
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
    return dict(measured_curves(tables, ids, lengths, by_key, resamples=resamples))


def measured_curves(
    tables: Mapping[str, Mapping[str, np.ndarray]],
    ids: Mapping[str, np.ndarray],
    lengths: Mapping[str, np.ndarray],
    scores: Mapping[str, Score],
    *,
    resamples: int = 1000,
) -> Iterator[tuple[str, dict[str, Curve]]]:
    """As `curves`, of statistics by score and run (N, F), NaN where a sentence has none.

    One score after another, `MOST_SUMS` at a time: of many runs memory does not hold all scores.

    Args:
        ids: (N,) of each run's sentences, ascending.
        lengths: (N,) of each run's sentences.
        scores: by the keys of `tables`.
    """
    # the runs that have a score, and their common sentences
    alike: dict[str, tuple[tuple[str, ...], bytes]] = {}
    for key in scores:
        found = {label: ids[label][~np.isnan(table[:, 0])] for label, table in tables[key].items()}
        found = {label: known for label, known in found.items() if len(known)}
        common = functools.reduce(_shared, found.values()) if found else np.zeros(0)
        alike[key] = (tuple(found), common.tobytes()) if len(common) else ((), b"")
    texts: dict[tuple[tuple[str, ...], bytes], ResampledText] = {}
    ready: dict[str, dict[str, Curve]] = {key: {} for key in scores if not alike[key][0]}
    waiting = [key for key in scores if key not in ready]
    for key in scores:
        if key in waiting:
            having, common_ids = alike[key]
            common = np.frombuffer(common_ids, dtype=np.int64)
            places = {label: np.searchsorted(ids[label], common) for label in having}
            if alike[key] not in texts:
                of_first = lengths[having[0]][places[having[0]]]
                texts[alike[key]] = _resampled_text(of_first, resamples)
            text = texts[alike[key]]
            room = MOST_SUMS // ((1 + resamples) * len(text.first))
            together = _fitting(
                [other for other in waiting if alike[other] == alike[key]], tables, room
            )
            waiting = [other for other in waiting if other not in together]
            owners = [(other, label) for other in together for label in having]
            parts = [tables[other][label][places[label]] for other, label in owners]
            sums = bucket_sums(np.concatenate(parts, axis=1), text.cells, resamples)
            of_each = np.split(sums, np.cumsum([part.shape[1] for part in parts])[:-1], axis=2)
            for (other, label), own in zip(owners, of_each, strict=True):
                ready.setdefault(other, {})[label] = Curve(text, scores[other], own)
        yield key, ready.pop(key)


def _fitting(
    keys: Sequence[str], tables: Mapping[str, Mapping[str, np.ndarray]], room: int
) -> list[str]:
    """The first of some scores that have at most `room` statistics of all runs; one at least."""
    widths = np.cumsum([sum(table.shape[1] for table in tables[key].values()) for key in keys])
    return list(keys[: max(1, int((widths <= room).sum()))])


def _shared(ids: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The ids that are in both, ascending; most runs have the same."""
    return ids if np.array_equal(ids, others) else np.intersect1d(ids, others)


def _resampled_text(lengths: np.ndarray, resamples: int) -> ResampledText:
    """The text of sentences of some lengths (N,)."""
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
    sums = bucket_sums(np.stack([np.ones(len(lengths)), lengths], axis=1), places, resamples)
    sentences = sums[0, :, 0]
    fitted = (sentences >= FEWEST_SENTENCES) & (kept < end)
    weights, words = sums[:, fitted, 0], sums[:, fitted, 1]
    means = np.where(weights > 0, words / np.maximum(weights, 1), words[:1] / weights[:1])
    axis = LengthAxis(first[fitted], last[fitted], weights, means)
    return ResampledText(places, first, last, fitted, sentences, axis)
