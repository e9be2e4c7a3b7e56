"""The gradient of an update on a CPU, computed by several threads, some sentences each.

OpenMP's threads synchronise at every operation, where on a busy machine one waits for another that
is not running. Here each thread of Python computes its sentences with one thread of torch, and they
synchronise once per update.
"""

from __future__ import annotations

import itertools
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from nmt.data.batch import Batch
from nmt.layers.dropout import BatchShare, share_of_batch
from nmt.utils.workers import compute_at_once

FEWEST = 16  # sentences of a share: products of fewer rows are no faster
_noisy: weakref.WeakSet[nn.Module] = weakref.WeakSet()  # models that draw noise of their own


def shares_of(model: nn.Module, batch: Batch) -> int:
    """The threads that share a batch: those that torch may use on a CPU, and elsewhere one.

    One, too, for a model that draws noise otherwise than by `nmt.layers.Dropout`, and where hooks
    would be called by each thread.
    """
    hooked = any(each._forward_hooks or each._backward_hooks for each in model.modules())
    hooked = hooked or any(parameter._backward_hooks for parameter in model.parameters())
    if batch.source.device.type != "cpu" or hooked or model in _noisy:
        return 1
    return max(1, min(torch.get_num_threads(), len(batch) // FEWEST))


def shared_loss(model: nn.Module, loss_of: Callable[[Batch], Tensor], batch: Batch) -> Tensor:
    """`loss_of` of a whole batch, a sum over its sentences, computed by `shares_of` threads.

    Values and gradients are those of the whole batch up to the order of sums, dropout included; the
    same number of threads gives the same bits.

    Args:
        model: whose parameters the loss is differentiated by.
        loss_of: the loss () of some sentences; what it computes of one depends on no other.
        batch: of sentences.
    """
    shares = shares_of(model, batch)
    wanted = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if shares == 1 or not wanted or not torch.is_grad_enabled():
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
    loss: Tensor = SharedLoss.apply(loss_of, parts, *wanted)
    if not torch.equal(torch.default_generator.get_state(), begin):
        # threads that draw from the one generator do so in no certain order
        _noisy.add(model)
        torch.default_generator.set_state(begin)
        return loss_of(batch)
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
    sums = apart(shares[0])
    for gradients in shares[1:]:
        for place, gradient in enumerate(gradients):
            before = sums[place]
            if before is None:
                sums[place] = None if gradient is None else gradient.clone()
            elif gradient is not None:
                before.add_(gradient)
    return sums


def apart(gradients: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The gradients, with a copy of each that autograd gives memory of another, or expands."""
    places = Counter(each.untyped_storage().data_ptr() for each in gradients if each is not None)
    return [
        each.clone()
        if each is not None
        and (places[each.untyped_storage().data_ptr()] > 1 or 0 in each.stride())
        else each
        for each in gradients
    ]
