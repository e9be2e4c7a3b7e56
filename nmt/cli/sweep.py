"""Writes the comparison page at the end of a sweep, with any launcher."""

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
    """Records the folder of a sweep at its start; set in `conf/` under `hydra.callbacks`."""

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        _sweeps.append(Path(str(config.hydra.sweep.dir)).absolute())


@contextlib.contextmanager
def comparison_pages() -> Iterator[None]:
    """Writes the comparison page of the sweep that the block runs, even if a job fails."""
    _sweeps.clear()
    try:
        yield
    except InputError:  # the sweep was refused: another sweep may write to the folder
        _sweeps.clear()
        raise
    finally:
        while _sweeps:
            compare_sweep(_sweeps.pop())


def compare_sweep(sweep: Path) -> None:
    """Writes the comparison page and tables of the finished runs, if any run was started.

    The runs are complete without the page: an error here is logged and leaves the sweep's exit code
    unchanged.
    """
    command = command_line("compare", [f"runs=[{quoted(str(sweep))}]"])
    try:
        if any(sweep.glob("*/")):  # a refused sweep has no subfolders
            from nmt.config.commands import CompareConfig
            from nmt.report.comparison import build_comparison
            from nmt.report.write import write_comparison

            comparison = build_comparison(CompareConfig(runs=[str(sweep)]))
            write_comparison(comparison, sweep, title=f"Comparison of the runs in {sweep.name}")
    except InputError as refusal:
        log.warning("no comparison page: %s", refusal)
    except KeyboardInterrupt:
        log.warning("no comparison page: stopped by Ctrl-C; to make it later: %s", command)
    except Exception:
        log.exception("no comparison page; to make it later: %s", command)
