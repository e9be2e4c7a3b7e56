"""The CSV logger of a run: `metrics.csv`, a row for each update that is logged.

A kill at any moment leaves the file readable.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from pytorch_lightning.loggers import Logger
from pytorch_lightning.utilities.rank_zero import rank_zero_only

from nmt.utils.files import write_text

STEP = "step"
SHARED = {STEP, "epoch"}  # columns that every kind of row has


class MetricsFile:
    """Rows of scores in a CSV file that a resumed run continues.

    A row is added in one write at the file's end. Whatever changes earlier lines (another column,
    rows that are logged again) writes the file anew and renames it.

    Args:
        path: of the file; rows that are there already are kept.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.columns: list[str] = []
        self._earlier: list[dict[str, str]] = []
        self._whole = False  # whether this object has written the file
        # rows of an earlier process at the step of this one's first row
        self._first, self._there = -1, list[dict[str, Any]]()
        if path.is_file():
            self._earlier = whole_rows(path)
            self.columns = sorted({name for row in self._earlier for name in row})

    def add(self, row: Mapping[str, Any], step: int) -> None:
        """Adds a row, and drops rows of later steps that an earlier process logged.

        An earlier process' row of the same step is dropped if it has a column in common with this
        row. Others are kept, since they may not be logged again.
        """
        values = {**row, STEP: step}
        missing = values.keys() - self.columns
        if not self._whole:
            self._earlier = [row for row in self._earlier if int(row[STEP]) <= step]
            self._first = step
            self._there = [_filled(row) for row in self._earlier if int(row[STEP]) == step]
        names = _filled(values).keys() - SHARED
        replaced = [row for row in self._there if step == self._first and names & row.keys()]
        if self._whole and not missing and not replaced:
            with self.path.open("ab") as stream:
                stream.write(self._text([values]).encode())
            return
        self.columns = sorted({*self.columns, *missing})
        kept = whole_rows(self.path) if self._whole else self._earlier
        kept = [row for row in kept if _filled(row) not in replaced]
        header = dict(zip(self.columns, self.columns, strict=True))
        write_text(self.path, self._text([header, *kept, values]))
        self._there = [row for row in self._there if row not in replaced]
        self._whole, self._earlier = True, []

    def _text(self, rows: list[Any]) -> str:
        text = io.StringIO(newline="")
        csv.DictWriter(text, self.columns).writerows(rows)
        return text.getvalue()


class ResumableCSVLogger(Logger):
    """A metrics.csv that a resumed run continues; Lightning's own logger begins it anew.

    Rows from the first step that is logged again on are replaced.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._file = MetricsFile(folder / "metrics.csv")
        self._step: int | None = None  # of the last row
        self._waiting: list[dict[str, float]] = []

    @property
    def name(self) -> str:
        return "csv"

    @property
    def version(self) -> str:
        return ""

    @property
    def save_dir(self) -> str:
        return str(self._folder)

    @rank_zero_only
    def log_hyperparams(self, params: Any, *arguments: Any, **keywords: Any) -> None:
        """Writes hparams.yaml beside the rows, as Lightning's own logger does."""
        self._folder.mkdir(parents=True, exist_ok=True)
        write_text(self._folder / "hparams.yaml", OmegaConf.to_yaml(OmegaConf.create(params)))

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        row = {name: float(value) for name, value in metrics.items()}
        step = self._step if step is None else step
        if step is None:  # a callback of one's own says none: that of the first row which does
            self._waiting.append(row)
            return
        self._step = step
        for each in (*self._waiting, row):
            self._file.add(each, step)
        self._waiting.clear()


def _filled(row: Mapping[str, Any]) -> dict[str, Any]:
    """The cells of a row that are not empty."""
    return {name: value for name, value in row.items() if value not in ("", None)}


def whole_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a file, without a last one that was cut short."""
    with path.open(newline="", encoding="utf-8", errors="replace") as stream:
        text = stream.read()
    whole = text[: text.rfind("\n") + 1]
    rows = csv.DictReader(io.StringIO(whole, newline=""))
    # a line that is too short has None among its values, and one that is too long as a name
    whole_lines = (row for row in rows if None not in row and None not in row.values())
    return [row for row in whole_lines if str(row.get(STEP)).isdigit()]
