"""The data of a page: runs, scores by length, differences, translations, alignments.

Legend: S source tokens, T target tokens.
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from nmt.config.keys import is_within
from nmt.config.schema import RUNTIME_KEYS
from nmt.evaluation.scores.bleu import bleu as bleu_of_statistics
from nmt.report.comparison import LEVEL, Comparison
from nmt.report.lengths import caption, differences_caption
from nmt.report.page.embed import packed
from nmt.report.runs import FinishedRun
from nmt.report.tables import heading
from nmt.utils.commands import override_key
from nmt.utils.printable import printable

_Item = TypeVar("_Item")

FIRST = {"model": "Model", "scoring": "Scoring", "max_length": "Length cap", "seed": "Seed"}
"""Keys of results.json that runs are filtered by, before any other key that was swept."""

NOT_FILTERED = ("name", "experiment", "model", "scoring", "seed", "data.max_length")
MAX_TESTS = 20_000  # rows of differences on a page: a megabyte or so
MAX_PAGE_BYTES = 2_900_000  # without models; translations are thinned out to fit
MAX_ALIGNMENT_BYTES = 1_900_000
MIN_TRANSLATIONS = 200  # a test set, however large the rest is
SMALL_WEIGHT = 2e-4  # weights below are left out where alignments do not fit otherwise

WEIGHT_SCALE = 2000
"""A weight α is stored as round(WEIGHT_SCALE √α): as fine as the run folder's five digits where weights are small, and
within 0.05 points of a per cent where they are large."""


def overview(comparison: Comparison) -> dict[str, Any]:
    """What charts, filters and matrices are drawn from."""
    groups = list(comparison.groups)
    of = {run.label: n for n, name in enumerate(groups) for run in comparison.groups[name]}
    return {
        "runs": [
            {
                "label": run.label,
                "group": of[run.label],
                "external": run.external,
                "cap": None if run.external else run.results.get("max_length"),
                "history": run.results.get("history") or [],
            }
            for run in comparison.runs
        ],
        "groups": groups,
        "filters": filters(comparison.runs),
        "scores": {
            key: {
                "title": heading(about),
                "digits": about["digits"],
                "higher_is_better": about["higher_is_better"],
                "ratio": about["unit"] == "ratio",  # read against 1: its axis need not begin at 0
            }
            for key, about in comparison.about.items()
        },
        "sets": {name: _set(comparison, name) for name in comparison.sets},
    }


def filters(runs: Sequence[FinishedRun]) -> list[dict[str, Any]]:
    """What the runs can be filtered by: {key, title, values: value of each run as text}.

    These are the keys of FIRST, then what was typed on the command line, where runs differ in it. A
    typed key that divides the runs as another one does is left out.
    """
    found: dict[str, tuple[str, list[Any]]] = {}
    for key, title in FIRST.items():
        found[key] = title, [None if run.external else run.results.get(key) for run in runs]
    typed = [
        {override_key(word): word.partition("=")[2] for word in run.results.get("overrides") or []}
        for run in runs
    ]
    for key in dict.fromkeys(key for overrides in typed for key in overrides):
        if key not in NOT_FILTERED and not is_within(key, ("hydra", *RUNTIME_KEYS)):
            values = [
                each.get(key, run.flat.get(key)) for each, run in zip(typed, runs, strict=True)
            ]
            found.setdefault(key, (key, values))
    divisions: set[tuple[int, ...]] = set()
    kept = []
    for key, (title, values) in found.items():
        texts = ["–" if value is None else printable(str(value)) for value in values]
        division = tuple(map(texts.index, texts))
        if any(division) and (key in FIRST or division not in divisions):
            kept.append({"key": key, "title": title, "values": texts})
        divisions.add(division)
    return kept


def _set(comparison: Comparison, test_set: str) -> dict[str, Any]:
    """A test set: `buckets`, one of a run each, with [value, low, high, sentences] by score; `curves`."""
    frame = comparison.by_length(test_set)
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for row in frame.to_dict("records"):
        first, last = (None if pd.isna(row[end]) else int(row[end]) for end in ("from", "to"))
        bucket = {"run": row["run"], "bucket": row["bucket"], "from": first, "to": last}
        found = rows.setdefault((row["run"], row["bucket"]), bucket)
        ends = (_rounded(row[part], 6) for part in ("value", "low", "high"))
        found[row["key"]] = [*ends, int(row["sentences"])]
    present = set(frame["key"])
    curves = comparison.curves[comparison.curves["set"] == test_set]
    pairs = curves[curves["kind"] == "difference"]
    controls = [name for name in comparison.groups if name in {*pairs["name"], *pairs["other"]}]
    return {
        "buckets": list(rows.values()),
        "curves": _curves(curves),
        "scores": [key for key in comparison.about if key in present],
        "significance": _significance(comparison, test_set),
        "level": LEVEL,
        "caption": caption(comparison, test_set, "a score"),
        "compared": {name: differences_caption(comparison, test_set, name) for name in controls},
    }


def _curves(frame: pd.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """By score the curves of a test set, an array a column."""
    found: dict[str, list[dict[str, Any]]] = {}
    for (key, kind, name, other), rows in frame.groupby(
        ["key", "kind", "name", "other"], sort=False, dropna=False
    ):
        curve = {"kind": kind, "name": name, "other": other if isinstance(other, str) else ""}
        for column in ("words", "value", "low", "high"):
            curve[column] = [_rounded(value, 4) for value in rows[column].astype(float)]
        found.setdefault(key, []).append(curve)
    return found


def _significance(comparison: Comparison, test_set: str) -> dict[str, list[list[Any]]]:
    """By score [a, b, bucket, delta, low, high, p, p corrected, sentences], runs by their number."""
    numbers = {run.label: n for n, run in enumerate(comparison.runs)}
    frame = comparison.differences
    frame = frame[frame["set"] == test_set]
    if len(frame) > MAX_TESTS:
        frame = frame[frame["bucket"] == "all"].head(MAX_TESTS)
    found: dict[str, list[list[Any]]] = {}
    for row in frame.to_dict("records"):
        digits = comparison.about[row["score"]]["digits"] + 1
        found.setdefault(row["score"], []).append(
            [
                *(numbers[row["a"]], numbers[row["b"]], row["bucket"]),
                *(_rounded(row[part], digits) for part in ("delta", "low", "high")),
                *(_rounded(row[part], 7) for part in ("p", "p_corrected")),
                row["sentences"],
            ]
        )
    return found


def fitted_sentences(
    comparison: Comparison, limit: int, beside: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Alignments and translations by test set, thinned out evenly over the lengths to fit a page.

    Args:
        limit: sentences of a test set in the alignment explorer.
        beside: bytes of the page without them.
    """
    shown = {name: comparison.paired(name) for name in comparison.sets}
    kept = {name: alignment_rows(runs, name) for name, runs in shown.items()}

    def alignments(share: float) -> dict[str, Any]:
        floor = SMALL_WEIGHT if share < 1 else 0.0
        return {
            name: [decoded(row, floor) for row in _bounded(rows, max(1, int(share * limit)))]
            for name, rows in kept.items()
        }

    first = fitted(alignments, MAX_ALIGNMENT_BYTES, 1 / max(1, limit)) if limit else {}
    chosen = {name: {row["id"] for row in rows} for name, rows in first.items()}
    tables = {name: translation_rows(runs, name) for name, runs in shown.items()}

    def translations(share: float) -> dict[str, Any]:
        return {
            name: thinned(
                table, max(MIN_TRANSLATIONS, int(share * table["total"])), chosen.get(name, set())
            )
            for name, table in tables.items()
        }

    total = max((table["total"] for table in tables.values()), default=1)
    room = MAX_PAGE_BYTES - beside - len(packed(first))
    return first, fitted(translations, room, MIN_TRANSLATIONS / max(1, total))


def fitted(make: Callable[[float], _Item], room: int, least: float) -> _Item:
    """`make` of the largest share from 1 down to `least` whose packed size is within `room` bytes."""
    share = 1.0
    while True:
        value = make(share)
        size = len(packed(value, 6))
        if size <= room or share <= least:
            return value
        share = max(least, share * max(0.05, min(0.95, 0.97 * room / size)))


def translation_rows(runs: Sequence[FinishedRun], test_set: str) -> dict[str, Any]:
    """Every sentence of a test set with what each run wrote.

    Returns:
        `systems` (labels) and `rows`: `id`, `length`, `s`ource, `r`eference, `h`ypotheses in the
        order of `systems` (null where a run has none), `b` their sentence BLEU.
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
                "h": [row and " ".join(row["hypothesis"]) for row in found],
                "b": [row and sentence_bleu(row.get("bleu_stats")) for row in found],
            }
        )
    return {"systems": list(tables), "rows": rows, "total": len(rows)}


def thinned(translations: dict[str, Any], count: int, keep: set[int]) -> dict[str, Any]:
    """About `count` of the sentences, spread over the lengths, those in `keep` among them."""
    rows = translations["rows"]
    if count >= len(rows):
        return translations
    ascending = sorted(rows, key=lambda row: (row["length"], row["id"]))
    chosen = {row["id"] for row in spread(ascending, count)} | keep
    return {**translations, "rows": [row for row in rows if row["id"] in chosen]}


def spread(rows: Sequence[_Item], count: int) -> list[_Item]:
    """`count` of some rows, evenly spaced from the first one on.

    >>> spread("abcdef", 3)
    ['a', 'c', 'e']
    """
    return [rows[number * len(rows) // count] for number in range(count)]


def _bounded(sentences: list[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    """At most `limit` sentences: those that most runs have, spread over the lengths."""
    if len(sentences) <= limit:
        return sentences
    most = max(len(sentence["by"]) for sentence in sentences)
    shared = [sentence for sentence in sentences if len(sentence["by"]) == most]
    return spread(shared if len(shared) >= limit else sentences, limit)


def alignment_rows(runs: Sequence[FinishedRun], test_set: str) -> list[dict[str, Any]]:
    """The sentences kept step by step in any run, each with its runs' decoding, from short to long.

    Returns:
        `id`, `length`, `source` and `reference` tokens, and `by`: {label: (row, bleu, source) of
        `decoding`}.
    """
    sentences: dict[int, dict[str, Any]] = {}
    for run in runs:
        scores = {row["id"]: row.get("bleu_stats") for row in run.translations(test_set)}
        for row in run.alignments(test_set):
            sentence = sentences.setdefault(row["id"], undecoded(row))
            # a run with another tokenizer has its own source tokens
            own = None if row["source"] == sentence["source"] else row["source"]
            if row["weights"] is not None:
                row["weights"] = np.array(row["weights"])  # a quarter of the memory of lists
            sentence["by"][run.label] = row, sentence_bleu(scores.get(row["id"])), own
    return sorted(sentences.values(), key=lambda sentence: (sentence["length"], sentence["id"]))


def decoded(sentence: Mapping[str, Any], floor: float = 0.0) -> dict[str, Any]:
    """A sentence of `alignment_rows` with what `decoding` gives for each run."""
    found = sentence["by"].items()
    by = {label: decoding(row, bleu, own, floor) for label, (row, bleu, own) in found}
    return {**sentence, "by": by}


def undecoded(row: Mapping[str, Any]) -> dict[str, Any]:
    """A sentence of a line of alignments/<set>.jsonl, without a run yet."""
    return {
        "id": row["id"],
        "length": row["length"],
        "source": list(row["source"]),
        "reference": row.get("reference") or [],
        "by": {},
    }


def decoding(
    row: Mapping[str, Any],
    bleu: float | None = None,
    source: list[str] | None = None,
    floor: float = 0.0,
) -> dict[str, Any]:
    """One run's decoding of one sentence, in few bytes.

    Args:
        bleu: of the sentence.
        source: tokens, where they are not those of the other runs.
        floor: weights below are stored as 0; the page then says what they are below.

    Returns:
        `target` tokens (T), `score`, `bleu`, `p` log-probabilities (T), `runners` flat [token,
        log-probability, ...] a step, and with attention `w` (T·S codes, see WEIGHT_SCALE), `z`
        log-normalisers (T), `entropy` nats (T).
    """
    result: dict[str, Any] = {
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
        result["source"] = source
    if row.get("weights") is not None:
        weights = np.array(row["weights"], dtype=np.float64).ravel()
        codes = np.rint(WEIGHT_SCALE * np.sqrt(np.maximum(weights, 0.0)))
        result["w"] = np.where(weights < floor, 0.0, codes).astype(int).tolist()
        if floor:
            result["floor"] = floor
        for key, stored in (("z", "log_normaliser"), ("entropy", "attention_entropy")):
            if row.get(stored) is not None:
                result[key] = [_rounded(value, 3) for value in row[stored]]
    return result


def sentence_bleu(statistics: Sequence[int] | None) -> float | None:
    """BLEU of one sentence, smoothed and over the orders it has, rounded to a tenth of a point."""
    if statistics is None:
        return None
    return round(float(bleu_of_statistics(statistics, effective_order=True)), 1)


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, digits)
