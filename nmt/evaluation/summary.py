"""From the records of a test set to its scores: the object `test.<set>` of results.json."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from nmt.evaluation.alignment import alignment_scores, error_rates
from nmt.evaluation.bleu import (
    HYPOTHESIS_LENGTH,
    REFERENCE_LENGTH,
    bleu,
    bleu_scores,
    brevity_penalties,
)
from nmt.evaluation.bootstrap import interval
from nmt.evaluation.buckets import Bucket, assign, buckets
from nmt.evaluation.records import Record, in_order
from nmt.evaluation.scores import chrf_score, perplexity, sacrebleu_score


class Settings(Protocol):
    """What of `EvaluationConfig` a summary needs."""

    @property
    def edges(self) -> Sequence[int]: ...
    @property
    def bucket_by(self) -> str: ...
    @property
    def resamples(self) -> int: ...
    @property
    def confidence(self) -> float: ...


def summarise(
    records: Iterable[Record], settings: Settings, search: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Every score of a test set.

    The result is a function of the set of records: neither their order nor the number of processes
    they come from matters.

    Args:
        records: of `nmt.evaluation.records`; at least one.
        settings: edges and side of the buckets, resamples and confidence of the intervals.
        search: the search settings that made the hypotheses, to stand beside the scores.

    Returns:
        `pairs`, `search`, `bucket_by`, `confidence`, `bleu` (`all`, and `no_unk` where there are
        such pairs), `sacrebleu` and `chrf` (None without raw references), `nll_per_sentence`, `perplexity`,
        `length_ratio`, `brevity_penalty`, `spread`, `by_length` and, where gold links exist,
        `alignment`. Buckets without sentences are absent. See docs/results_schema.md.

    Raises:
        ValueError: if there is no record, or one twice.
    """
    ordered = in_order(records)
    if not ordered:
        raise ValueError("no sentences to summarise")
    unknown_free = [record for record in ordered if record.get("bleu_stats_no_unk") is not None]
    scores = {"all": _bleu(ordered, settings)}
    if unknown_free:
        scores["no_unk"] = _bleu(unknown_free, settings, "bleu_stats_no_unk")
    result: dict[str, Any] = {
        "pairs": len(ordered),
        "search": search,
        "bucket_by": settings.bucket_by,
        "confidence": settings.confidence,
        "bleu": scores,
        **_detokenised(ordered),
        "nll_per_sentence": _mean(ordered, "nll"),
        "perplexity": _perplexity(ordered),
        **_lengths(ordered),
        "spread": _mean(ordered, "spread"),
        "by_length": [
            _bucket_row(bucket, inside, settings)
            for bucket, inside in _by_length(ordered, settings)
        ],
    }
    aligned = [record for record in ordered if record.get("alignment_counts") is not None]
    if aligned:
        result["alignment"] = _alignment(aligned, settings) | {
            "by_length": [
                bucket.row() | _alignment(inside, settings)
                for bucket, inside in _by_length(aligned, settings)
            ]
        }
    return result


def _by_length(records: list[Record], settings: Settings) -> list[tuple[Bucket, list[Record]]]:
    """The buckets that hold records, with them."""
    ranges = buckets(settings.edges)
    held: list[list[Record]] = [[] for _ in ranges]
    places = assign([record["length"] for record in records], settings.edges)
    for place, record in zip(places, records, strict=True):
        held[place].append(record)
    return [(bucket, inside) for bucket, inside in zip(ranges, held, strict=True) if inside]


def _bucket_row(bucket: Bucket, records: list[Record], settings: Settings) -> dict[str, Any]:
    unknown_free = [record for record in records if record.get("bleu_stats_no_unk") is not None]
    return {
        **bucket.row(),
        **_bleu(records, settings),
        **_lengths(records),
        "spread": _mean(records, "spread"),
        "no_unk": _bleu(unknown_free, settings, "bleu_stats_no_unk") if unknown_free else None,
        "nll_per_word": _nll_per_word(records),
    }


def _statistics(records: list[Record], key: str = "bleu_stats") -> np.ndarray:
    return np.array([record[key] for record in records], dtype=np.int64)


def _bleu(records: list[Record], settings: Settings, key: str = "bleu_stats") -> dict[str, Any]:
    statistics = _statistics(records, key)
    low, high = interval(
        statistics, bleu_scores, resamples=settings.resamples, confidence=settings.confidence
    )
    score = bleu(statistics.sum(axis=0))
    return {"score": score, "low": low, "high": high, "sentences": len(records)}


def _lengths(records: list[Record]) -> dict[str, float | None]:
    sums = _statistics(records).sum(axis=0)
    hypothesis, reference = int(sums[HYPOTHESIS_LENGTH]), int(sums[REFERENCE_LENGTH])
    return {
        "length_ratio": hypothesis / reference if reference else None,
        "brevity_penalty": float(brevity_penalties(sums)),
    }


def _detokenised(records: list[Record]) -> dict[str, Any]:
    if any(record.get("raw_reference") is None for record in records):
        return {"sacrebleu": None, "chrf": None}
    hypotheses = [record["detokenised"] for record in records]
    references = [record["raw_reference"] for record in records]
    return {
        "sacrebleu": sacrebleu_score(hypotheses, references),
        "chrf": chrf_score(hypotheses, references),
    }


def _mean(records: list[Record], key: str) -> float | None:
    values = [record[key] for record in records if record.get(key) is not None]
    return float(np.mean(values)) if values else None


def _nll(records: list[Record]) -> tuple[float, int] | None:
    """Summed NLL in nats and the words it is of, `</s>` counted as one of each sentence.

    Words, not subwords: runs with different tokenizers stay comparable.
    """
    scored = [record for record in records if record.get("nll") is not None]
    if not scored:
        return None
    return (
        float(np.sum([record["nll"] for record in scored])),
        sum(len(record["reference"]) + 1 for record in scored),
    )


def _nll_per_word(records: list[Record]) -> float | None:
    sums = _nll(records)
    return sums[0] / sums[1] if sums else None


def _perplexity(records: list[Record]) -> float | None:
    sums = _nll(records)
    return perplexity(*sums) if sums else None


def _alignment(records: list[Record], settings: Settings) -> dict[str, Any]:
    counts = np.array([record["alignment_counts"] for record in records], dtype=np.int64)
    low, high = interval(
        counts, error_rates, resamples=settings.resamples, confidence=settings.confidence
    )
    return {
        "sentences": len(records),
        **alignment_scores(counts.sum(axis=0)),
        "low": low,
        "high": high,
        "weight_on_end": _mean(records, "end_weight"),
    }
