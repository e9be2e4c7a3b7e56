"""Errors of the machine turned into messages: memory, disk, processes that died."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from nmt.config import Config
from nmt.training.ranks import INTACT, who_died
from nmt.utils.errors import RunError, first_line
from nmt.utils.files import NO_ROOM

LOST = ("Connection closed by peer", "Connection reset by peer", "Broken pipe", "NCCL")


@contextlib.contextmanager
def machine_errors(config: Config, training: bool = False) -> Iterator[None]:
    """Turns errors of the machine inside into a `RunError` that says what to try.

    Raises:
        RunError: out of memory, no space, a worker or another rank that died.
    """
    without_memory = out_of_memory if training else out_of_memory_applied
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise RunError(without_memory(config)) from error
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        where = f"{error.filename}: " if error.filename else ""
        kept = f"; {INTACT}" if training else ""
        raise RunError(f"{where}{error.strerror}{kept}") from error
    except RuntimeError as error:
        first = first_line(error)
        if "DataLoader worker" in first:
            raise RunError(
                f"data.workers={config.data.workers}: a process that makes batches died ({first}); "
                f"{INTACT} (possibly out of memory: try fewer workers)"
            ) from error
        if "can't allocate memory" in str(error):
            raise RunError(without_memory(config)) from error
        lost = isinstance(error, torch.distributed.DistError) or any(w in first for w in LOST)
        if config.trainer.devices * config.trainer.num_nodes > 1 and lost:
            dead = who_died() or "another process of the run ended, see its message"
            raise RunError(f"{dead}; {INTACT}") from error
        raise


def out_of_memory_applied(config: Config) -> str:
    """The message where sentences do not fit into memory when a trained model is applied."""
    return (
        f"out of memory with search.batch_size={config.search.batch_size} sentences at a time; "
        "try a smaller one, a smaller search.beam_size, or shorter sentences"
    )


def out_of_memory(config: Config) -> str:
    """The message where a batch of a training does not fit into memory."""
    by_tokens = config.data.batch_by == "tokens"
    name = "batch_tokens" if by_tokens else "batch_size"
    size: int = getattr(config.data, name)
    share = size // (config.trainer.devices * config.trainer.num_nodes * config.trainer.accumulate)
    return (
        f"out of memory with data.{name}={size} ({share} {config.data.batch_by} at a time) and "
        f"search.batch_size={config.search.batch_size}; {INTACT}\n"
        f"try trainer.accumulate={2 * config.trainer.accumulate} (the same updates in half the "
        f"memory), a smaller data.{name} or data.max_length, and for tests search.batch_size"
    )
