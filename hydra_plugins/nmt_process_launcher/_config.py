"""The keys of `hydra.launcher` under `hydra/launcher=process`."""

from dataclasses import dataclass

from hydra.core.config_store import ConfigStore


@dataclass
class ProcessLauncherConf:
    """How the jobs of a sweep share one machine."""

    _target_: str = "hydra_plugins.nmt_process_launcher.launcher.ProcessLauncher"
    n_jobs: int = 1
    """jobs at a time"""
    gpus: list[str] | None = None
    """GPUs the sweep may use, as CUDA_VISIBLE_DEVICES names them; null: all that are visible"""
    grace_seconds: float = 60.0
    """seconds a job has to save and end, once the sweep is stopped, before it is killed"""
    devices_key: str = "trainer.devices"
    """key of the job's configuration that says how many devices (processes) it uses"""
    accelerator_key: str = "trainer.accelerator"
    """key that says on what; a job on `cpu` is given no GPU"""
    results: str = "results.json"
    """file in a job's folder whose presence means that the job is finished"""


def register() -> None:
    """Makes the launcher known to Hydra as `hydra/launcher=process`."""
    ConfigStore.instance().store(
        group="hydra/launcher", name="process", node=ProcessLauncherConf, provider="nmt"
    )
