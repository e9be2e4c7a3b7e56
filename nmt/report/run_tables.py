"""Tables of training and settings of runs, and of the paper's figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from nmt.config.schema import INITIAL_CHECKPOINT
from nmt.evaluation.paper import ROWS, SOURCE, TEST_SET
from nmt.report.runs import MISSING, FinishedRun, differing_keys
from nmt.report.table import Column, Table


def paper_table() -> Table:
    """Every row of the paper, as published: a table of its own, for the text is its own, too."""
    columns = [
        Column("name", "System", text=True),
        Column("bleu_all", "BLEU all"),
        Column("bleu_no_unk", "BLEU no UNK"),
        Column("updates", "Updates", 0),
        Column("epochs", "Epochs", 1),
        Column("hours", "Hours", 0),
        Column("device", "Device", text=True),
        Column("train_nll", "Train NLL", 1),
        Column("valid_nll", "Dev. NLL", 1),
    ]
    title = f"Published by the paper, on {TEST_SET} (not measured here)"
    notes = [
        f"{SOURCE}: English to French, tokenised BLEU of multi-bleu, NLL in nats a sentence. "
        "Scores on another test set cannot be compared with them."
    ]
    return Table("published", title, columns, [asdict(row) for row in ROWS], notes)


def training_table(runs: Sequence[FinishedRun]) -> Table:
    """A table like the paper's Table 2: what the training took."""
    rows = []
    for run in runs:
        train, valid = run.results.get("train") or {}, run.results.get("valid") or {}
        if not train:
            continue
        rows.append(
            {
                "run": run.label,
                "updates": train.get("updates") or None,
                "epochs": train.get("epochs"),
                "hours": train.get("hours"),
                "device": train.get("device"),
                "train_nll": train.get("nll_per_sentence"),
                "valid_nll": valid.get("nll_per_sentence"),
                "words": train.get("target_words_per_second"),
                "parameters": run.results.get("parameters"),
                "memory": _gigabytes(train.get("peak_memory")),
                "initial": run.flat.get(INITIAL_CHECKPOINT),
            }
        )
    columns = [
        Column("run", "Run", text=True),
        Column("updates", "Updates", 0),
        Column("epochs", "Epochs", 1),
        Column("hours", "Hours", 2),
        Column("device", "Device", text=True),
        Column("train_nll", "Train NLL"),
        Column("valid_nll", "Dev. NLL"),
        Column("words", "Target words/s", 0),
        Column("parameters", "Parameters", 0),
        Column("memory", "Peak memory, GB", 2),
    ]
    notes = ["NLL in nats a sentence; hours are accumulated over resumes."]
    if any(row["initial"] for row in rows):
        columns.append(Column("initial", "Started from", text=True))
        notes.append("What trained the weights that a run started from is not counted.")
    return Table("training", "Training (as Table 2)", columns, rows, notes)


def differences_table(runs: Sequence[FinishedRun]) -> Table:
    """The configuration keys in which runs differ, one row a key."""
    first = "key"
    while first in {run.label for run in runs}:
        first = f"_{first}"
    rows = [
        {first: key, **{run.label: _value(v) for run, v in zip(runs, values, strict=True)}}
        for key, values in differing_keys(runs).items()
    ]
    configured = [run for run in runs if not run.external]
    columns = [Column(first, "Key", text=True)]
    columns += [Column(run.label, run.label, text=True) for run in configured]
    return Table("differences", "Where the configurations differ", columns, rows)


def _value(value: Any) -> str | None:
    if value is MISSING:
        return None
    return "null" if value is None else str(value)


def _gigabytes(size: float | None) -> float | None:
    return None if size is None else size / 1e9
