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
        command = command_line("compare", [f"runs=[{quoted(str(self.sweep))}]"])
        try:
            if any(self.sweep.glob("*/")):  # a sweep that was refused has none
                # imported here: a job, which has this callback too, needs no charts
                from nmt.config import CompareConfig
                from nmt.report.comparison import compare
                from nmt.report.write import write_comparison

                title = f"Comparison of the runs in {self.sweep.name}"
                comparison = compare(CompareConfig(runs=[str(self.sweep)]), shown=True)
                write_comparison(comparison, self.sweep, title=title)
        except InputError as refusal:
            log.warning("no comparison page: %s", refusal)
        except KeyboardInterrupt:
            log.warning("no comparison page: stopped by Ctrl-C; to make it later: %s", command)
        except Exception:
            log.exception("no comparison page; to make it later: %s", command)
