"""Makes Lightning's Trainer from the configuration."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.loggers import Logger
from pytorch_lightning.profilers import AdvancedProfiler, PyTorchProfiler, SimpleProfiler
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from nmt.config import Config, TrainerConfig
from nmt.training.checkpoints import AtomicCheckpointIO
from nmt.training.lightning import (
    LoopbackDDP,
    SeveralMachinesDDP,
    average_on_the_device,
    leave_signals_alone,
)
from nmt.utils.devices import resolve_precision, use_threads
from nmt.utils.errors import InputError, first_line

PROFILERS = {"simple": SimpleProfiler, "advanced": AdvancedProfiler, "pytorch": PyTorchProfiler}


def make_trainer(
    config: Config, folder: Path, callbacks: list[pl.Callback], logger: Logger | None
) -> pl.Trainer:
    """The Trainer of a run, for updates and for tests.

    Raises:
        InputError: when the devices asked for are not there.
    """
    options = config.trainer
    use_threads(options.threads)
    plugins: list[Any] = [AtomicCheckpointIO()]
    if "SLURM_JOB_ID" in os.environ and "SLURM_NTASKS" in os.environ:
        from pytorch_lightning.plugins.environments import SLURMEnvironment

        plugins.append(SLURMEnvironment(auto_requeue=False))
    try:
        trainer = pl.Trainer(
            default_root_dir=folder,
            accelerator=options.accelerator,
            devices=options.devices,
            num_nodes=options.num_nodes,
            strategy=strategy(options),
            precision=resolve_precision(options.precision, options.accelerator),  # type: ignore[arg-type]
            max_steps=options.max_steps,
            max_epochs=-1,
            val_check_interval=options.valid_every * options.accumulate,
            check_val_every_n_epoch=None,
            accumulate_grad_batches=options.accumulate,
            log_every_n_steps=options.log_every,
            logger=logger or False,
            callbacks=callbacks,
            plugins=plugins,
            deterministic=config.deterministic or None,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            use_distributed_sampler=False,
            num_sanity_val_steps=0,
            **lightning_arguments(options, folder),
        )
        leave_signals_alone(trainer)
        average_on_the_device(trainer)
        return trainer
    except (RuntimeError, ValueError, TypeError, MisconfigurationException) as error:
        raise InputError(
            f"trainer (accelerator={options.accelerator}, devices={options.devices}, "
            f"strategy={options.strategy}, lightning={options.lightning}): {first_line(error)}"
        ) from error


def lightning_arguments(options: TrainerConfig, folder: Path) -> dict[str, Any]:
    """`trainer.lightning`: a profiler that is named writes to the run folder.

    Raises:
        InputError: for a name that is no argument of Lightning's Trainer, or no profiler.
    """
    arguments = dict(options.lightning)
    for name in set(arguments) - set(inspect.signature(pl.Trainer.__init__).parameters):
        raise InputError(f"trainer.lightning.{name}: no argument of Lightning's Trainer")
    for name in ("limit_train_batches", "limit_val_batches"):
        limit = arguments.get(name, options.accumulate)
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
            raise InputError(f"trainer.lightning.{name}={limit}: must be a whole number, 1 or more")
    trial = arguments.get("fast_dev_run", False)
    if not isinstance(trial, int) or trial < 0:
        raise InputError(
            f"trainer.lightning.fast_dev_run={trial}: must be true, false or a number of batches"
        )
    limit = arguments.get("limit_train_batches", options.accumulate)
    if limit % options.accumulate:
        raise InputError(
            f"trainer.lightning.limit_train_batches={limit}: must be a multiple of "
            f"trainer.accumulate={options.accumulate}"
        )
    profiler = arguments.get("profiler")
    if profiler is not None:
        if not isinstance(profiler, str) or profiler not in PROFILERS:
            known = ", ".join(PROFILERS)
            raise InputError(f"trainer.lightning.profiler={profiler}: must be one of {known}")
        arguments["profiler"] = PROFILERS[profiler](dirpath=folder, filename="profile")
    return arguments


def strategy(options: TrainerConfig) -> Any:
    """Lightning's strategy; on one machine a DDP that listens to no other."""
    if options.num_nodes > 1:
        return SeveralMachinesDDP()
    return LoopbackDDP() if options.devices > 1 else options.strategy
