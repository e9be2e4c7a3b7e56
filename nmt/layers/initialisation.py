"""Initialisation of weights (appendix B.1), and wider distributions with which attention forms sooner.

`paper`: recurrent matrices orthogonal; W_a, U_a ~ N(0, 0.001²); v_a and biases 0; all else,
embeddings included, N(0, 0.01²).

`glorot`: recurrent matrices orthogonal, biases 0, every other matrix by Glorot's rule (uniform),
and embeddings N(0, 0.3²): wide enough to move gates and readouts from the first update on.

`wide`: as `glorot`, with embeddings N(0, 1). An annotation then depends on its own word most, so
that attention falls on the translated word and not on its neighbour. Rare words keep more of their
random vectors (docs/results.md measures both effects).
"""

from __future__ import annotations

from torch import Tensor, nn

EMBEDDINGS = {"paper": 0.01, "glorot": 0.3, "wide": 1.0}  # standard deviations


def initialise(module: nn.Module, init: str) -> None:
    """Calls `initialise(init)` of every submodule that has this method.

    Other modules keep the weights of their constructor. `init` is a key of `EMBEDDINGS`.
    """
    for layer in module.modules():
        draw = getattr(layer, "initialise", None)
        if callable(draw):
            draw(init)


def initialise_matrix(matrix: Tensor, init: str) -> None:
    """A weight matrix that is not recurrent."""
    if init == "paper":
        nn.init.normal_(matrix, std=0.01)
    else:
        nn.init.xavier_uniform_(matrix)


def initialise_embedding(embedding: nn.Embedding, init: str) -> None:
    """A table of word vectors."""
    nn.init.normal_(embedding.weight, std=EMBEDDINGS[init])
