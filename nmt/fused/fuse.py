"""`fuse` replaces layers of a network by faster layers that compute the same results."""

from __future__ import annotations

import logging
from typing import Any

from torch import nn

from nmt.fused.attention import FusedAdditive
from nmt.fused.backend import Backend
from nmt.fused.decoder import FusedDecoder, is_supported
from nmt.fused.encoder import FusedBidirectionalEncoder, FusedForwardEncoder
from nmt.fused.gpu.probe import kernels_are_correct
from nmt.fused.output import FusedOutput
from nmt.layers import (
    Additive,
    BidirectionalEncoder,
    Decoder,
    ForwardEncoder,
    GatedUnit,
    Network,
    Output,
)

log = logging.getLogger(__name__)

FUSED: dict[type[nn.Module], type[nn.Module]] = {
    Additive: FusedAdditive,
    BidirectionalEncoder: FusedBidirectionalEncoder,
    Decoder: FusedDecoder,
    ForwardEncoder: FusedForwardEncoder,
    Output: FusedOutput,
}


def fuse(network: Network, *, kernels: bool = True) -> Network:
    """Replaces layers of `network` in place by their fused subclasses, and returns `network`.

    Parameters and their names do not change. Results change only by rounding. A module is replaced
    only if its exact class is a key of `FUSED`. The fused encoder supports gated units. The fused decoder
    supports gated units with a fixed context or with additive, dot, scaled dot or general attention.
    Logs a warning if the encoder or decoder is not supported.

    All fused layers share one `Backend`. `kernels` says whether it may use Triton kernels on a GPU.
    """
    backend = Backend(kernels, kernels_are_correct)
    encoder, decoder = network.encoder, network.decoder
    plain = []
    if type(encoder) in FUSED and all(type(unit) is GatedUnit for unit in encoder.units):
        _replace(encoder, backend)
    else:
        plain.append("the encoder")
    if type(decoder) is Decoder and is_supported(decoder):
        _replace(decoder, backend)
    else:
        plain.append("the decoder")
    for part in (decoder.context.scoring, network.output):
        if type(part) in FUSED:
            _replace(part, backend)
    if plain:
        log.warning("%s: no fast version; the slower one is used", " and ".join(plain))
    return network


def is_fused(network: Network) -> bool:
    """Whether encoder, decoder and output are all fused, as CUDA graphs require."""
    parts = (network.encoder, network.decoder, network.output)
    return all(type(part) in FUSED.values() for part in parts)


def backend_of(network: Network) -> Backend:
    """Returns the backend of the fused layers of a network. If none is fused, returns a backend without kernels."""
    parts: list[Any] = [network.output, network.decoder, network.encoder]
    return next((part.backend for part in parts if type(part) in FUSED.values()), Backend())


def plain_class(module: nn.Module) -> type[nn.Module]:
    """Returns the class of a module. For a fused module, returns the class that it replaces."""
    kind = type(module)
    return next((plain for plain, fused in FUSED.items() if fused is kind), kind)


def _replace(module: Any, backend: Backend) -> None:
    module.__class__ = FUSED[type(module)]
    module.backend = backend
