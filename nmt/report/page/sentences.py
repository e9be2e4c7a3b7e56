"""Data of the page on single sentences: translations side by side, and alignments.

Legend: S source tokens, T target tokens.
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from nmt.evaluation.bleu import bleu as bleu_of_statistics
from nmt.report.runs import FinishedRun

_Row = TypeVar("_Row")

WEIGHT_SCALE = 2000
"""A weight α is stored as round(WEIGHT_SCALE √α): as fine as the run folder's five digits where weights are small, and
within 0.05 points of a per cent where they are large."""


def translation_rows(runs: Sequence[FinishedRun], test_set: str) -> dict[str, Any]:
    """Every sentence of a test set with what each run wrote.

    Returns:
        `systems` (labels) and `rows`: `id`, `length`, `s`ource, `r`eference, `h`ypotheses in the order of `systems`
        (null where a run has none), `b` their sentence BLEU, all sentences as tokens joined by spaces.
    """
    tables = {
        run.label: {row["id"]: row for row in records}
        for run in runs
        if (records := run.translations(test_set))
    }
    rows = []
    for identity, sentence in sorted(ChainMap(*tables.values()).items()):
        found = [table.get(identity) for table in tables.values()]
        rows.append(
            {
                "id": identity,
                "length": sentence["length"],
                "s": " ".join(sentence["source"]),
                "r": " ".join(sentence["reference"]),
                "h": [None if row is None else " ".join(row["hypothesis"]) for row in found],
                "b": [
                    None if row is None else sentence_bleu(row.get("bleu_stats")) for row in found
                ],
            }
        )
    return {"systems": list(tables), "rows": rows, "total": len(rows)}


def thinned(translations: dict[str, Any], count: int, keep: set[int]) -> dict[str, Any]:
    """About `count` of the sentences, spread evenly over the lengths, those in `keep` always among them."""
    rows = translations["rows"]
    if count >= len(rows):
        return translations
    ascending = sorted(rows, key=lambda row: (row["length"], row["id"]))
    chosen = {row["id"] for row in spread(ascending, count)} | keep
    return {**translations, "rows": [row for row in rows if row["id"] in chosen]}


def spread(rows: Sequence[_Row], count: int) -> list[_Row]:
    """`count` of some rows, evenly spaced from the first one on.

    >>> spread("abcdef", 3)
    ['a', 'c', 'e']
    """
    return [rows[number * len(rows) // count] for number in range(count)]


def alignment_rows(runs: Sequence[FinishedRun], test_set: str) -> list[dict[str, Any]]:
    """The sentences kept step by step in any run, each with its runs' decoding, from short to long.

    Returns:
        `id`, `length`, `source` and `reference` tokens, and `by`: {label: (row, bleu, source) of `decoding`}.
    """
    sentences: dict[int, dict[str, Any]] = {}
    for run in runs:
        scores = {row["id"]: row.get("bleu_stats") for row in run.translations(test_set)}
        for row in run.alignments(test_set):
            sentence = sentences.setdefault(row["id"], undecoded(row))
            # Another source, as a run with another tokenizer has it, is told apart by its tokens.
            own = None if row["source"] == sentence["source"] else row["source"]
            if row["weights"] is not None:
                row["weights"] = np.array(row["weights"])  # in a fourth of the memory
            sentence["by"][run.label] = row, sentence_bleu(scores.get(row["id"])), own
    return sorted(sentences.values(), key=lambda sentence: (sentence["length"], sentence["id"]))


def decoded(sentence: Mapping[str, Any], floor: float = 0.0) -> dict[str, Any]:
    """A sentence of `alignment_rows`, `by` having what `decoding` gives."""
    found = sentence["by"].items()
    by = {label: decoding(row, bleu, own, floor) for label, (row, bleu, own) in found}
    return {**sentence, "by": by}


def undecoded(row: Mapping[str, Any]) -> dict[str, Any]:
    """A sentence of a line of alignments/<set>.jsonl, `by` no run yet."""
    return {
        "id": row["id"],
        "length": row["length"],
        "source": list(row["source"]),
        "reference": row.get("reference") or [],
        "by": {},
    }


def decoding(
    row: dict[str, Any],
    bleu: float | None = None,
    source: list[str] | None = None,
    floor: float = 0.0,
) -> dict[str, Any]:
    """One run's decoding of one sentence, in few bytes.

    Args:
        bleu: of the sentence.
        source: tokens, where they are not those of the other runs.
        floor: weights below are stored as none; the page then says what they are below.

    Returns:
        `target` tokens (T), `score`, `bleu`, `p` log-probabilities (T), `runners` flat [token, log-probability, ...] a
        step, and with attention `w` (T·S codes, see WEIGHT_SCALE), `z` log-normalisers (T), `entropy` nats (T).
    """
    packed: dict[str, Any] = {
        "target": row["target"],
        "score": _rounded(row.get("score"), 3),
        "bleu": bleu,
        "p": [_rounded(value, 3) for value in row.get("log_probability") or []],
        "runners": [
            [item for token, value in step for item in (token, _rounded(value, 2))]
            for step in row.get("runners_up") or []
        ],
    }
    if source is not None:
        packed["source"] = source
    if row.get("weights") is not None:
        weights = np.array(row["weights"], dtype=np.float64).ravel()
        codes = np.rint(WEIGHT_SCALE * np.sqrt(np.maximum(weights, 0.0)))
        packed["w"] = np.where(weights < floor, 0.0, codes).astype(int).tolist()
        if floor:
            packed["floor"] = floor
        if row.get("log_normaliser") is not None:
            packed["z"] = [_rounded(value, 3) for value in row["log_normaliser"]]
        if row.get("attention_entropy") is not None:
            packed["entropy"] = [_rounded(value, 3) for value in row["attention_entropy"]]
    return packed


def sentence_bleu(statistics: Sequence[int] | None) -> float | None:
    """BLEU of one sentence, smoothed and over the orders it has, rounded to a tenth of a point."""
    if statistics is None:
        return None
    return round(bleu_of_statistics(statistics, effective_order=True), 1)


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, digits)
