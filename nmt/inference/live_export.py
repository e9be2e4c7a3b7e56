"""Exports a trained model to `live.bin` in the run folder, so that JavaScript in the run's HTML page can translate.

The file is compressed (deflate). Its first line is a JSON object with the keys `model`, `scoring`,
`state_input`, `languages`, `rules` (Moses rules to tokenise the source and detokenise the target),
`search`, `source_vocabulary`, `target_vocabulary`, `dictionary`, and `tensors` (checkpoint name and shape of
each weight). A vocabulary of kind `words` has the list `words`. A vocabulary of kind `bpe` has the lists
`subwords` and `merges`. Word or subword i has the id i + 2. After the JSON line, the file holds the entries
of all matrices as signed bytes. It then holds 32-bit floats for each tensor: one scale per row of a
matrix, or the entries of a vector.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import zlib
from pathlib import Path
from typing import Any

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
    Network,
    ScaledDot,
)
from nmt.models.checkpoint import quantised
from nmt.report.page.payload import FILE, LIMIT
from nmt.text.tokenise import tokeniser
from nmt.utils.environment import rank
from nmt.utils.files import write_atomically

log = logging.getLogger(__name__)

SCORING = {Additive: "additive", Dot: "dot", ScaledDot: "scaled_dot"}
LAYERS = {
    "RNNencdec": {ForwardEncoder, FixedContext, GatedUnit},
    "RNNsearch": {BidirectionalEncoder, Attention, GatedUnit, *SCORING},
}


def export_live(model: Model, folder: Path) -> None:
    """Writes `live.bin` if `report.live` requests it and the JavaScript of the run's HTML page supports the model."""
    if rank():
        return
    (folder / FILE).unlink(missing_ok=True)  # a resumed run may have an old file
    wanted = model.config.report.live
    parameters = sum(parameter.numel() for parameter in model.network.parameters())
    embedded_bytes = parameters * 4 // 3  # one byte per parameter, in base64
    if wanted is False or (wanted == "auto" and embedded_bytes > LIMIT):
        return
    content = live_model(model)
    if isinstance(content, str):
        log.info("no model in the page: %s", content)
        return
    write_atomically(folder / FILE, lambda stream: stream.write(zlib.compress(content)))


def live_model(trained: Model) -> bytes | str:
    """Returns the content of `live.bin`, or the reason why the HTML page does not support the model."""
    model, config = trained.network, trained.config
    name = config.model._target_.removeprefix("nmt.models.")
    if type(model) is not Network or name not in LAYERS:
        return f"the page does not know {type(model).__name__} of {name}"
    if model.reverse_source:
        return "the page does not read a source backwards"
    context = model.decoder.context
    encoder = model.encoder
    function = context.scoring
    layers = [encoder, *encoder.units, context, model.decoder.unit]
    for kind in map(plain_class, layers + [function] * (function is not None)):
        if kind not in LAYERS[name]:
            return f"the page does not know {kind.__name__} in {name}"
    vocabularies = [_described(each) for each in (trained.source, trained.target)]
    if None in vocabularies:
        return "the page does not know the tokenizer"
    source, target = (tokeniser(each).rules() for each in config.data.languages)
    state = {key: each.float().cpu().numpy() for key, each in model.state_dict().items()}
    about: dict[str, Any] = {
        "model": name,
        "scoring": None if function is None else SCORING[plain_class(function)],
        "state_input": config.model.state_input,
        "languages": list(config.data.languages),
        "rules": {
            "source": source,
            "target": {k: target[k] for k in ("language", "plain_alpha", "currency", "unspaced")},
        },
        "search": dataclasses.asdict(config.search),
        "source_vocabulary": vocabularies[0],
        "target_vocabulary": vocabularies[1],
        "dictionary": trained.dictionary and dict(trained.dictionary),
        "tensors": [[key, list(each.shape)] for key, each in state.items()],
    }
    codes, numbers = [], []
    for weight in state.values():
        if weight.ndim == 2:
            code, weight = quantised(weight)
            codes.append(code.tobytes())
        numbers.append(weight.astype("<f4").tobytes())
    return b"".join([json.dumps(about).encode(), b"\n", *codes, *numbers])


def _described(vocabulary: Vocabulary) -> dict[str, Any] | None:
    """Converts a vocabulary to the format of `live.bin`; returns None for a class that the page does not support."""
    if isinstance(vocabulary, WordVocabulary):
        return {"kind": "words", "words": list(vocabulary.words)}
    if not isinstance(vocabulary, BpeVocabulary):
        return None
    model = json.loads(vocabulary.state()["model"])["model"]
    ids = model["vocab"]
    subwords = sorted(ids, key=ids.__getitem__)
    pairs = (pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"])
    return {
        "kind": "bpe",
        "subwords": subwords,
        "merges": [[ids[first], ids[second]] for first, second in pairs],
    }
