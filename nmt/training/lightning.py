"""Everything that uses private interfaces of Lightning.

`tests/training/test_lightning.py` fails when a version of Lightning has changed them.
"""

from __future__ import annotations

import atexit
import logging
import math
import os
import socket
import sys
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

import pytorch_lightning as pl
import torch
import torch.distributed as dist
from pytorch_lightning.callbacks import WeightAveraging
from pytorch_lightning.loggers import WandbLogger
from pytorch_lightning.plugins.environments import LightningEnvironment
from pytorch_lightning.strategies import DDPStrategy
from pytorch_lightning.strategies.launchers.subprocess_script import _SubprocessScriptLauncher
from pytorch_lightning.trainer.connectors.signal_connector import _SignalConnector
from torch import nn

from nmt.training.ranks import STARTER, watch_ranks

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
Result = TypeVar("Result")


def on_every_rank(trainer: pl.Trainer, model: nn.Module, work: Callable[[], Result]) -> Result:
    """Runs `work` as `Trainer.test` runs its loop, and returns what it returns on this rank.

    The other ranks are started where they have not been. The model is in evaluation mode and on
    this rank's device, products are made in the trainer's precision, and no gradient is kept.
    """

    def prepared() -> Result:
        trainer.strategy.setup_environment()
        model.to(trainer.strategy.root_device)
        training = model.training
        model.eval()
        try:
            with torch.no_grad(), trainer.precision_plugin.test_step_context():
                return work()
        finally:
            model.train(training)

    launcher = trainer.strategy.launcher
    return prepared() if launcher is None else launcher.launch(prepared, trainer=trainer)


def accumulating(trainer: pl.Trainer) -> bool:
    """Whether the micro-batch at hand is not the last one of its update."""
    return bool(trainer.fit_loop._should_accumulate())


def is_trial(trainer: pl.Trainer) -> bool:
    """Whether the Trainer makes a few batches only, and nothing is to be written (`fast_dev_run`)."""
    return bool(vars(trainer)["fast_dev_run"])


def complete_loops(checkpoint: dict[str, Any], trainer: pl.Trainer) -> None:
    """Marks the last update and its validation as completed in the loops of a checkpoint."""
    updates = trainer.global_step
    batches = updates * trainer.accumulate_grad_batches
    loop = checkpoint["loops"]["fit_loop"]
    limit = trainer.limit_train_batches  # of an epoch, where it is a number of batches
    of_epoch = batches % limit if isinstance(limit, int) else batches
    for count, made in (("total", batches), ("current", of_epoch)):
        counts = loop["epoch_loop.batch_progress"][count]
        counts.update(dict.fromkeys(counts, made))
    # on its way past a validation that was made, the loop counts this update once more
    validated = batches % int(trainer.val_check_interval) == 0
    loop["epoch_loop.state_dict"]["_batches_that_stepped"] = updates - validated


def is_of_restoring(error: BaseException) -> bool:
    """Whether an error was raised while a Trainer took up the state of a checkpoint."""
    frames = traceback.extract_tb(error.__traceback__)
    return any(
        frame.filename.endswith("checkpoint_connector.py") and "restore" in frame.name
        for frame in frames
    )


def leave_signals_alone(trainer: pl.Trainer) -> None:
    """Lightning's handlers talk to other ranks from inside a signal; `nmt.training.signals` serves
    instead."""
    trainer._signal_connector = _NoSignals(trainer)
    # of a signal that is never said to have come; it would wait for the device at every batch
    trainer.fit_loop.epoch_loop._broadcast_sigterm_tensor = lambda: None  # type: ignore[method-assign]


def average_on_the_device(trainer: pl.Trainer) -> None:
    """Keeps the averaged weights of callbacks where the model is trained.

    Lightning asks the model where it is before it is moved, so that they would stay on the CPU, and
    be copied there at every update.
    """
    for callback in trainer.callbacks:  # type: ignore[attr-defined]
        if isinstance(callback, WeightAveraging) and callback._device is None:
            callback._device = trainer.strategy.root_device


class _NoSignals(_SignalConnector):
    def register_signal_handlers(self) -> None:
        """Leaves the handlers that are there."""

    def teardown(self) -> None:
        """Leaves them, too."""


def wandb_settings(logger: WandbLogger) -> dict[str, Any]:
    """What the logger hands to `wandb.init` when its run begins; may be changed until then."""
    settings: dict[str, Any] = logger._wandb_init
    return settings


def has_wandb_run(logger: WandbLogger) -> bool:
    """Whether the logger has begun its run."""
    return logger._experiment is not None


def forget_wandb_run(logger: WandbLogger) -> None:
    """Has the logger begin, or go on with, its run once more at its next row."""
    logger._experiment = None


class WatchingLauncher(_SubprocessScriptLauncher):
    """Starts the other ranks, and a thread that watches them and reports which of them has died.

    Lightning's own observer kills this process without a message.
    """

    def _call_children_scripts(self) -> None:
        os.environ[STARTER] = str(os.getpid())
        try:
            super()._call_children_scripts()
        finally:
            del os.environ[STARTER]
        watch_ranks().watch(self.procs)
        self.procs = []  # which Lightning's observer would watch


class LoopbackDDP(DDPStrategy):
    """DDP whose processes were started by the first one, all on this machine.

    By default torch's rendezvous listens on every network interface, and its collectives on that of the
    host name. On one machine the loopback interface suffices.
    """

    def _configure_launcher(self) -> None:
        assert self.cluster_environment is not None
        self._launcher = WatchingLauncher(
            self.cluster_environment, self.num_processes, self.num_nodes
        )

    def setup_distributed(self) -> None:
        environment = self.cluster_environment
        if isinstance(environment, LightningEnvironment) and not dist.is_initialized():
            self.set_world_ranks()
            interface = "lo0" if sys.platform == "darwin" else "lo"
            for library in ("GLOO", "NCCL"):
                os.environ.setdefault(f"{library}_SOCKET_IFNAME", interface)
            dist.init_process_group(
                self._get_process_group_backend(),
                store=loopback_store(environment.main_port, self.world_size, self.global_rank),
                rank=self.global_rank,
                world_size=self.world_size,
                timeout=self._timeout,
                device_id=self.root_device if self.root_device.type != "cpu" else None,
            )
            if dist.get_backend() == "nccl":  # as Lightning does where it makes the group
                atexit.register(_leave_group)
        super().setup_distributed()


class SeveralMachinesDDP(DDPStrategy):
    """DDP that says what it waits for, which torch's rendezvous does not."""

    def setup_distributed(self) -> None:
        environment = self.cluster_environment
        if environment is not None and not dist.is_initialized():
            self.set_world_ranks()
            minutes = self._timeout.total_seconds() // 60 if self._timeout else math.inf
            log.info(
                "rank %d waits for the others of %d at %s:%d, for at most %.0f minutes",
                self.global_rank, self.world_size, environment.main_address, environment.main_port,
                minutes,
            )  # fmt: skip
        super().setup_distributed()


def _leave_group() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


def loopback_store(port: int, world: int, rank: int) -> dist.TCPStore:
    """The store that the ranks meet at; rank 0 listens on the loopback interface alone."""
    if rank:
        return dist.TCPStore(HOST, port, world, is_master=False)
    listener = socket.create_server((HOST, port))
    return dist.TCPStore(
        HOST,
        port,
        world,
        is_master=True,
        master_listen_fd=listener.detach(),
        wait_for_workers=False,
    )
