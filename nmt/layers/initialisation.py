"""Three initialisations of weights: one from the paper (appendix B.1), and two with larger values.

Models with larger initial values learn alignments in fewer updates.

Recurrent matrices are always orthogonal. Biases are 0, except the forget bias of an LSTM, which is 1.

`paper`: W_a, U_a ~ N(0, 0.001²), v_a = 0. The remaining weights and the embeddings ~ N(0, 0.01²).

`glorot`: embeddings ~ N(0, 0.3²), all other weights from `xavier_uniform_`. Gates and readouts then
have useful gradients from the first update on.

`wide`: like `glorot`, but embeddings ~ N(0, 1). Each annotation then depends mostly on its own word, so
attention falls on the source word that is being translated instead of the next word. But embeddings of rare
words then change less in training, relative to their size, and `wide` loses BLEU on real text (docs/results.md).
"""

from __future__ import annotations

from torch import Tensor, nn

EMBEDDINGS = {"paper": 0.01, "glorot": 0.3, "wide": 1.0}  # standard deviations of embeddings


def initialise(module: nn.Module, init: str) -> None:
    """Calls `initialise(init)` on every submodule that has this method.

    Other modules keep their weights. `init` is a key of `EMBEDDINGS`.
    """
    for layer in module.modules():
        method = getattr(layer, "initialise", None)
        if callable(method):
            method(init)


def initialise_matrix(matrix: Tensor, init: str) -> None:
    """Initialises a weight matrix that is not recurrent."""
    if init == "paper":
        nn.init.normal_(matrix, std=0.01)
    else:
        nn.init.xavier_uniform_(matrix)


def initialise_embedding(embedding: nn.Embedding, init: str) -> None:
    """Draws word embeddings from N(0, σ²), where `EMBEDDINGS` has σ for each `init`."""
    nn.init.normal_(embedding.weight, std=EMBEDDINGS[init])
