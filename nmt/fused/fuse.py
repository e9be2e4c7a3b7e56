"""`fuse`: swaps the parts of a network for faster ones that compute the same."""

from __future__ import annotations

import logging
from typing import Any

from torch import nn

from nmt.fused.decoder import FusedDecoder, is_known
from nmt.fused.encoder import FusedBidirectionalEncoder, FusedForwardEncoder
from nmt.fused.gpu.graphs import GraphCache
from nmt.fused.output import FusedOutput
from nmt.fused.scoring import FusedAdditive
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


def fuse(network: Network, *, graphs: bool = False) -> Network:
    """Swaps encoder, decoder, output and scoring function for faster subclasses, in place.

    Parameters, their names and what is computed stay as they are, up to rounding. Only parts of
    exactly the classes of `nmt.layers` are swapped: encoders and decoders of gated units; additive, dot,
    scaled dot and general attention; a fixed context. Others run as they are written, which is
    logged.

    Args:
        network: on any device; returned.
        graphs: whether recurrences are replayed from CUDA graphs when they are trained on a GPU.
    """
    encoder, decoder = network.encoder, network.decoder
    plain = []
    if type(encoder) in FUSED and all(type(unit) is GatedUnit for unit in encoder.units):
        _swap(encoder, graphs)
    else:
        plain.append("the encoder")
    if type(decoder) is Decoder and is_known(decoder):
        _swap(decoder, graphs)
    else:
        plain.append("the decoder")
    for part in (decoder.context.scoring, network.output):
        if type(part) in FUSED:
            _swap(part)
    if plain:
        log.info("recurrence=fused does not know %s: plain steps there", " and ".join(plain))
    return network


def plain_class(module: nn.Module) -> type[nn.Module]:
    """The class of a module, or the one of `nmt.layers` that it was swapped for."""
    kind = type(module)
    return next((plain for plain, fused in FUSED.items() if fused is kind), kind)


def _swap(module: Any, graphs: bool = False) -> None:
    module.__class__ = FUSED[type(module)]
    if graphs:
        module.graph_cache = GraphCache()
