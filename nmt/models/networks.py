"""Builds the network that a configuration describes; imports no Lightning."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from hydra.utils import get_class
from torch import nn

from nmt.config import Config, ModelConfig
from nmt.config.targets import named_by
from nmt.fused import fuse
from nmt.fused.gpu import backend
from nmt.layers import (
    Additive,
    Attention,
    BidirectionalEncoder,
    Decoder,
    Encoder,
    FixedContext,
    ForwardEncoder,
    GatedUnit,
    Network,
    Output,
    initialise,
)
from nmt.layers.scoring import compared_sizes
from nmt.utils.errors import InputError

Parts = tuple[Encoder, Attention | FixedContext]


def build_network(config: Config, source_size: int, target_size: int) -> Network:
    """The network of a configuration, freshly initialised (seed before calling).

    `model._target_` names a `nmt.models.Translator`, of which the method `parts` alone is used.

    Raises:
        InputError: where a class that the configuration names cannot be found or built.
    """
    target = config.model._target_
    with named_by(f"model._target_={target}"):
        model: Any = get_class(target) if target not in PARTS else None
    parts_of = model.parts if model else PARTS[target]
    reverse = config.data.reverse_source
    return assemble(
        config.model, parts_of(config.model, source_size), target_size, reverse_source=reverse
    )


def assemble(
    model: ModelConfig, parts: Parts, target_size: int, *, reverse_source: bool = False
) -> Network:
    """A network of these parts, and a decoder and an output layer as `model` says; initialised."""
    encoder, context = parts
    decoder = Decoder(
        target_size,
        model.embedding,
        model.hidden,
        model.maxout,
        context,
        state_input=model.state_input,
        dropout=model.dropout,
        unit=unit_of(model),
    )
    output = Output(model.maxout, target_size)
    network = Network(encoder, decoder, output, reverse_source=reverse_source)
    initialise(network, model.init)
    backend.allow_kernels(bool(model.kernels))
    return fuse(network) if model.recurrence == "fused" else network


def rnnsearch(model: ModelConfig, source_size: int) -> Parts:
    """A bidirectional encoder (or the one chosen), and attention at every target word (section 3)."""
    encoder = make_encoder(model, source_size, BidirectionalEncoder)
    return encoder, make_attention(model, encoder.size)


def rnnencdec(model: ModelConfig, source_size: int) -> Parts:
    """A forward encoder and its last state as one fixed vector (section 2.1; Cho et al., 2014)."""
    encoder = make_encoder(model, source_size, ForwardEncoder)
    if not isinstance(encoder, ForwardEncoder):
        raise InputError(
            f"encoder={type(encoder).__name__}: the fixed vector of RNNencdec is the last state of a "
            "forward encoder; take encoder=forward"
        )
    return encoder, FixedContext(encoder.size)


PARTS = {"nmt.models.RNNsearch": rnnsearch, "nmt.models.RNNencdec": rnnencdec}


def make_encoder(model: ModelConfig, source_size: int, default: type[Encoder]) -> Encoder:
    """The encoder of `model.encoder`."""
    sizes = (source_size, model.embedding, model.hidden)
    options = {"dropout": model.dropout, "unit": unit_of(model)}
    encoder: Encoder = make("model.encoder", model.encoder, default, *sizes, **options)
    return encoder


def make_attention(model: ModelConfig, annotation: int) -> Attention:
    """The attention of `model.attention` over annotations of a size, scored by `model.scoring`."""
    if model.alignment is None:
        raise InputError("model.alignment=null: attention needs the size of the alignment space")
    where = "model.scoring"
    scorer, _ = chosen(where, model.scoring, Additive)
    compared = compared_sizes(scorer, model.hidden, annotation, model.alignment)
    scoring = make(where, model.scoring, Additive, *compared)
    sizes = (model.hidden, annotation, model.alignment)
    attention: Attention = make("model.attention", model.attention, Attention, *sizes, scoring)
    return attention


def unit_of(model: ModelConfig) -> Callable[..., nn.Module]:
    """The recurrent unit of `model.unit`."""
    return partial(make, "model.unit", model.unit, GatedUnit)


def make(
    where: str, section: dict[str, Any] | None, default: type[nn.Module], *args: Any, **options: Any
) -> Any:
    """An object of the class that a section names, which takes the section's other keys, too."""
    made, own = chosen(where, section, default)
    with named_by(f"{where}._target_={made.__name__}"):
        return made(*args, **options, **own)


def chosen(
    where: str, section: dict[str, Any] | None, default: type[nn.Module]
) -> tuple[type[Any], dict[str, Any]]:
    """The class that a section of the configuration names by `_target_`, and its other keys.

    Raises:
        InputError: where there is no such class.
    """
    own = dict(section or {})
    target = own.pop("_target_", None)
    with named_by(f"{where}._target_={target}"):
        return get_class(target) if target else default, own
