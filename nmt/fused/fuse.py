"""`fuse`: swaps the parts of a network for faster ones that compute the same."""

from __future__ import annotations

import logging
from typing import Any

from torch import nn

from nmt.fused.attention import FusedAdditive
from nmt.fused.decoder import FusedDecoder, is_known
from nmt.fused.encoder import FusedBidirectionalEncoder, FusedForwardEncoder
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


def fuse(network: Network) -> Network:
    """Swaps encoder, decoder, output and scoring function for faster subclasses, in place.

    Parameters, their names and what is computed stay as they are, up to rounding. Only parts of
    exactly the classes of `nmt.layers` are swapped: encoders and decoders of gated units; additive, dot,
    scaled dot and general attention; a fixed context. Others run as they are written, with a
    warning.

    Args:
        network: on any device; returned.
    """
    encoder, decoder = network.encoder, network.decoder
    plain = []
    if type(encoder) in FUSED and all(type(unit) is GatedUnit for unit in encoder.units):
        _swap(encoder)
    else:
        plain.append("the encoder")
    if type(decoder) is Decoder and is_known(decoder):
        _swap(decoder)
    else:
        plain.append("the decoder")
    for part in (decoder.context.scoring, network.output):
        if type(part) in FUSED:
            _swap(part)
    if plain:
        log.warning(
            "%s: no fast path; the plain equations are computed, more slowly", " and ".join(plain)
        )
    return network


def is_fused(network: Network) -> bool:
    """Whether every part of a network has a fast path: only then its loss can be captured."""
    parts = (network.encoder, network.decoder, network.output)
    return all(type(part) in FUSED.values() for part in parts)


def plain_class(module: nn.Module) -> type[nn.Module]:
    """The class of a module, or the one of `nmt.layers` that it was swapped for."""
    kind = type(module)
    return next((plain for plain, fused in FUSED.items() if fused is kind), kind)


def _swap(module: Any) -> None:
    module.__class__ = FUSED[type(module)]
