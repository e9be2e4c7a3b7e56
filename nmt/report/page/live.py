"""Selects the models (`live.bin` of run folders) with which a comparison page translates in the browser."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from nmt.config.schema import PageConfig
from nmt.report.heatmap import spread
from nmt.report.page import embed
from nmt.report.runs import FinishedRun, grouped
from nmt.text.tokenise import tokeniser

FILE = "live.bin"
LIMIT = 12_000_000  # maximum size of all models in bytes (base64), with `report.live=auto`
OFFERED = 80  # maximum number of test sentences that the page offers as examples


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
    payloads["live-program"] = embed.packed(embed.program("model/worker.mjs"))
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
