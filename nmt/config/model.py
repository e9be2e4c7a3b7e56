"""Keys of the model: its class, its sizes, how its equations are run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nmt.config.keys import key

INITS = ("paper", "glorot", "wide")  # as in nmt.layers.initialisation


@dataclass
class ModelConfig:
    """Which model is trained, and how its equations are run."""

    _target_: str = key("nmt.models.RNNsearch", "class of the Lightning module")
    encoder: dict[str, Any] | None = key(
        None, "the encoder (group `encoder`); null: bidirectional, of RNNencdec forward"
    )
    unit: dict[str, Any] | None = key(
        None, "recurrent unit of encoder and decoder (group `unit`); null: gated"
    )
    attention: dict[str, Any] | None = key(
        None, "where attention looks (group `attention`); null: everywhere, if the model attends"
    )
    scoring: dict[str, Any] | None = key(
        None, "scoring function of the attention (group `scoring`)"
    )
    state_input: str = key(
        "previous",
        "word that enters the state s_i: y_{i-1} (the paper) or y_i (the authors' program)",
        choices=("previous", "current"),
    )
    init: str = key("glorot", "initialisation of the weights", choices=INITS)
    dropout: float = key(
        0.0, "share of embedding and readout entries dropped in training", minimum=0, below=1
    )
    recurrence: str = key(
        "fused",
        "plain: readable loop under autograd; fused: own backward over the whole sentence",
        choices=("plain", "fused"),
    )
    kernels: bool | str = key(
        "auto",
        "auto: Triton kernels on a GPU on which they compile and are right (recurrence=fused)",
        choices=("auto", False),
        runtime=True,
    )
    graphs: bool = key(
        True,
        "replay each update from a CUDA graph (recurrence=fused, on a GPU)",
        runtime=True,
    )
    hidden: int = key(256, "hidden units of one recurrent network (n, 1000)", minimum=1)
    embedding: int = key(128, "entries of a word's embedding (m, 620)", minimum=1)
    alignment: int | None = key(
        None,
        "entries of the space that queries and keys are compared in (n', 1000); null: no attention",
        minimum=1,
    )
    maxout: int = key(128, "maxout units of the readout (l, 500)", minimum=1)
    options: dict[str, Any] = key({}, "keys of a model of your own, by name")
