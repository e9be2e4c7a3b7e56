"""Compares Triton kernels with PyTorch operations on a small network before kernels are used."""

from __future__ import annotations

import logging
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from nmt.fused import steps
from nmt.fused.backend import Backend, warn_of_failure
from nmt.fused.decoder import FusedDecoder
from nmt.fused.encoder import FusedBidirectionalEncoder
from nmt.fused.gpu.graphs import differentiate
from nmt.fused.output import FusedOutput
from nmt.layers import Additive, Attention, Dot, Network

log = logging.getLogger(__name__)

V, E, H, N, M = 40, 24, 37, 20, 16  # sizes: vocabulary, embedding, hidden, alignment, maxout
# Maximum relative error of a result: norm of the error / norm of the result
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.06}


@cache
def kernels_are_correct(device: torch.device) -> bool:
    """Whether kernels and PyTorch operations agree on a device; logs a warning if they do not."""
    try:
        if find_spec("triton") is None:
            raise ImportError("Triton is not installed")
        log.info("compiling the Triton kernels, which takes about 10 s the first time")
        probe(device)
    except Exception as error:  # a wrong result, or an error of the compiler or driver
        warn_of_failure(error)
        return False
    return True


def probe(device: torch.device) -> None:
    """Raises ArithmeticError if the result of a kernel is wrong. Exceptions in a kernel propagate."""
    from nmt.fused.gpu import kernels  # imports Triton

    with torch.inference_mode(False), torch.random.fork_rng(devices=[]):
        for scorer in (Additive, Dot):
            for dtype, tolerance in TOLERANCE.items():
                computed = results(scorer, dtype, device, kernels)
                for name, expected in results(scorer, dtype, device, steps).items():
                    error = (computed[name] - expected).norm() / expected.norm()
                    if not error <= tolerance:  # also true for NaN
                        raise ArithmeticError(
                            f"{name} with {scorer.__name__} is off by {float(error):.1%} in {dtype}"
                        )


def results(scorer: type, dtype: Any, device: torch.device, module: Any) -> dict[str, Tensor]:
    """Returns the loss, the gradients, and a parameter after a step of Adadelta.

    `module` is `nmt.fused.steps` or `nmt.fused.gpu.kernels`.
    """
    from nmt.fused.gpu.adadelta import FusedAdadelta  # imports Triton

    decoder = FusedDecoder(V, E, H, M, Attention(H, 2 * H, N, scorer(N, N)))
    encoder, output = FusedBidirectionalEncoder(V, E, H), FusedOutput(M, V)
    encoder.backend = decoder.backend = output.backend = Backend()
    output.backend.steps = module
    network = Network(encoder, decoder, output).to(device)
    for parameter in network.parameters():
        numbers = torch.arange(parameter.numel(), device=device).view_as(parameter) * 0.7
        parameter.data.copy_(numbers.sin() * 0.2)
    # makes one of the two inputs of each maxout unit clearly larger, so that rounding cannot change the maximum
    network.decoder.readout.bias.data[::2] += 3
    words = torch.arange(10, device=device).view(2, 5)
    mask = torch.arange(5, device=device) < torch.tensor([[5], [2]], device=device)
    named = dict(network.named_parameters())
    batch = (words, mask, words[:, :3], mask[:, :3])
    with torch.autocast(device.type, torch.bfloat16, enabled=dtype == torch.bfloat16):
        loss, gradients = differentiate(network, named, batch)
    computed = {"the loss": loss, **dict(zip(named, gradients, strict=True))}
    parameter = named["decoder.W_s"]
    parameter.grad = computed["decoder.W_s"].clone()
    rule = torch.optim.Adadelta if module is steps else FusedAdadelta
    rule([parameter], lr=1.0).step()
    return computed | {"Adadelta": parameter.detach()}
