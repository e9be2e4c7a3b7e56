"""Reads and writes `scores.csv`, the scores of a run; docs/scores.md describes its columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from nmt.evaluation.buckets import bucket_name
from nmt.utils.files import check_set_name, refuse_unreadable, write_text

FILE = "scores.csv"
VALUE = ("value", "low", "high")
COLUMNS = ("set", "subset", "score", "from", "to", *VALUE, "sentences", "interval")
_NUMBERS = {  # types of numeric columns; all other columns are text
    **dict.fromkeys(("from", "to", "sentences", "systems"), "Int64"),
    **dict.fromkeys(("value", "low", "high", "words", "longest"), "float64"),
    **dict.fromkeys(("score_a", "score_b", "delta", "p", "p_corrected"), "float64"),
}


def tidy(rows: Any, columns: Sequence[str]) -> pd.DataFrame:
    """Returns a data frame with these columns and their types.

    Args:
        rows: anything that `pandas.DataFrame` accepts, such as a list of dicts. Columns may be missing.
    """
    types = {name: _NUMBERS.get(name, "str") for name in columns}
    frame = pd.DataFrame(rows).reindex(columns=list(columns)).astype(types)
    return frame.fillna({name: "" for name in columns if name not in _NUMBERS})


def score_table(rows: Any) -> pd.DataFrame:
    """Returns a data frame with the columns of `scores.csv`, and with `key` and `bucket`.

    `key` is the score, or the score and the subset if the subset is not `all`, such as `bleu_no_unk`.
    `bucket` is the range of lengths, such as `1-10`, or `all`.
    """
    frame = tidy(rows, COLUMNS)
    buckets = [
        "all" if pd.isna(first) else bucket_name(int(first), None if pd.isna(last) else int(last))
        for first, last in zip(frame["from"], frame["to"], strict=True)
    ]
    everyone = frame["subset"] == "all"
    key = frame["score"].where(everyone, frame["score"] + "_" + frame["subset"])
    return frame.assign(key=key, bucket=pd.Series(buckets, index=frame.index, dtype="str"))


def write_scores(folder: str | Path, scores: pd.DataFrame) -> None:
    """Writes `scores.csv` into a run folder atomically."""
    text = scores[list(COLUMNS)].to_csv(index=False, lineterminator="\n")
    write_text(Path(folder) / FILE, text)


def read_scores(folder: str | Path) -> pd.DataFrame:
    """Reads the `scores.csv` of a run folder into a data frame with the columns of `score_table`.

    Raises:
        InputError: if `scores.csv` cannot be read; the message names the file.
    """
    path = Path(folder) / FILE
    with refuse_unreadable(path, "a table of scores"):
        types = {name: _NUMBERS.get(name, "str") for name in COLUMNS}
        empty = {name: [""] for name in _NUMBERS}
        frame = pd.read_csv(path, dtype=types, keep_default_na=False, na_values=empty)
        frame = score_table(frame[list(COLUMNS)])
    for name in frame["set"].unique():  # set names become parts of file names
        check_set_name(name)
    return frame
