"""An update's gradient by several threads: each computes some sentences of the batch from end to end.

Threads of OpenMP meet at every operation, where on a busy machine one waits for another that is not
running. Threads of Python that compute a share of the sentences each, with one thread of torch, meet
once an update.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from nmt.data.batch import Batch
from nmt.layers.dropout import BatchShare, Dropout, share_of_batch
from nmt.utils.workers import compute_at_once

NOISE = (
    nn.Dropout,
    nn.Dropout1d,
    nn.Dropout2d,
    nn.Dropout3d,
    nn.AlphaDropout,
    nn.FeatureAlphaDropout,
)
FEWEST = 16  # sentences of a share: products of fewer rows are no faster


def shares_of(model: nn.Module, batch: Batch) -> int:
    """The threads that share a batch: those that torch may use on a CPU, and elsewhere one.

    One, too, for a model that draws noise otherwise than `nmt.layers.dropout` does.
    """
    if batch.source.device.type != "cpu":
        return 1
    noise = (each for each in model.modules() if isinstance(each, NOISE))
    if not all(isinstance(each, Dropout) or each.p == 0 for each in noise):
        return 1
    return max(1, min(torch.get_num_threads(), len(batch) // FEWEST))


def shared_loss(
    loss_of: Callable[[Batch], Tensor], batch: Batch, shares: int, parameters: Sequence[Tensor]
) -> Tensor:
    """`loss_of` of a whole batch, a sum over its sentences, computed by as many threads as shares.

    Values and gradients are those of the whole batch up to the order of sums, dropout included; the
    same number of shares gives the same bits.

    Args:
        loss_of: the loss () of some sentences; what it computes of one depends on no other.
        batch: at least as many sentences as shares.
        shares: threads.
        parameters: that the loss is differentiated by.
    """
    if shares == 1:
        return loss_of(batch)
    places = [len(batch) * share // shares for share in range(shares + 1)]
    begin = torch.default_generator.get_state()
    parts = [
        (
            batch.part(first, end),
            BatchShare(first, end, len(batch), torch.Generator().set_state(begin)),
        )
        for first, end in itertools.pairwise(places)
    ]
    wanted = [parameter for parameter in parameters if parameter.requires_grad]
    loss: Tensor = SharedLoss.apply(loss_of, parts, *wanted)
    torch.default_generator.set_state(parts[0][1].generator.get_state())
    return loss


class SharedLoss(Function):
    """See `shared_loss`: both passes are made in the forward one, each share's by a thread."""

    @staticmethod
    def forward(
        ctx: Any,
        loss_of: Callable[[Batch], Tensor],
        parts: Sequence[tuple[Batch, BatchShare]],
        *parameters: Tensor,
    ) -> Tensor:
        def work(part: tuple[Batch, BatchShare]) -> tuple[Tensor, tuple[Tensor | None, ...]]:
            batch, share = part
            with torch.enable_grad(), share_of_batch(share):
                loss = loss_of(batch)
                return loss.detach(), torch.autograd.grad(loss, parameters, allow_unused=True)

        made = compute_at_once(work, parts)
        ctx.gradients = summed([gradients for _, gradients in made])
        return torch.stack([loss for loss, _ in made]).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        gradients, ctx.gradients = ctx.gradients, None
        if gradients is None:
            raise RuntimeError("the gradients of a shared loss are given once")
        for gradient in gradients:
            if gradient is not None:
                gradient.mul_(grad)
        return None, None, *gradients


def summed(shares: Sequence[Sequence[Tensor | None]]) -> list[Tensor | None]:
    """The gradients of the shares, added up in their order, in memory that nothing else has."""
    first, *others = shares
    known = [gradient for gradient in first if gradient is not None]
    apart = len({gradient.data_ptr() for gradient in known}) == len(known)
    if not apart or any(0 in gradient.stride() for gradient in known):  # what autograd shares
        first = [None if gradient is None else gradient.clone() for gradient in first]
    sums = list(first)
    for gradients in others:
        for place, gradient in enumerate(gradients):
            before = sums[place]
            if before is None:
                sums[place] = None if gradient is None else gradient.clone()
            elif gradient is not None:
                before.add_(gradient)
    return sums
