"""The comparison page of a sweep, made by a Hydra callback when its jobs have ended.

The callback is named in `conf/` under `hydra.callbacks`, and so is the same for every launcher.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from nmt.utils.commands import command_line, quoted
from nmt.utils.errors import InputError

log = logging.getLogger(__name__)

PAGE = "comparison.html"
_due: list[ComparisonPage] = []


@contextlib.contextmanager
def pages() -> Iterator[None]:
    """Makes the page of a sweep whose launcher raised an error, such as a failed job.

    Hydra does not call `on_multirun_end` then.
    """
    earlier = len(_due)
    try:
        yield
    except InputError:  # refused: another sweep may work in the folder
        del _due[earlier:]
        raise
    finally:
        for page in _due[earlier:]:
            page.make()


class ComparisonPage(Callback):
    """Makes the comparison page and the tables of a sweep in the sweep's folder.

    The runs are complete without the page: an error here is logged, and neither fails the sweep nor
    changes its exit code.
    """

    def __init__(self) -> None:
        self.sweep = Path()

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        self.sweep = Path(str(config.hydra.sweep.dir)).absolute()
        _due.append(self)

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        self.make()

    def make(self) -> None:
        """Makes the page of the finished runs of the sweep, unless no run was started."""
        _due.remove(self)
        try:
            if any(self.sweep.glob("*/")):  # a sweep that was refused has none
                self._make()
        except InputError as refusal:
            log.warning("no comparison page: %s", refusal)
        except KeyboardInterrupt:
            log.warning("no comparison page: stopped by Ctrl-C; %s", self._later)
        except Exception:
            log.exception("no comparison page; %s", self._later)

    def _make(self) -> None:
        # Charts and tables load libraries that a job, which has this callback too, never needs.
        from nmt.report.comparison import compare_sets
        from nmt.report.disambiguation import disambiguate_test_sets
        from nmt.report.finding import find_runs
        from nmt.report.page import build_page
        from nmt.report.tables import write_tables
        from nmt.report.terminal import terminal_table
        from nmt.utils.progress import counted

        found = find_runs([self.sweep])
        runs = disambiguate_test_sets(found.runs, shown=True)
        comparisons = compare_sets(runs, shown=True)
        write_tables(runs, comparisons, self.sweep / "tables")
        build_page(
            runs,
            self.sweep / PAGE,
            title=f"Comparison of the runs in {self.sweep.name}",
            unfinished=found.unfinished,
            comparisons=comparisons,
        )
        table = terminal_table(runs, comparisons, found.unfinished)
        log.info(
            "comparison of %s%s: %s\n%s:\n%s",
            counted(len(runs), "run"),
            f", {len(found.unfinished)} unfinished" if found.unfinished else "",
            self.sweep / PAGE,
            table.title,
            table.text(),
        )

    @property
    def _later(self) -> str:
        command = command_line("compare", [f"runs=[{quoted(str(self.sweep))}]"])
        return f"to make it later: {command}"
