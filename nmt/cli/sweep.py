"""Writes the comparison page at the end of a sweep."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from nmt.utils.errors import InputError
from nmt.utils.quoting import as_typed, command_line, quoted

log = logging.getLogger(__name__)


class ComparisonPage(Callback):
    """A Hydra callback that writes the comparison page and tables of the finished runs at the end of a sweep.

    An error here is only logged, since the runs are complete without the page. The sweep's exit code does
    not change.
    """

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        from nmt.config.commands import CompareConfig  # pandas takes half a second
        from nmt.report.comparison import build_comparison
        from nmt.report.write import write_comparison

        sweep = Path(str(config.hydra.sweep.dir)).absolute()
        command = as_typed(command_line("compare", [f"runs=[{quoted(str(sweep))}]"]))
        try:
            comparison = build_comparison(CompareConfig(runs=[str(sweep)]))
            write_comparison(comparison, sweep, title=f"Comparison of the runs in {sweep.name}")
        except InputError as refusal:
            log.warning("no comparison page: %s", refusal)
        except Exception:
            log.exception("no comparison page; to write it later, type: %s", command)
