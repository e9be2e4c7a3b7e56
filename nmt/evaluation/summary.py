"""Computes all scores of a test set from its records: the object `test.<set>` of results.json."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from nmt.config import EvaluationConfig
from nmt.evaluation.buckets import assign, buckets
from nmt.evaluation.records import Record, in_order
from nmt.evaluation.resampling import scored
from nmt.evaluation.scores import NO_UNK, REGISTERED, Score, choose_scores

MOST = 4  # unknown words: the last row of `by_unknown_words` has the pairs with at least so many


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


def summarise(
    records: Iterable[Record],
    settings: EvaluationConfig,
    search: dict[str, Any] | None = None,
    language: str | None = None,
) -> dict[str, Any]:
    """Every chosen score of a test set.

    The result is a function of the set of records: neither their order nor the number of processes
    they come from matters.

    Args:
        records: of `nmt.evaluation.records`; at least one.
        settings: scores, edges and side of the buckets, resamples and confidence of intervals.
        search: the search settings that made the hypotheses, to stand beside the scores.
        language: of the target, for the tokenisers of text scores.

    Returns:
        `pairs`, `search`, `bucket_by`, `confidence`, `bleu` (`all`, and `no_unk` where there are
        such pairs), every other score that some sentence has as `score`, `low` and `high` under its
        key (those of `alignment` there), `by_length`, and `by_unknown_words` where there are
        shortlists. Buckets without sentences are absent.

    Raises:
        ValueError: if there is no record, or one twice.
        InputError: if a score cannot be computed.
    """
    measured = Measured(records, choose_scores(settings.scores, language=language), settings)
    if not len(measured.ids):
        raise ValueError("no sentences to summarise")
    everyone = np.ones(len(measured.ids), dtype=bool)
    bleu = {"all": measured.of("bleu", everyone), "no_unk": measured.of(NO_UNK.key, everyone)}
    result: dict[str, Any] = {
        "pairs": len(measured.ids),
        "search": search,
        "bucket_by": settings.bucket_by,
        "confidence": settings.confidence,
        "bleu": {name: found for name, found in bleu.items() if found is not None},
    }
    for key in measured.others:
        score, found = measured.scores[key], measured.of(key, everyone)
        if found is None:
            continue
        sentences = found.pop("sentences")
        if score.section:
            result.setdefault(score.section, {"sentences": sentences})[key] = found
        else:
            signature = {} if score.signature is None else {"signature": score.signature}
            result[key] = found | signature
    result["by_length"] = by_length(measured, settings.edges)
    if rows := by_unknown_words(measured):
        result["by_unknown_words"] = rows
    return result


def by_length(measured: "Measured", edges: Sequence[int]) -> list[dict[str, Any]]:
    """The rows of `by_length`: a bucket each, those without sentences left out."""
    places = assign(measured.lengths, edges)
    rows = []
    for place, bucket in enumerate(buckets(edges)):
        inside = places == place
        if not inside.any():
            continue
        row: dict[str, Any] = {
            **bucket.row(),
            "sentences": int(inside.sum()),
            **(measured.of("bleu", inside) or {}),
            "no_unk": measured.of(NO_UNK.key, inside),
            "mean_length": float(measured.lengths[inside].mean()),
        }
        for key in measured.others:
            found = measured.of(key, inside) if measured.scores[key].by_length else None
            if found is not None:
                row[key] = found
                del found["sentences"]
        rows.append(row)
    return rows


def by_unknown_words(measured: "Measured") -> list[dict[str, Any]]:
    """BLEU by the number of words of a pair that the shortlists lack; empty where it is not known."""
    counts = np.minimum(measured.unknown, MOST)
    found = {number: measured.of("bleu", counts == number) for number in range(MOST + 1)}
    return [
        {"from": number, "to": None if number == MOST else number, **bleu}
        for number, bleu in found.items()
        if bleu is not None
    ]


class Measured:
    """The statistics of some scores, sentence by sentence, and the scores of any part of them.

    Attributes:
        scores: by key; BLEU and BLEU with `<unk>` forbidden (`bleu_no_unk`) always, and first.
        others: keys of all but these two.
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
        self.resamples, self.confidence = settings.resamples, settings.confidence
        given = {score.key: score for score in scores}
        self.scores = {"bleu": REGISTERED["bleu"], NO_UNK.key: NO_UNK} | given
        self.others = tuple(key for key in given if key != "bleu")
        self.ids = np.array([record["id"] for record in ordered], dtype=np.int64)
        self.lengths = np.array([record["length"] for record in ordered], dtype=np.int64)
        counts = [record.get("unknown_words") for record in ordered]
        self.unknown = np.array([-1 if count is None else sum(count) for count in counts])
        self.tables = {
            key: score.table(ordered, compute=computed is None or key in computed or not score.slow)
            for key, score in self.scores.items()
        }

    def has(self, key: str) -> np.ndarray:
        """Which sentences have a score: (N,) bool."""
        return ~np.isnan(self.tables[key][:, 0])

    def of(self, key: str, inside: np.ndarray) -> dict[str, Any] | None:
        """`score`, `low`, `high` and `sentences` of a part (N,); None where no sentence has it."""
        rows = self.tables[key][inside & self.has(key)]
        if not len(rows):
            return None
        values = self.scores[key].combine
        return scored(rows, values, self.resamples, self.confidence) | {"sentences": len(rows)}
