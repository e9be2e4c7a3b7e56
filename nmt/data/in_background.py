"""Prepares text in another process while this one imports torch and Lightning."""

from __future__ import annotations

import contextlib
import multiprocessing
import sys
from collections.abc import Iterator

from nmt.config.commands import TrainConfig
from nmt.utils.environment import rank
from nmt.utils.processes import follow_parent


@contextlib.contextmanager
def preparing(config: TrainConfig) -> Iterator[None]:
    """Fills the cache with the text of a new training run while the block runs; at its end, waits for the text.

    Nothing is prepared on ranks above 0, or if a checkpoint decides what text is needed. An error is left to the
    preparation after the block, which finds what this one has not cached. If the block raises, the process ends.
    """
    decided = (config.resume, config.ckpt_path, config.initial_checkpoint)
    # A process must not fork after torch has started threads. Elsewhere than on Linux, it must not fork at all.
    if rank() or any(decided) or sys.platform != "linux" or "torch" in sys.modules:
        yield
        return
    process = multiprocessing.get_context("fork").Process(target=_prepare, args=(config,))
    process.start()
    try:
        yield
        process.join()
    finally:
        process.kill()
        process.join()


def _prepare(config: TrainConfig) -> None:
    follow_parent()
    from nmt.data.preparation import prepare

    with contextlib.suppress(Exception):
        prepare(config.data, config.tokenizer)
