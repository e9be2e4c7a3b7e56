"""The scores of a run as one tidy table: `scores.csv`, one row per number.

| column | content |
|---|---|
| `set` | name of the test set |
| `subset` | `all`; `no_unk`: sentences of known words, translated with `<unk>` forbidden; `position` |
| `score` | key of the score, such as `bleu` or `alignment_error_rate` |
| `from`, `to` | source lengths of the bucket, both included; empty for the whole set, `to` for the open bucket |
| `value` | the score |
| `low`, `high` | its interval; empty without one |
| `sentences` | number of sentences it was computed from |
| `interval` | what the interval covers: `sentences`, or `sentences and seeds` |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from nmt.config.loading import check_set_name
from nmt.utils.files import refuse_unreadable, write_text

FILE = "scores.csv"
COLUMNS = (
    *("set", "subset", "score", "from", "to"),
    *("value", "low", "high", "sentences", "interval"),
)
_TYPES = {
    **dict.fromkeys(("set", "subset", "score"), "str"),
    **dict.fromkeys(("from", "to", "sentences"), "Int64"),
    **dict.fromkeys(("value", "low", "high"), "float64"),
    "interval": "str",
}


def score_table(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Makes a frame with the columns and types of `scores.csv`; rows may lack columns."""
    frame = pd.DataFrame(list(rows)).reindex(columns=list(COLUMNS))
    frame["interval"] = frame["interval"].fillna("")
    return frame.astype(_TYPES)


def write_scores(folder: str | Path, scores: pd.DataFrame) -> Path:
    """Writes `scores.csv` into a run folder atomically; returns its path."""
    path = Path(folder) / FILE
    write_text(path, scores[list(COLUMNS)].to_csv(index=False, lineterminator="\n"))
    return path


def read_scores(folder: str | Path) -> pd.DataFrame:
    """Reads the scores of a run from its folder.

    Raises:
        InputError: if `scores.csv` cannot be read, naming the file.
    """
    path = Path(folder) / FILE
    with refuse_unreadable(path, "a table of scores"):
        empty = {name: [""] for name, kind in _TYPES.items() if kind != "str"}
        frame = pd.read_csv(path, dtype=_TYPES, keep_default_na=False, na_values=empty)
        frame = frame[list(COLUMNS)]
    for name in frame["set"].unique():  # set names become parts of file names
        check_set_name(name)
    return frame
