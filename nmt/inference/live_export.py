"""Exports a trained model for use in a page (`nmt.report.live_file`)."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import torch

from nmt.data.vocabulary import BpeVocabulary, Vocabulary, WordVocabulary
from nmt.fused import plain_class
from nmt.inference.model import Model
from nmt.layers import (
    Additive,
    Attention,
    BidirectionalEncoder,
    Dot,
    FixedContext,
    ForwardEncoder,
    GatedUnit,
    Intervention,
    Network,
    ScaledDot,
)
from nmt.report.live_file import LiveModel, shapes

SCORING = {Additive: "additive", Dot: "dot", ScaledDot: "scaled_dot"}
LAYERS = {
    "RNNencdec": (ForwardEncoder, FixedContext, GatedUnit),
    "RNNsearch": (BidirectionalEncoder, Attention, GatedUnit),
}
LARGEST = float(np.finfo(np.float16).max)


def live_model(trained: Model) -> LiveModel | str:
    """The model with its weights rounded to float16, or what keeps it from running in a page."""
    model, config = trained.network, trained.config
    name = config.model._target_.removeprefix("nmt.models.")
    if type(model) is not Network:
        return f"the page does not know the model {type(model).__name__}"
    if name not in LAYERS:
        return f"the page does not know the model {name}"
    if model.reverse_source:
        return "the page does not read a source backwards"
    decoder, encoder = model.decoder, model.encoder
    if isinstance(decoder.context, Intervention):
        return "the page takes the attention as it was trained"
    for layer in (encoder, *encoder.units, decoder.context, decoder.unit):
        kind = plain_class(layer)
        if kind not in LAYERS[name]:
            return f"the page does not know {kind.__name__} in {name}"
    function = decoder.context.scoring
    score = None if function is None else plain_class(function)
    if score is not None and score not in SCORING:
        return f"the page does not know the scoring function {score.__name__}"
    vocabularies = [_described(each) for each in (trained.codec.source, trained.codec.target)]
    if None in vocabularies:
        return "the page does not know the tokenizer"
    search, sizes = config.search, config.model
    about: dict[str, Any] = {
        "model": name,
        "scoring": None if score is None else SCORING[score],
        "state_input": sizes.state_input,
        "sizes": {
            "hidden": sizes.hidden,
            "embedding": sizes.embedding,
            "alignment": None if function is None else sizes.alignment,
            "maxout": sizes.maxout,
        },
        "languages": list(config.data.languages),
        "normalise": config.tokenizer.normalise,
        "characters": config.tokenizer.characters,
        "search": {
            "beam_size": search.beam_size,
            "max_ratio": float(search.max_ratio),
            "min_ratio": float(search.min_ratio),
            "length_penalty": float(search.length_penalty),
            "replace_unk": search.replace_unk,
        },
        "source_vocabulary": vocabularies[0],
        "target_vocabulary": vocabularies[1],
        "dictionary": trained.dictionary and dict(trained.dictionary),
    }
    state = model.state_dict()
    if {name: tuple(each.shape) for name, each in state.items()} != shapes(about):
        return "the page does not know all of its layers"
    if any(not bool((each.abs() <= LARGEST).all()) for each in state.values()):
        return "a weight is too large for 16 bits"
    weights = {name: state[name].to("cpu", torch.float16).numpy() for name in shapes(about)}
    return LiveModel(about, weights)


def _described(vocabulary: Vocabulary) -> dict[str, Any] | None:
    """A vocabulary as `nmt.report.live_file` writes it; None for one that it does not know."""
    if isinstance(vocabulary, WordVocabulary):
        return {"kind": "words", "words": list(vocabulary.words)}
    if not isinstance(vocabulary, BpeVocabulary):
        return None
    model = json.loads(vocabulary.state()["model"])["model"]
    places = model["vocab"]
    subwords = sorted(places, key=places.__getitem__)
    pairs = (pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"])
    return {
        "kind": "bpe",
        "subwords": subwords,
        "merges": [[places[first], places[second]] for first, second in pairs],
    }
