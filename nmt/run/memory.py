"""Estimates the memory of a configuration, and warns where the machine has less."""

from __future__ import annotations

import logging
from functools import reduce
from typing import NamedTuple

from nmt.config import Config
from nmt.models.shares import FEWEST
from nmt.utils.devices import device_memory, host_memory, uses_gpu
from nmt.utils.environment import rank

log = logging.getLogger(__name__)

NUMBER = 4  # bytes
SCORE = 6  # bytes: of the score of a word after a hypothesis, and of what is made of it
WORKER = 2**24  # bytes that a process which makes batches does not share with the others


class Need(NamedTuple):
    """Memory that is needed on one machine.

    Attributes:
        what: the part of a run that needs it.
        keys: that it grows with.
        size: bytes.
        on_device: whether on the devices of the run; otherwise on the host.
    """

    what: str
    keys: tuple[str, ...]
    size: int
    on_device: bool = True


def memory_needs(config: Config, training: bool) -> list[Need]:
    """The memory that grows with a batch, a beam or the threads; parameters are not counted.

    For an update: what the backward pass keeps of each symbol of both sides. For a search: the score
    of every word after every hypothesis. For replacing `<unk>`: these scores at every step of a
    translation as long as a training sentence. These are upper bounds: shorter sentences need less.
    """
    model, data, search, trainer = config.model, config.data, config.search, config.trainer
    words = config.tokenizer.target_size
    needs: list[Need] = []
    keys: tuple[str, ...]
    threads = 0  # not known, or nothing is shared out
    if isinstance(trainer.threads, int) and not uses_gpu(trainer.accelerator):
        threads = trainer.threads
    if training:
        layers = model.embedding + model.maxout + (model.alignment or 0) + 16 * model.hidden
        keys, symbols = ("data.batch_tokens",), data.batch_tokens
        if data.batch_by == "sentences":
            keys = ("data.batch_size", "data.max_length")
            symbols = data.batch_size * data.max_length
        update = NUMBER * 2 * symbols * layers // (trainer.num_nodes * trainer.accumulate)
        needs.append(Need("an update", (*keys, "model.hidden"), update))
        workers = WORKER * data.workers * trainer.devices
        needs.append(Need("making batches", ("data.workers",), workers, on_device=False))
        if threads:  # each thread that shares a batch has gradients of its own
            copies = trainer.devices * threads
            if data.batch_by == "sentences":
                sentences = data.batch_size // (trainer.num_nodes * trainer.accumulate)
                copies = max(trainer.devices, min(copies, sentences // FEWEST))
            tables = (config.tokenizer.source_size + words) * model.embedding + words * model.maxout
            keys = ("trainer.threads", keys[0], "model.hidden")
            size = NUMBER * copies * (tables + 20 * model.hidden**2)
            needs.append(Need("gradients", keys, size))
    at_once = search.batch_size * trainer.devices * max(1, threads)  # a batch each
    named = ("trainer.threads",) if threads else ()
    keys = ("search.batch_size", "search.beam_size", "tokenizer.target_size", *named)
    needs.append(Need("a search", keys, SCORE * at_once * search.beam_size * words))
    if search.replace_unk != "none":
        keys = ("search.batch_size", "data.max_length", "tokenizer.target_size", *named)
        places = 2 * NUMBER * at_once * data.max_length * words
        needs.append(Need(f"search.replace_unk={search.replace_unk}", keys, places))
    return needs


def warn_of_memory(config: Config, training: bool = False) -> None:
    """Warns, on rank 0, of each need that is larger than the memory of this machine."""
    if rank():
        return
    for what, keys, size, on_device in memory_needs(config, training):
        there = host_memory()
        if on_device and uses_gpu(config.trainer.accelerator):
            there = device_memory() * config.trainer.devices
        if size > there:
            given = ", ".join(f"{key}={reduce(getattr, key.split('.'), config)}" for key in keys)
            log.warning(
                "%s: %s may take about %.0f GB of memory, of %.0f GB here: take smaller values",
                given, what, size / 1e9, there / 1e9,
            )  # fmt: skip
