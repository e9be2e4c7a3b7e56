"""Exports a trained model for use in a page (`nmt.report.live_file`)."""

from __future__ import annotations

import json
import logging
from pathlib import Path
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
from nmt.report.live_file import FILE, LiveModel, write_live
from nmt.report.page.live import LIMIT, fewest_bytes
from nmt.utils.environment import rank

log = logging.getLogger(__name__)

SCORING = {Additive: "additive", Dot: "dot", ScaledDot: "scaled_dot"}
LAYERS = {
    "RNNencdec": {ForwardEncoder, FixedContext, GatedUnit},
    "RNNsearch": {BidirectionalEncoder, Attention, GatedUnit, *SCORING},
}
LARGEST = float(np.finfo(np.float16).max)


def export_live(model: Model, folder: Path) -> None:
    """Writes `live.npz` if `report.live` asks for it and a page can run the model. On rank 0.

    Args:
        model: the trained model.
        folder: of the run.
    """
    if rank():
        return
    wanted = model.config.report.live
    parameters = sum(parameter.numel() for parameter in model.network.parameters())
    (folder / FILE).unlink(missing_ok=True)  # of an earlier end of this run
    if wanted is False or (wanted == "auto" and fewest_bytes(parameters) > LIMIT):
        return
    live = live_model(model)
    if isinstance(live, str):
        log.info("no model in the page: %s", live)
        return
    try:
        write_live(folder, live)
    except OSError as error:
        log.warning("%s cannot be written: %s; the page is without it", FILE, error.strerror)


def live_model(trained: Model) -> LiveModel | str:
    """The model with its weights rounded to float16, or what keeps it from running in a page."""
    model, config = trained.network, trained.config
    name = config.model._target_.removeprefix("nmt.models.")
    if type(model) is not Network or name not in LAYERS:
        return f"the page does not know {type(model).__name__} of {name}"
    if model.reverse_source:
        return "the page does not read a source backwards"
    context, encoder = model.decoder.context, model.encoder
    if isinstance(context, Intervention):
        return "the page takes the attention as it was trained"
    function = context.scoring
    layers = [encoder, *encoder.units, context, model.decoder.unit]
    kinds = [plain_class(layer) for layer in layers + [function] * (function is not None)]
    unknown = [kind.__name__ for kind in kinds if kind not in LAYERS[name]]
    if unknown:
        return f"the page does not know {unknown[0]} in {name}"
    score = None if function is None else SCORING[plain_class(function)]
    vocabularies = [_described(each) for each in (trained.codec.source, trained.codec.target)]
    if None in vocabularies:
        return "the page does not know the tokenizer"
    search, sizes = config.search, config.model
    about: dict[str, Any] = {
        "model": name,
        "scoring": score,
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
    if any(not bool((each.abs() <= LARGEST).all()) for each in state.values()):
        return "a weight is too large for 16 bits"
    weights = {key: each.to("cpu", torch.float16).numpy() for key, each in state.items()}
    about["tensors"] = [[key, list(each.shape)] for key, each in weights.items()]
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
