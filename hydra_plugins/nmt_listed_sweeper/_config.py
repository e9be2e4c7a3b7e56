"""The keys of `hydra.sweeper` under `hydra/sweeper=listed`."""

from dataclasses import dataclass

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING


@dataclass
class ListedSweeperConf:
    """Jobs that are no product of values."""

    _target_: str = "hydra_plugins.nmt_listed_sweeper.sweeper.ListedSweeper"
    jobs: str = MISSING
    """JSON file: a list of jobs, each the list of its overrides; `hydra.sweep.subdir` may be one"""


def register() -> None:
    """Makes the sweeper known to Hydra as `hydra/sweeper=listed`."""
    ConfigStore.instance().store(
        group="hydra/sweeper", name="listed", node=ListedSweeperConf, provider="nmt"
    )
