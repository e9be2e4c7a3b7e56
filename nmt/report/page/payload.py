"""The data of a page: runs, scores by length, differences, translations, alignments, and trained models.

The frames of a comparison become lists of rows, which the page's scripts select and draw.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections import ChainMap
from collections.abc import Collection, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from nmt.config.schema import PageConfig
from nmt.evaluation.documents import at_length, axis_title
from nmt.evaluation.records import Record
from nmt.evaluation.scores.bleu import WIDTH, bleu
from nmt.report.captions import caption
from nmt.report.comparison import LEVEL, Comparison
from nmt.report.page.embed import packed, program
from nmt.report.result_tables import heading, set_title
from nmt.report.runs import FinishedRun, grouped
from nmt.text.tokenise import tokeniser

Item = TypeVar("Item")

FILE = "live.bin"  # model in a run folder
LIMIT = 12_000_000  # maximum size of all models in bytes (base64), with `report.live=auto`
OFFERED = 80  # maximum number of test sentences that the page offers as examples
# Limits per page. If translations or alignments need more, an evenly spaced selection is kept.
MAX_TRANSLATION_BYTES = 800_000
MOST_TRANSLATIONS = 5_000  # more sentences of a test set do not fit
MAX_ALIGNMENT_BYTES = 1_900_000


def overview(comparison: Comparison) -> dict[str, Any]:
    """Returns the data of the charts and of the significance matrices."""
    groups = list(comparison.groups)
    of = {run.label: n for n, name in enumerate(groups) for run in comparison.groups[name]}
    scores = comparison.scores
    scores = scores[(scores["bucket"] != "all") & scores["subset"].isin(["all", "no_unk"])]
    compared = comparison.curves.query("kind == 'difference'")
    return {
        "runs": [
            {
                "label": run.label,
                "group": of[run.label],
                "cap": run.results.get("max_length"),
                "history": run.results.get("history") or [],
            }
            for run in comparison.runs
        ],
        "groups": groups,
        "scores": {
            key: {
                "title": heading(about),
                "digits": about["digits"],
                "higher_is_better": about["higher_is_better"],
                "ratio": about["unit"] == "ratio",  # the axis of a ratio need not start at 0
            }
            for key, about in comparison.about.items()
        },
        "sets": {
            name: {
                "title": set_title(name),
                "caption": caption(comparison, name, "a score"),
                "unit": comparison.unit(name),
                "axis": axis_title(comparison.unit(name)),
                "controls": sorted(
                    set(compared.loc[compared["set"] == name, ["name", "other"]].stack()),
                    key=groups.index,
                ),
                "domains": comparison.curves.query("set == @name and kind == 'domain'")["other"]
                .unique()
                .tolist(),
            }
            for name in comparison.sets
        },
        "level": LEVEL,
        "buckets": _rows(scores.sort_values("from", kind="stable"), without=["subset", "score"]),
        "curves": _rows(
            comparison.curves.round({"words": 2, "value": 4, "low": 4, "high": 4}),
            without=["sentences", "interval"],
        ),
        "differences": _rows(
            comparison.differences, without=["from", "to", "score_a", "score_b", "interval", "p"]
        ),
    }


def _rows(frame: pd.DataFrame, without: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the rows of a frame, except the columns `without`, with six decimals and None for NaN."""
    text = frame.drop(columns=[*without]).to_json(orient="records", double_precision=6)
    rows: list[dict[str, Any]] = json.loads(text)
    return rows


def fitted_sentences(
    comparison: Comparison, limit: int
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, dict[str, Any]]]:
    """Selects translations and at most `limit` alignments of each test set, evenly spaced by length.

    Returns:
        Two dictionaries by test set. The first has selected results of `_aligned`. The second has `systems` (the
        labels of the systems), `unit` (of length), `place` (the text for the length 0), `rows` (selected results of
        `_translations`), and `total` (the number of all rows).
    """
    runs = {
        name: [
            run
            for run in comparison.paired(name)
            if any("hypothesis" in row for row in run.translations(name))
        ]
        for name in comparison.sets
    }
    aligned = {name: spread(_aligned(runs[name], name), limit) for name in runs}
    aligned = _thinned(aligned, MAX_ALIGNMENT_BYTES)
    written = {}
    totals = {}
    for name in runs:
        also = {row["id"] for row in aligned[name]}
        written[name], totals[name] = _translations(runs[name], name, also)
    chosen = _thinned(written, MAX_TRANSLATION_BYTES)
    translations = {}
    for name, rows in written.items():
        kept = {row["id"] for row in (*chosen[name], *aligned[name])}
        translations[name] = {
            "systems": [run.label for run in runs[name]],
            "unit": comparison.unit(name),
            "place": at_length(0, comparison.unit(name)),
            "rows": [row for row in rows if row["id"] in kept],
            "total": totals[name],
        }
    return aligned, translations


def _thinned(sets: dict[str, list[Item]], room: int) -> dict[str, list[Item]]:
    """Keeps evenly spaced rows of each set, as many as fit into `room` bytes."""
    share = min(1.0, 0.95 * room / len(packed(sets, 6)))
    return {name: spread(rows, math.ceil(share * len(rows))) for name, rows in sets.items()}


def _translations(
    runs: Sequence[FinishedRun], test_set: str, also: Collection[int]
) -> tuple[list[dict[str, Any]], int]:
    """Selects at most MOST_TRANSLATIONS sentences of a test set, evenly spaced by length, and those with ids in `also`.

    Returns:
        Rows from short to long, and the number of all sentences. A row has `id`, `length`, `s` (source), `r`
        (reference), `h` (a hypothesis per run; None if the run has none), and `b` (the sentence BLEU of each
        hypothesis).
    """
    tables = [{row["id"]: row for row in run.translations(test_set)} for run in runs]
    scores = [sentence_bleu(run.translations(test_set)) for run in runs]
    sentences = ChainMap(*tables)
    ascending = sorted(sentences, key=lambda identity: (sentences[identity]["length"], identity))
    chosen = {*spread(ascending, MOST_TRANSLATIONS), *also}
    rows = []
    for identity in filter(chosen.__contains__, ascending):
        sentence = sentences[identity]
        written = [table.get(identity) for table in tables]
        rows.append(
            {
                "id": identity,
                "length": sentence["length"],
                "s": " ".join(sentence["source"]),
                "r": " ".join(sentence["reference"]),
                "h": [row and " ".join(row["hypothesis"]) for row in written],
                "b": [of_run.get(identity) for of_run in scores],
            }
        )
    return rows, len(ascending)


def _aligned(runs: Sequence[FinishedRun], test_set: str) -> list[dict[str, Any]]:
    """Returns the sentences for which any run has an alignment, from short to long.

    Returns:
        Rows with `id`, `length`, `source` and `reference` (tokens), and `by`. `by` maps the label of a run to
        its record of alignments/<set>.jsonl, with `bleu` added and numbers rounded to four decimals.
    """
    sentences: dict[int, dict[str, Any]] = {}
    for run in runs:
        scores = sentence_bleu(run.translations(test_set))
        for row in run.alignments(test_set):
            common = {key: row[key] for key in ("id", "length", "source", "reference")} | {"by": {}}
            own = _short({**row, "bleu": scores.get(row["id"])})
            sentences.setdefault(row["id"], common)["by"][run.label] = own
    return sorted(sentences.values(), key=lambda sentence: (sentence["length"], sentence["id"]))


def _short(row: Mapping[str, Any]) -> Any:
    """Rounds all numbers to four decimals; NaN becomes None."""
    text = json.dumps(row)
    return json.loads(text, parse_float=lambda x: round(float(x), 4), parse_constant=lambda _: None)


def sentence_bleu(records: Sequence[Record]) -> dict[int, float]:
    """Computes the smoothed BLEU of each sentence (with `effective_order`), rounded to 0.1 points, by id."""
    known = {row["id"]: row["bleu_stats"] for row in records if row.get("bleu_stats") is not None}
    scores = bleu(np.array([*known.values()]).reshape(-1, WIDTH), effective_order=True)
    return {identity: round(x, 1) for identity, x in zip(known, scores.tolist(), strict=True)}


def fitted_models(
    runs: Sequence[FinishedRun], report: PageConfig
) -> tuple[dict[str, str], dict[str, Any] | None]:
    """Selects the models of a page: one run per group, as many as fit.

    Models with and without attention alternate, in descending order of `max_length`. With `report.live=auto`,
    a model is left out if the total would exceed LIMIT.

    Returns:
        Two values. The first has the contents of page elements by id: the models, and the web worker's script.
        The second has the labels of the models, and example sentences; it is None if there are no models.
    """
    kinds: dict[bool, list[FinishedRun]] = {True: [], False: []}
    for members in grouped(runs).values() if report.live is not False else ():
        if run := next((run for run in members if _file(run).is_file()), None):
            kinds["model.scoring._target_" in run.flat].append(run)
    for alike in kinds.values():
        alike.sort(key=lambda run: -(run.results.get("max_length") or 0))
    models: dict[str, str] = {}
    known: set[str] | None = None  # words that all models know; None if there is no list of words
    size = 0
    for run in (run for pair in zip_longest(*kinds.values()) for run in pair if run):
        model = base64.b64encode(_file(run).read_bytes()).decode("ascii")
        if report.live is True or size + len(model) <= LIMIT:
            models[run.label] = model
            size += len(model)
            if words := _words(_file(run)):
                known = words if known is None else known & words
    if not models:
        return {}, None
    payloads = {f"live-{n}": model for n, model in enumerate(models.values())}
    payloads["live-program"] = packed(program("model/worker.mjs"))
    return payloads, {"models": list(models), "sentences": _offered(runs, known)}


def _file(run: FinishedRun) -> Path:
    return (run.folder or Path()) / FILE


def _words(file: Path) -> set[str]:
    """Returns the source words that the model of a `live.bin` knows; empty for subwords."""
    head = zlib.decompress(file.read_bytes()).partition(b"\n")[0]
    return set(json.loads(head)["source_vocabulary"].get("words", ()))


def _offered(runs: Sequence[FinishedRun], known: set[str] | None) -> list[dict[str, Any]]:
    """Returns detokenised source sentences of the test sets as examples, from short to long.

    All their words are in `known`, and all words of the references in the shortlists, unless no sentence is such.
    """
    records = [row for run in runs for name in run.sets for row in run.translations(name)]
    covered = [row for row in records if row.get("no_unk") is not False]
    rows = {tuple(row["source"]) for row in covered or records}
    rows = {words for words in rows if known is None or known.issuperset(words)} or rows
    ascending = sorted(filter(None, rows), key=lambda words: (len(words), words))
    languages = next(run.flat["data.languages"] for run in runs if "data.languages" in run.flat)
    source_tokeniser = tokeniser(languages[0])
    return [
        {"words": len(words), "text": source_tokeniser.detokenise(words)}
        for words in spread(ascending, OFFERED)
    ]


def spread(rows: Sequence[Item], count: int) -> list[Item]:
    """Returns at most `count` of the rows, evenly spaced from the first to the last.

    >>> spread("abcde", 3)
    ['a', 'c', 'e']
    """
    indices = np.linspace(0, len(rows) - 1, min(count, len(rows))).round().astype(int)
    return [rows[index] for index in indices]
