"""The sweeper: jobs that are no product of values, as those of a study are, under any launcher."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.core.plugins import Plugins
from hydra.errors import ConfigCompositionException
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from hydra_plugins.nmt_listed_sweeper import _config

_config.register()


class ListedSweeper(Sweeper):
    """Gives a launcher all jobs of a file as one batch; what is typed besides is typed for each."""

    def __init__(self, jobs: str) -> None:
        self.jobs = jobs

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        self.hydra_context = hydra_context
        self.config = config
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> Any:
        """Runs the jobs; raises what a launcher that raises for a failed job does."""
        batch = [[*arguments, *job] for job in self._listed()]
        self.validate_batch_is_legal(batch)
        assert self.launcher is not None
        returns = self.launcher.launch(batch, initial_job_idx=0)
        for each in returns:
            _ = each.return_value  # asked for, it raises for a job that has failed
        return [returns]

    def _listed(self) -> list[Sequence[str]]:
        try:
            listed = json.loads(Path(self.jobs).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigCompositionException(
                f"hydra.sweeper.jobs={self.jobs}: cannot be read ({error})"
            ) from error
        if not isinstance(listed, list) or not all(
            isinstance(job, list) and all(isinstance(word, str) for word in job) for job in listed
        ):
            raise ConfigCompositionException(
                f"hydra.sweeper.jobs={self.jobs}: must hold a list of lists of overrides"
            )
        return listed
