"""W&B's own process, to which rows are handed: a signal to all processes of a job ends it first.

W&B does not start it anew, nor say where it is.
"""

from __future__ import annotations

import contextlib
import time


def has_died(seconds: float = 0) -> bool:
    """Whether W&B's process was started by this one and has ended since, or does within seconds."""
    from wandb.sdk import wandb_setup

    connection = wandb_setup.singleton()._connection
    service = None if connection is None else connection._proc
    if service is None:
        return False
    end = time.monotonic() + seconds
    while service._process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    return service._process.poll() is not None


def forget() -> None:
    """Has W&B start another process when it is next asked for a run."""
    import wandb
    from wandb.sdk.lib import module

    # the old one does not answer; where it does, its exit code would become that of this process
    with contextlib.suppress(Exception, SystemExit):
        wandb.teardown()
    module.unset_globals()  # the run at work
