"""The data of a page: runs, scores by length, differences, translations, alignments.

Frames of a comparison become lists of rows as they are; the scripts of the page choose and draw them.
"""

from __future__ import annotations

import json
import math
from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import pandas as pd

from nmt.evaluation.scores.bleu import bleu as bleu_of_statistics
from nmt.report.comparison import LEVEL, Comparison
from nmt.report.lengths import caption, differences_caption
from nmt.report.page.embed import packed
from nmt.report.runs import FinishedRun, differing_settings, is_incidental
from nmt.report.tables import heading
from nmt.utils.text import printable

_Item = TypeVar("_Item")

FIRST = {"model": "Model", "scoring": "Scoring", "max_length": "Length cap", "seed": "Seed"}
"""Keys of results.json that runs are filtered by, before any other key in which they differ."""

NOT_FILTERED = ("name", "experiment")
MAX_TESTS = 20_000  # rows of differences on a page: a megabyte or so
MAX_PAGE_BYTES = 2_900_000  # without models; translations are thinned out to fit
MAX_ALIGNMENT_BYTES = 1_900_000


def overview(comparison: Comparison) -> dict[str, Any]:
    """What charts, filters and matrices are drawn from."""
    groups = list(comparison.groups)
    of = {run.label: n for n, name in enumerate(groups) for run in comparison.groups[name]}
    buckets = [comparison.by_length(name) for name in comparison.sets]
    tests = comparison.differences
    if len(tests) > MAX_TESTS:
        tests = tests[tests["bucket"] == "all"].head(MAX_TESTS)
    return {
        "runs": [
            {
                "label": run.label,
                "group": of[run.label],
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
        "sets": {name: _captions(comparison, name) for name in comparison.sets},
        "level": LEVEL,
        "buckets": _rows(
            pd.concat(buckets) if buckets else comparison.scores,
            *("set", "run", "key", "bucket", "from", "to", "value", "low", "high", "sentences"),
        ),
        "curves": _rows(
            comparison.curves.round({"words": 2, "value": 4, "low": 4, "high": 4}),
            *("set", "key", "kind", "name", "other", "words", "value", "low", "high"),
        ),
        "differences": _rows(
            tests,
            *("set", "score", "a", "b", "bucket", "delta", "low", "high", "p_corrected"),
            "sentences",
        ),
    }


def _rows(frame: pd.DataFrame, *columns: str) -> list[dict[str, Any]]:
    """The rows of some columns, numbers to six decimals, null for what is missing."""
    text = frame[list(columns)].to_json(orient="records", double_precision=6)
    rows: list[dict[str, Any]] = json.loads(text)
    return rows


def filters(runs: Sequence[FinishedRun]) -> list[dict[str, Any]]:
    """What the runs can be filtered by: {key, title, values: value of each run as text}.

    These are the keys of FIRST, then those in which the configurations differ. A key that divides the
    runs as another one does is left out.
    """
    columns = {
        key: ["–" if (value := run.results.get(key)) is None else str(value) for run in runs]
        for key in FIRST
    }
    settings = differing_settings(runs)
    for key in settings:
        if key not in NOT_FILTERED and not is_incidental(key):
            columns[key] = settings[key].tolist()
    divisions: set[tuple[int, ...]] = set()
    kept = []
    for key, values in columns.items():
        division = tuple(map(values.index, values))
        if any(division) and (key in FIRST or division not in divisions):
            texts = list(map(printable, values))
            kept.append({"key": key, "title": FIRST.get(key, key), "values": texts})
        divisions.add(division)
    return kept


def _captions(comparison: Comparison, test_set: str) -> dict[str, Any]:
    """The captions of a test set: of the scores, and of the comparison with each group."""
    curves = comparison.curves[comparison.curves["set"] == test_set]
    pairs = curves[curves["kind"] == "difference"]
    controls = [name for name in comparison.groups if name in {*pairs["name"], *pairs["other"]}]
    return {
        "caption": caption(comparison, test_set, "a score"),
        "compared": {name: differences_caption(comparison, test_set, name) for name in controls},
    }


def fitted_sentences(
    comparison: Comparison, limit: int, beside: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Alignments and translations by test set, thinned out evenly over the lengths to fit a page.

    Args:
        limit: sentences of a test set in the alignment explorer.
        beside: bytes of the page without them.
    """
    paired = {name: comparison.paired(name) for name in comparison.sets}
    aligned = {name: _aligned(runs, name) for name, runs in paired.items()}
    aligned = {name: spread(rows, min(limit, len(rows))) for name, rows in aligned.items()}
    aligned = _thinned(aligned, MAX_ALIGNMENT_BYTES)
    tables = {name: _translations(runs, name) for name, runs in paired.items()}
    chosen = _thinned(
        {name: sorted(rows, key=lambda row: row["length"]) for name, (_, rows) in tables.items()},
        MAX_PAGE_BYTES - beside - len(packed(aligned)),
    )
    translations = {}
    for name, (systems, rows) in tables.items():
        kept = {row["id"] for row in (*chosen[name], *aligned[name])}
        held = [row for row in rows if row["id"] in kept]
        translations[name] = {"systems": systems, "rows": held, "total": len(rows)}
    return aligned, translations


def _thinned(sets: dict[str, list[_Item]], room: int) -> dict[str, list[_Item]]:
    """As many rows of each set, evenly spaced, as fit into `room` bytes of a page."""
    share = min(1.0, 0.95 * room / len(packed(sets, 6)))
    return {name: spread(rows, math.ceil(share * len(rows))) for name, rows in sets.items()}


def spread(rows: Sequence[_Item], count: int) -> list[_Item]:
    """`count` of some rows, evenly spaced from the first one on.

    >>> spread("abcdef", 3)
    ['a', 'c', 'e']
    """
    return [rows[number * len(rows) // count] for number in range(count)]


def _translations(
    runs: Sequence[FinishedRun], test_set: str
) -> tuple[list[str], list[dict[str, Any]]]:
    """Every sentence of a test set with what each run wrote.

    Returns:
        Labels of the systems, and rows of `id`, `length`, `s`ource, `r`eference, `h`ypotheses in
        the order of the systems (null where a run has none), `b` their sentence BLEU.
    """
    tables = {
        run.label: {row["id"]: row for row in records}
        for run in runs
        if (records := run.translations(test_set))
    }
    rows = []
    for identity, sentence in sorted(ChainMap(*tables.values()).items()):
        written = [table.get(identity) for table in tables.values()]
        rows.append(
            {
                "id": identity,
                "length": sentence["length"],
                "s": " ".join(sentence["source"]),
                "r": " ".join(sentence["reference"]),
                "h": [row and " ".join(row["hypothesis"]) for row in written],
                "b": [row and sentence_bleu(row.get("bleu_stats")) for row in written],
            }
        )
    return list(tables), rows


def _aligned(runs: Sequence[FinishedRun], test_set: str) -> list[dict[str, Any]]:
    """The sentences kept step by step in any run, from short to long, as `aligned_sentences`."""
    rows = []
    for run in runs:
        scores = {row["id"]: row.get("bleu_stats") for row in run.translations(test_set)}
        rows += [
            (run.label, row, sentence_bleu(scores.get(row["id"])))
            for row in run.alignments(test_set)
        ]
    return aligned_sentences(rows)


def aligned_sentences(
    rows: Iterable[tuple[str, Mapping[str, Any], float | None]],
) -> list[dict[str, Any]]:
    """Decodings of the same sentences put together, from short to long.

    Args:
        rows: label of a run, a line of alignments/<set>.jsonl, and the BLEU of the sentence.

    Returns:
        `id`, `length`, `source` and `reference` tokens, and `by`: the lines with `bleu` and with
        numbers of four decimals, by label.
    """
    sentences: dict[Any, dict[str, Any]] = {}
    for label, row, bleu in rows:
        common = {"id": row["id"], "length": row["length"], "source": row["source"]}
        common |= {"reference": row.get("reference") or [], "by": {}}
        sentences.setdefault(row["id"], common)["by"][label] = _short({**row, "bleu": bleu})
    return sorted(sentences.values(), key=lambda sentence: (sentence["length"], sentence["id"]))


def _short(row: Mapping[str, Any]) -> Any:
    """The same with numbers of four decimals; None for NaN."""
    text = json.dumps(row)
    return json.loads(text, parse_float=lambda x: round(float(x), 4), parse_constant=lambda _: None)


def sentence_bleu(statistics: Sequence[int] | None) -> float | None:
    """BLEU of one sentence, smoothed and over the orders it has, rounded to a tenth of a point."""
    if statistics is None:
        return None
    return round(float(bleu_of_statistics(statistics, effective_order=True)), 1)
