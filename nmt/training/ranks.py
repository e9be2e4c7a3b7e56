"""Launches the ranks of a run, ends the run if one of them dies, and runs functions on all ranks."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import pytorch_lightning as pl
import torch
from pytorch_lightning.strategies.launchers.subprocess_script import _SubprocessScriptLauncher
from torch import nn

from nmt.utils.errors import describe_exit, exit_at_once
from nmt.utils.startup import PARENT, STOPPING

Result = TypeVar("Result")

POLL_S = 0.2  # seconds between checks for ranks that have died
ENDING_S = 4  # seconds for rank 0 to report its own error after another rank has failed


class RankLauncher(_SubprocessScriptLauncher):
    """Launches ranks like Lightning, but says which rank has died.

    Lightning's launcher kills rank 0 without a message. It also overrides the number of torch's
    threads, which the key `threads` sets.

    Args:
        strategy: the Trainer's strategy.
    """

    def __init__(self, strategy: Any) -> None:
        super().__init__(strategy.cluster_environment, strategy.num_processes, strategy.num_nodes)

    def launch(
        self,
        function: Callable[..., Any],
        *args: Any,
        trainer: pl.Trainer | None = None,
        **kwargs: Any,
    ) -> Any:
        """Launches the other ranks, and calls `function` on this rank.

        If the other ranks are running, or torchrun or SLURM launches them, only calls `function`.
        """
        environment = self.cluster_environment
        environment.validate_settings(num_devices=self.num_processes, num_nodes=self.num_nodes)
        if not environment.creates_processes_externally:
            os.environ[PARENT] = str(os.getpid())
            self._call_children_scripts()
            del os.environ[PARENT]
            threading.Thread(target=self._watch, daemon=True).start()
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            # A rank that died closes its connections. The launching rank then ends all others, in one line.
            if isinstance(error, RuntimeError) and self.num_processes * self.num_nodes > 1:
                time.sleep(ENDING_S + 1)
            while self.procs:
                self.procs.pop().kill()  # the other ranks would wait for this rank
            raise

    def _watch(self) -> None:
        """Ends this process after another rank has died: with its signal if it was stopped, otherwise with 1."""
        first = self.cluster_environment.node_rank() * self.num_processes + 1
        while True:
            time.sleep(POLL_S)
            for number, process in enumerate(list(self.procs), first):
                code = process.poll()
                if code is None or code == 0:
                    continue
                if code > 0:
                    time.sleep(ENDING_S)
                if process in self.procs:
                    exit_at_once(
                        code if -code in STOPPING else 1, f"rank {number}: {describe_exit(code)}"
                    )


def on_every_rank(trainer: pl.Trainer, model: nn.Module, work: Callable[[], Result]) -> Result:
    """Runs `work` on every rank in the same way as `Trainer.test`, and returns this rank's result.

    Launches the other ranks if necessary. Moves the model to this rank's device and sets it to evaluation
    mode. `work` runs with the trainer's precision and without gradients.
    """

    def run() -> Result:
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
    return run() if launcher is None else launcher.launch(run, trainer=trainer)
