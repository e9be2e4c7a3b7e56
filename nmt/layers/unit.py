"""Parameters and matrix products that all recurrent units share.

Sizes: E embedding, H state, A annotation (context).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from nmt.layers.initialisation import initialise_matrix


class Unit(nn.Module):
    """The base class of recurrent units. Stacked matrices compute all gates in one product.

    `W`, `C` and `bias` have `parts` blocks of H rows: one per gate, and one for the candidate state. `W`
    (parts · H, E) multiplies embeddings, and `bias` (parts · H) is added. `C` (parts · H, A) multiplies
    the context. `C` is None if the size of the context is 0, as in the encoder. `recurrent` lists the
    matrices that multiply the state, as pairs of a name and a number of blocks.

    Initialisation: see `nmt.layers.initialisation`. Each block of H rows is initialised separately.
    """

    parts: int
    recurrent: tuple[tuple[str, int], ...]
    U: nn.Parameter

    def __init__(self, embedding: int, hidden: int, context: int = 0) -> None:
        super().__init__()
        self.hidden = hidden
        rows = self.parts * hidden
        self.W = nn.Parameter(torch.empty(rows, embedding))
        for name, parts in self.recurrent:
            self.register_parameter(name, nn.Parameter(torch.empty(parts * hidden, hidden)))
        self.C = nn.Parameter(torch.empty(rows, context)) if context else None
        self.bias = nn.Parameter(torch.empty(rows))
        self.initialise("paper")

    def initialise(self, init: str) -> None:
        for stacked in (self.W, self.C):
            for block in () if stacked is None else stacked.split(self.hidden):
                initialise_matrix(block, init)
        for name, _ in self.recurrent:
            for block in self.get_parameter(name).split(self.hidden):
                nn.init.orthogonal_(block)
        nn.init.zeros_(self.bias)

    def project(self, words: Tensor) -> Tensor:
        """Returns W e + bias (..., parts · H) for embeddings e (..., E), at all positions at once."""
        return linear(words, self.W, self.bias)

    def project_context(self, context: Tensor) -> Tensor:
        """Returns C c (..., parts · H) for c (..., A). `forward` adds it to the result of `project`."""
        assert self.C is not None
        return linear(context, self.C)
