"""Compares systems of which only scores are known: the rows of their tables are the sentences of a test set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from nmt.evaluation.length_curve import LengthScale
from nmt.report.declared_scores import ScoreFile
from nmt.report.released_files import SOURCE, ReleasedFile
from nmt.report.runs import FinishedRun
from nmt.report.score_files import JOINS, plain_name
from nmt.utils.errors import InputError

NAME = "scores"  # of the test set, if no source gives it one


def sentences_of(scored: Sequence[ScoreFile], lengths: str | None) -> ReleasedFile:
    """Returns the sentences of the tables, with all that a table says of them.

    Rows are joined by the ids that all tables have; without ids, by their order within a system.

    Args:
        lengths: the key `lengths`.

    Raises:
        InputError: if no table has the source text, and `lengths` names none of their columns.
    """
    ids = [name for name in JOINS if all(name in table for _, table in scored)]
    for _, table in scored if not ids else ():
        table["seg_id"] = (
            table.groupby("system").cumcount() + 1 if "system" in table else table.index + 1
        )
    ids = ids or ["seg_id"]
    tables = [table.drop(columns=[score.key, "system"], errors="ignore") for score, table in scored]
    sentences = pd.concat(tables).groupby(ids, sort=False).first().reset_index()
    text = next((name for name in SOURCE if name in sentences), None)
    if text is None and "words" not in sentences and lengths not in sentences:
        raise InputError(
            "lengths: the tables of scores have no source text and no column words; type lengths=COLUMN or "
            f"source=FILE; their columns are {', '.join(sentences)}"
        )
    if text is None:
        sentences = sentences.assign(source="")
    rows: list[dict[str, Any]] = sentences.to_dict("records")
    return ReleasedFile(NAME, rows, range(1, len(rows) + 1), len(rows))


def systems_of(
    scored: Sequence[ScoreFile], own: Mapping[str, Any], scale: LengthScale
) -> list[FinishedRun]:
    """Returns a run for each system in the tables, without translations."""
    [(test_set, text)] = own.items()
    names: dict[str, str] = {}
    for score, table in scored:
        if "system" not in table:
            raise InputError(
                f"scores.{score.key}: no column 'system', which names the system of a row"
            )
        for name in table["system"].unique():
            names.setdefault(plain_name(name), str(name))
    return [
        FinishedRun(
            name,
            {"name": name},
            records={test_set: [dict(record) for record in text.records]},
            scales={test_set: scale},
        )
        for name in names.values()
    ]
