"""Launches the other ranks of a run, and ends the run if one of them fails."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.strategies.launchers.subprocess_script import _SubprocessScriptLauncher

from nmt.training.signals import SIGNALS, Stop
from nmt.utils.environment import rank
from nmt.utils.errors import RunError, describe_exit, exit_at_once

POLL_S = 0.2  # seconds between checks for signals and failed ranks
ENDING_S = 3  # seconds for a rank to report its own error after another rank has failed


class RankLauncher(_SubprocessScriptLauncher):
    """Launches ranks like Lightning, but ends the run with a message if one rank fails.

    Lightning's launcher kills rank 0 without a message. It also overrides the number of torch's
    threads, which the key `threads` sets.

    While a rank waits for the other ranks to join, it runs C++ code, so Python cannot call signal
    handlers. Until all ranks have joined, a thread therefore waits for signals, and ends the process when
    one arrives. Nothing needs to be saved then, because the training has not begun.

    Args:
        strategy: the Trainer's strategy.
        stop: handles signals. With None, the launcher does not handle signals.
    """

    def __init__(self, strategy: Any, stop: Stop | None) -> None:
        super().__init__(strategy.cluster_environment, strategy.num_processes, strategy.num_nodes)
        self.stop = stop
        self._watcher: threading.Thread | None = None
        self._ending = False  # whether an exception of this rank is ending the run

    def launch(
        self,
        function: Callable[..., Any],
        *args: Any,
        trainer: pl.Trainer | None = None,
        **kwargs: Any,
    ) -> Any:
        """Launches the other ranks, and calls `function` on this rank.

        If torchrun or SLURM has launched the other ranks, only calls `function`.

        Raises:
            RunError: if another rank has failed.
        """
        if self._watcher is None:
            received, sent = os.pipe()
            os.set_blocking(sent, False)
            if self.stop is not None:
                signal.set_wakeup_fd(sent)
            self._watcher = threading.Thread(target=self._watch, args=(received,), daemon=True)
            self._watcher.start()
        if self.stop is not None and self.stop.number:  # the signal came before the watcher started
            raise self.stop.interrupted(self.stop.number)
        environment = self.cluster_environment
        environment.validate_settings(num_devices=self.num_processes, num_nodes=self.num_nodes)
        if not environment.creates_processes_externally:
            self._call_children_scripts()
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            self._ending = True
            if isinstance(error, RuntimeError):  # perhaps a failed rank closed the connection
                end = time.monotonic() + ENDING_S
                while not (failure := self._failure()) and self.procs and time.monotonic() < end:
                    time.sleep(POLL_S)
                if failure:
                    raise RunError(failure) from error
            raise
        finally:
            if self._ending:
                self.kill(signal.SIGKILL)  # otherwise the other ranks would wait forever

    def _watch(self, received: int) -> None:
        """Ends this process if another rank fails, or if a signal arrives before all ranks have joined."""
        while not self._ending:
            if select.select([received], [], [], POLL_S)[0]:
                number = os.read(received, 1)[0]
                time.sleep(POLL_S)  # gives the signal handler time to end the run
                waits = not torch.distributed.is_initialized() and not self._ending
                if self.stop and number in SIGNALS and waits and not self.stop.ended:
                    self.kill(signal.SIGKILL)
                    self.stop.exit(number, f"rank {rank()}: ")
            elif failure := self._failure():
                end = time.monotonic() + ENDING_S  # lets this rank report its own error first
                while not self._ending and time.monotonic() < end:
                    time.sleep(POLL_S)
                if not self._ending:
                    self.kill(signal.SIGKILL)
                    exit_at_once(1, failure)

    def _failure(self) -> str:
        """Describes the failure of the first failed rank, or returns an empty string if no rank has failed."""
        first = self.cluster_environment.node_rank() * self.num_processes
        for number, process in enumerate(self.procs, first + 1):
            if code := process.poll():
                return f"rank {number}: {describe_exit(code)}"
        return ""
