"""Dropout with noise that does not depend on how the sentences of a batch are distributed.

A thread that computes some sentences of a batch draws the noise of the whole batch, from the same
random state as the other threads, and takes the part of its sentences.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import torch
from torch import Tensor, nn


class BatchShare(NamedTuple):
    """The sentences of a batch that a thread computes."""

    first: int
    end: int  # one past the last
    batch: int  # sentences of the whole
    generator: torch.Generator


_share: ContextVar[BatchShare | None] = ContextVar("share", default=None)
_batch_dim: ContextVar[int] = ContextVar("batch_dim", default=0)


@contextmanager
def share_of_batch(share: BatchShare) -> Iterator[None]:
    """Inside, this thread computes these sentences of a batch."""
    token = _share.set(share)
    try:
        yield
    finally:
        _share.reset(token)


@contextmanager
def time_first() -> Iterator[None]:
    """Inside, tensors are (T, B, ...), and elsewhere (B, ...)."""
    token = _batch_dim.set(1)
    try:
        yield
    finally:
        _batch_dim.reset(token)


def random_state() -> Tensor:
    """The state of the CPU random number generator of this thread."""
    share, state = _share.get(), torch.get_rng_state()
    return state if share is None else torch.cat([state, share.generator.get_state()])


class Dropout(nn.Dropout):
    """`torch.nn.Dropout`, in a share of a batch too.

    Raises ValueError there for a tensor whose first dimension (the second with `time_first`) is not
    that of the sentences.
    """

    def forward(self, x: Tensor) -> Tensor:
        share, dim = _share.get(), _batch_dim.get()
        if share is None or not self.training or self.p in (0, 1):
            return super().forward(x)
        sentences = share.end - share.first
        if x.dim() <= dim or x.shape[dim] != sentences:
            raise ValueError(
                f"dropout of {tuple(x.shape)}: dimension {dim} has not {sentences} sentences"
            )
        shape = list(x.shape)
        shape[dim] = share.batch
        kept = 1 - self.p
        noise = x.new_empty(shape).bernoulli_(kept, generator=share.generator).div_(kept)
        return x * noise.narrow(dim, share.first, sentences)
