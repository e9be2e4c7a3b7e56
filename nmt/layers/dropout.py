"""Dropout whose noise does not depend on how the sentences of a batch are shared out.

A thread that computes some sentences of a batch draws the noise of all of them, from random numbers
that begin where those of the other threads do, and takes what is theirs.
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


@contextmanager
def share_of_batch(share: BatchShare) -> Iterator[None]:
    """What this thread computes inside is of these sentences."""
    token = _share.set(share)
    try:
        yield
    finally:
        _share.reset(token)


class Dropout(nn.Dropout):
    """`torch.nn.Dropout`, in a share of a batch too; `batch_dim` is the dimension of the sentences."""

    def forward(self, x: Tensor, batch_dim: int = 0) -> Tensor:
        share = _share.get()
        if share is None or not self.training or self.p == 0:
            return super().forward(x)
        shape = list(x.shape)
        shape[batch_dim] = share.batch
        kept = 1 - self.p
        noise = x.new_empty(shape).bernoulli_(kept, generator=share.generator).div_(kept)
        return x * noise.narrow(batch_dim, share.first, share.end - share.first)
