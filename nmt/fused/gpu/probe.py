"""Compares Triton kernels with PyTorch operations in a small network, before the first update."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nmt.fused import steps
from nmt.fused.fuse import fuse
from nmt.fused.gpu import backend, kernels
from nmt.fused.gpu.adadelta import FusedAdadelta
from nmt.fused.gpu.graphs import differentiate
from nmt.layers import Additive, Attention, BidirectionalEncoder, Decoder, Dot, Network, Output

V, E, H, N, M = 40, 24, 37, 20, 16  # vocabulary, embedding, hidden, alignment, maxout
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.06}  # relative to the norm of each result


def probe(device: torch.device) -> None:
    """Raises ArithmeticError for a wrong number. Does not catch exceptions of a kernel."""
    with torch.inference_mode(False), torch.random.fork_rng(devices=[]):
        for scorer in (Additive, Dot):
            for dtype, tolerance in TOLERANCE.items():
                computed = results(scorer, dtype, device, kernels)
                for name, expected in results(scorer, dtype, device, steps).items():
                    error = (computed[name] - expected).norm() / expected.norm()
                    if not error <= tolerance:  # true for NaN, too
                        raise ArithmeticError(
                            f"{name} with {scorer.__name__} is off by {float(error):.1%} in {dtype}"
                        )


def results(scorer: type, dtype: Any, device: torch.device, module: Any) -> dict[str, Tensor]:
    """Returns the loss, the gradients, and a parameter after a step of Adadelta."""
    attention = Attention(H, 2 * H, N, scorer(N, N))
    decoder = Decoder(V, E, H, M, attention)
    network = fuse(Network(BidirectionalEncoder(V, E, H), decoder, Output(M, V))).to(device)
    for parameter in network.parameters():
        numbers = torch.arange(parameter.numel(), device=device).view_as(parameter) * 0.7
        parameter.data.copy_(numbers.sin() * 0.2)
    # otherwise rounding could change which of a maxout unit's two entries is larger
    network.decoder.readout.bias.data[::2] += 3
    words = torch.arange(10, device=device).view(2, 5)
    mask = torch.arange(5, device=device) < torch.tensor([[5], [2]], device=device)
    named = dict(network.named_parameters())
    batch = (words, mask, words[:, :3], mask[:, :3])
    autocast = torch.autocast(device.type, torch.bfloat16, enabled=dtype == torch.bfloat16)
    with backend.using(module), autocast:
        loss, gradients = differentiate(network, named, batch)
    computed = {"the loss": loss, **dict(zip(named, gradients, strict=True))}
    parameter = named["decoder.W_s"]
    parameter.grad = computed["decoder.W_s"].clone()
    rule = FusedAdadelta if module is kernels else torch.optim.Adadelta
    rule([parameter], lr=1.0).step()
    return computed | {"Adadelta": parameter.detach()}
