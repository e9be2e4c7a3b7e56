"""Writes the comparison page at the end of a sweep."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from nmt.utils.errors import InputError
from nmt.utils.quoting import as_typed, command_line, quoted

log = logging.getLogger(__name__)

_sweeps: list[Path] = []


class SweepFolder(Callback):
    """A Hydra callback that records the folder of a sweep when the sweep starts."""

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        _sweeps.append(Path(str(config.hydra.sweep.dir)).absolute())


@contextlib.contextmanager
def comparison_pages() -> Iterator[None]:
    """Writes a comparison page for each sweep that runs in the block, even if a job fails."""
    _sweeps.clear()
    try:
        yield
    except InputError:  # write no page, since another sweep may be using the folder
        _sweeps.clear()
        raise
    finally:
        while _sweeps:
            compare_sweep(_sweeps.pop())


def compare_sweep(sweep: Path) -> None:
    """Writes the comparison page and tables of a sweep's finished runs; does nothing if no job was started.

    An error here is only logged, since the runs are complete without the page. The sweep's exit code does
    not change.
    """
    command = as_typed(command_line("compare", [f"runs=[{quoted(str(sweep))}]"]))
    try:
        if any(sweep.glob("*/")):  # each started job has a subfolder
            from nmt.config.commands import CompareConfig
            from nmt.report.comparison import build_comparison
            from nmt.report.write import write_comparison

            comparison = build_comparison(CompareConfig(runs=[str(sweep)]))
            write_comparison(comparison, sweep, title=f"Comparison of the runs in {sweep.name}")
    except InputError as refusal:
        log.warning("no comparison page: %s", refusal)
    except Exception:
        log.exception("no comparison page; to write it later, type: %s", command)
