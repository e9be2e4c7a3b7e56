"""Compares systems of which only scores are known: the rows of their tables are the sentences of a test set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from nmt.evaluation.length_curve import LengthScale
from nmt.report.declared_scores import FromFile
from nmt.report.released_files import SOURCE, ReleasedFile
from nmt.report.runs import FinishedRun
from nmt.report.score_files import JOINS, plain_name
from nmt.utils.errors import InputError

NAME = "scores"  # of the test set, if no source gives it one


def require_systems(scored: Sequence[FromFile]) -> None:
    """Raises InputError if a table does not name the system of each row."""
    for score in scored:
        if "system" not in score.values:
            raise InputError(
                f"scores.{score.key}: no column 'system', which names the system of a row"
            )


def sentences_of(scored: Sequence[FromFile], lengths: str | None) -> ReleasedFile:
    """Returns the sentences of the tables, with all that a table says of them.

    Rows are joined by the ids that all tables have; without ids, by their order within a system.

    Args:
        lengths: the key `lengths`.

    Raises:
        InputError: if no table has the source text, and `lengths` names none of their columns.
    """
    ids = [name for name in JOINS if all(name in score.values for score in scored)]
    for score in scored if not ids else ():
        score.values["seg_id"] = score.values.groupby("system").cumcount() + 1
    tables = [score.values.drop(columns=[score.key, "system"]) for score in scored]
    sentences = pd.concat(tables).groupby(ids or ["seg_id"], sort=False, as_index=False).first()
    if not {*SOURCE, "words", lengths} & {*sentences}:
        raise InputError(
            "lengths: the tables of scores have no source text and no column words; type lengths=COLUMN or "
            f"source=FILE; their columns are {', '.join(sentences)}"
        )
    if not {*SOURCE} & {*sentences}:
        sentences["source"] = ""
    rows: list[dict[str, Any]] = sentences.to_dict("records")
    return ReleasedFile(NAME, rows, range(1, len(rows) + 1), len(rows))


def systems_of(
    scored: Sequence[FromFile], own: Mapping[str, Any], scale: LengthScale
) -> list[FinishedRun]:
    """Returns a run for each system in the tables, without translations."""
    [(name, text)] = own.items()
    systems: list[str] = []
    for score in scored:
        # Another table may spell the name of a system differently.
        known = set(map(plain_name, systems))
        for system in score.values["system"].map(str).unique():
            if system not in systems and plain_name(system) not in known:
                systems.append(system)
    return [
        FinishedRun(
            system,
            {"name": system},
            records={name: [dict(record) for record in text.records]},
            scales={name: scale},
        )
        for system in systems
    ]
