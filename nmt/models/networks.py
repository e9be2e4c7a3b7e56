"""Builds the network, or the LightningModule, that a configuration describes."""

from __future__ import annotations

from functools import partial
from typing import Any

from hydra.utils import get_class
from torch import nn

from nmt.config.code import errors_naming
from nmt.config.schema import Config, ModelConfig, to_containers
from nmt.fused import fuse
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
from nmt.layers.scoring import query_and_key_sizes
from nmt.utils.errors import InputError

Parts = tuple[Encoder, Attention | FixedContext]


def build_model(config: Config, source_size: int, target_size: int) -> Any:
    """Returns the `Translator` of a configuration, with random weights (set the seed before the call).

    Raises:
        InputError: if a class that the configuration names cannot be found or built.
    """
    target = config.model._target_
    with errors_naming(f"model._target_={target}"):
        model_class: Any = get_class(target)
    return model_class(to_containers(config), source_size, target_size)


def build_network(config: Config, source_size: int, target_size: int) -> Network:
    """Returns the network of a configuration, with random weights (set the seed before the call).

    Lightning is imported only if `model._target_` names a `Translator` of another package.

    Raises:
        InputError: if a class that the configuration names cannot be found or built.
    """
    model = config.model
    target = config.model._target_
    with errors_naming(f"model._target_={target}"):
        named: Any = None if target in PARTS else get_class(target)
        make_parts = named.parts if named else PARTS[target]
    return assemble(config, make_parts(model, source_size), target_size)


def assemble(config: Config, parts: Parts, target_size: int) -> Network:
    """Builds and initialises a network from an encoder and a context module, with the options of `config`."""
    model, (encoder, context) = config.model, parts
    decoder = Decoder(
        target_size,
        model.embedding,
        model.hidden,
        model.maxout,
        context,
        state_input=model.state_input,
        dropout=model.dropout,
        unit=partial(make, "model.unit", model.unit, GatedUnit),
    )
    output = Output(model.maxout, target_size)
    network = Network(encoder, decoder, output, reverse_source=config.data.reverse_source)
    initialise(network, model.init)
    if model.recurrence == "fused":
        fuse(network, kernels=bool(model.kernels))
    return network


def rnnsearch(model: ModelConfig, source_size: int) -> Parts:
    """Returns an encoder, which is bidirectional by default, and an `Attention` (section 3)."""
    encoder = make_encoder(model, source_size, BidirectionalEncoder)
    return encoder, make_attention(model, encoder.size)


def rnnencdec(model: ModelConfig, source_size: int) -> Parts:
    """Returns a forward encoder and a `FixedContext` (section 2.1; Cho et al., 2014)."""
    encoder = make_encoder(model, source_size, ForwardEncoder)
    if not isinstance(encoder, ForwardEncoder):
        raise InputError(
            f"encoder={type(encoder).__name__}: the fixed vector of RNNencdec is the last state of a "
            "forward encoder; type encoder=forward"
        )
    return encoder, FixedContext(encoder.size)


PARTS = {"nmt.models.RNNsearch": rnnsearch, "nmt.models.RNNencdec": rnnencdec}


def make_encoder(model: ModelConfig, source_size: int, default: type[Encoder]) -> Encoder:
    """Creates an encoder of the class that `model.encoder` names, or of class `default` if it names none."""
    sizes = (source_size, model.embedding, model.hidden)
    unit = partial(make, "model.unit", model.unit, GatedUnit)
    options = {"dropout": model.dropout, "unit": unit}
    encoder: Encoder = make("model.encoder", model.encoder, default, *sizes, **options)
    return encoder


def make_attention(model: ModelConfig, annotation: int) -> Attention:
    """Creates the attention that `model` describes, for annotations of size `annotation`."""
    if model.alignment is None:
        raise InputError("model.alignment=null: attention needs this size; type model.alignment=N")
    scorer = named_class("model.scoring", model.scoring, Additive)
    compared = query_and_key_sizes(scorer, model.hidden, annotation, model.alignment)
    scoring = make("model.scoring", model.scoring, Additive, *compared)
    sizes = (model.hidden, annotation, model.alignment)
    attention: Attention = make("model.attention", model.attention, Attention, *sizes, scoring)
    return attention


def make(
    where: str, section: dict[str, Any] | None, default: type[nn.Module], *args: Any, **options: Any
) -> Any:
    """Calls the class of a section (see `named_class`). The section's other keys are keyword arguments."""
    own = dict(section or {})
    chosen = named_class(where, section, default)
    own.pop("_target_", None)
    with errors_naming(f"{where}._target_={chosen.__name__}"):
        return chosen(*args, **options, **own)


def named_class(where: str, section: dict[str, Any] | None, default: type[Any]) -> type[Any]:
    """Returns the class that a section names in `_target_`, or `default` if there is no `_target_`.

    Raises:
        InputError: if there is no such class.
    """
    target = (section or {}).get("_target_")
    with errors_naming(f"{where}._target_={target}"):
        return get_class(target) if target else default
