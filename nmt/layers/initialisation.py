"""Three initialisations of weights: the paper's (appendix B.1), and two with larger values.

Models with larger initial values learn alignments in fewer updates.

Recurrent matrices are always orthogonal. Biases are 0, except the forget bias of an LSTM, which is 1.

`paper`: W_a, U_a ~ N(0, 0.001²), v_a = 0. All other weights, embeddings included, ~ N(0, 0.01²).

`glorot`: embeddings N(0, 0.3²), all other weights Xavier uniform (`xavier_uniform_`). Gates and
readouts then have useful gradients from the first update on.

`wide`: as `glorot`, with embeddings N(0, 1). Each annotation then depends mostly on its own word, so
that attention falls on the source word that is being translated, not on its neighbour. But the embedding
of a rare word then changes less in training, relative to its size. docs/results.md says how often a
French article attends to the next word instead, and how much BLEU `wide` loses on real text.
"""

from __future__ import annotations

from torch import Tensor, nn

EMBEDDINGS = {"paper": 0.01, "glorot": 0.3, "wide": 1.0}  # standard deviations of embeddings


def initialise(module: nn.Module, init: str) -> None:
    """Calls `initialise(init)` of every submodule that has this method.

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
    """Initialises a table of word embeddings."""
    nn.init.normal_(embedding.weight, std=EMBEDDINGS[init])
