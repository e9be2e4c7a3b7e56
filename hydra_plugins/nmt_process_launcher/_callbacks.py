"""What the launcher adds to Hydra's callbacks, in a job and in the sweep."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

from hydra.core.utils import JobReturn, JobStatus
from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from hydra_plugins.nmt_process_launcher._job import RETURN

log = logging.getLogger(__name__)


class SaveReturnValue(Callback):
    """In a job: writes what the task function returned, as JSON, to the file NMT_RETURN names."""

    def on_job_end(self, config: DictConfig, job_return: JobReturn, **kwargs: Any) -> None:
        if job_return.status is not JobStatus.COMPLETED or RETURN not in os.environ:
            return
        if int(os.environ.get("LOCAL_RANK", "0")) > 0:  # other ranks return nothing of their own
            return
        try:
            text = json.dumps(job_return.return_value, default=float)
        except (TypeError, ValueError):
            log.debug("the return value %r cannot be written as JSON", job_return.return_value)
            return
        path = Path(os.environ[RETURN])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


class ExitCode(Callback):
    """In the sweep: exit status 1 when jobs have failed, after all other callbacks have run.

    Hydra turns an exception in a callback into a warning; `SystemExit` is let through.
    """

    def __init__(self) -> None:
        self.failed = False

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        if self.failed:
            raise SystemExit(1)
