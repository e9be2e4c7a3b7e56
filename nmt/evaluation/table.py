"""The scores of a run as one tidy table: `scores.csv`, a row a number.

| column | content |
|---|---|
| `set` | name of the test set |
| `subset` | `all`; `no_unk`: sentences of known words, translated with `<unk>` forbidden; `position` |
| `score` | key of the score, such as `bleu` or `alignment_error_rate` |
| `from`, `to` | source lengths of the bucket, both included; empty for the whole set, `to` for the open bucket |
| `value` | the score |
| `low`, `high` | its interval; empty without one |
| `sentences` | number of sentences it was computed from |
| `interval` | what was drawn again for the interval: `sentences`, or `sentences and seeds` |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from nmt.config.loading import check_set_name
from nmt.utils.errors import InputError
from nmt.utils.files import write_text

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
_NUMBERS = [name for name, kind in _TYPES.items() if kind != "str"]


def score_table(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """A frame with the columns and types of `scores.csv` from rows, in which a column may be absent."""
    frame = pd.DataFrame(list(rows)).reindex(columns=list(COLUMNS))
    frame["interval"] = frame["interval"].fillna("")
    return frame.astype(_TYPES)


def write_scores(folder: str | Path, scores: pd.DataFrame) -> Path:
    """Writes `scores.csv` into a run folder, whole or not at all."""
    path = Path(folder) / FILE
    write_text(path, scores[list(COLUMNS)].to_csv(index=False, lineterminator="\n"))
    return path


def read_scores(runs: Mapping[str, str | Path] | Iterable[str | Path]) -> pd.DataFrame:
    """The scores of several runs as one frame, with the column `run` in front.

    Args:
        runs: run folders by label, or folders alone, whose names are then the labels.

    Raises:
        InputError: if a `scores.csv` cannot be read, naming the file.
    """
    folders = runs if isinstance(runs, Mapping) else {Path(run).name: run for run in runs}
    tables = [_read(Path(folder) / FILE).assign(run=label) for label, folder in folders.items()]
    if not tables:
        return score_table([]).assign(run=pd.Series(dtype="str"))[["run", *COLUMNS]]
    return pd.concat(tables, ignore_index=True)[["run", *COLUMNS]]


def _read(path: Path) -> pd.DataFrame:
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            frame = pd.read_csv(
                stream, dtype=_TYPES, keep_default_na=False, na_values={c: [""] for c in _NUMBERS}
            )
        for name in frame["set"].unique():  # it becomes part of file names
            check_set_name(name)
        return frame[list(COLUMNS)]
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except (ValueError, KeyError) as error:
        raise InputError(f"{path}: not a table of scores: {error}") from error
