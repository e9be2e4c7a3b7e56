"""The comparison page of a sweep, made when its jobs have ended, whatever launcher ran them."""

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

_sweeps: list[Path] = []


class SweepFolder(Callback):
    """Notes the folder of a sweep that begins; named in `conf/` under `hydra.callbacks`."""

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        _sweeps.append(Path(str(config.hydra.sweep.dir)).absolute())


@contextlib.contextmanager
def comparison_pages() -> Iterator[None]:
    """Makes the page of a sweep that was run inside, also where a job of it failed."""
    _sweeps.clear()
    try:
        yield
    except InputError:  # refused: another sweep may work in the folder
        _sweeps.clear()
        raise
    finally:
        while _sweeps:
            compare_sweep(_sweeps.pop())


def compare_sweep(sweep: Path) -> None:
    """Makes the comparison page and the tables of the finished runs, unless no run was started.

    The runs are complete without the page: an error here is logged, and neither fails the sweep nor
    changes its exit code.
    """
    command = command_line("compare", [f"runs=[{quoted(str(sweep))}]"])
    try:
        if any(sweep.glob("*/")):  # a sweep that was refused has none
            from nmt.config import CompareConfig
            from nmt.report.comparison import compare
            from nmt.report.write import write_comparison

            comparison = compare(CompareConfig(runs=[str(sweep)]), shown=True)
            write_comparison(comparison, sweep, title=f"Comparison of the runs in {sweep.name}")
    except InputError as refusal:
        log.warning("no comparison page: %s", refusal)
    except KeyboardInterrupt:
        log.warning("no comparison page: stopped by Ctrl-C; to make it later: %s", command)
    except Exception:
        log.exception("no comparison page; to make it later: %s", command)
