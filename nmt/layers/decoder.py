"""The decoder of RNNsearch and RNNencdec (A.2.2), for one step of a search or for whole target sentences.

Sizes: B batch, S source length, T target length, K hypotheses per sentence, H state, A annotation,
E embedding, M maxout units. E y is the embedding of the word y.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from nmt.layers.attention import Attention, FixedContext
from nmt.layers.gated_unit import GatedUnit
from nmt.layers.initialisation import initialise_embedding, initialise_matrix
from nmt.layers.intervention import Intervention
from nmt.layers.memory import Memory
from nmt.layers.readout import Readout


class DecoderState(NamedTuple):
    """The recurrent state and the embedding of the previous word, for K hypotheses per sentence."""

    hidden: Tensor  # s_{i-1}: (B, K, H) for a GatedUnit, (B, K, 2H) for an LstmUnit
    embedding: Tensor  # (B, K, E) embedding of y_{i-1}; 0 before the first word


# The readouts t_i (B, T, M), weights α_ij (B, T, S) and log Z_i (B, T) of given target sentences.
# Weights and log Z_i are 0 at padded target positions, and None for a fixed context.
DecoderOutput = tuple[Tensor, Tensor | None, Tensor | None]


class Decoder(nn.Module):
    """Computes states s_i = f(s_{i-1}, E y, c_i), where s_0 = tanh(W_s summary + b), and readouts t_i.

    `context` is an `Attention` (RNNsearch) or a `FixedContext` (RNNencdec). `state_input` chooses the
    word y. With "previous", y is y_{i-1}, as printed in the paper. With "current", y is y_i, as in
    the authors' program. E y_0 is 0. `dropout` is applied to embeddings and readouts. `unit` is the
    class of the recurrent unit.
    """

    def __init__(
        self,
        vocabulary: int,
        embedding: int,
        hidden: int,
        maxout: int,
        context: Attention | FixedContext | Intervention,
        *,
        state_input: str = "previous",
        dropout: float = 0.0,
        unit: Callable[..., nn.Module] = GatedUnit,
    ) -> None:
        super().__init__()
        self.state_input = state_input
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.dropout = nn.Dropout(dropout)
        self.context = context
        self.W_s = nn.Parameter(torch.empty(hidden, hidden))
        self.bias_s = nn.Parameter(torch.empty(hidden))
        self.unit: Any = unit(embedding, hidden, context.size)
        self.readout = Readout(hidden, embedding, context.size, maxout, dropout)
        self.initialise("paper")

    def initialise(self, init: str) -> None:
        initialise_embedding(self.embedding, init)
        initialise_matrix(self.W_s, init)
        nn.init.zeros_(self.bias_s)

    def memory(self, annotations: Tensor, summary: Tensor, mask: Tensor) -> Memory:
        """Returns a `Memory` with the outputs of the encoder and the keys of the attention."""
        return Memory(annotations, self.context.keys(annotations), mask, summary)

    def initial(self, memory: Memory) -> DecoderState:
        """Returns s_0 = tanh(W_s summary + b) and E y_0 = 0, with one hypothesis per sentence (K = 1)."""
        hidden = torch.tanh(linear(memory.summary, self.W_s, self.bias_s)).to(self.W_s.dtype)
        embedding = self.W_s.new_zeros(hidden.shape[0], 1, self.embedding.embedding_dim)
        return DecoderState(self.unit.start(hidden.unsqueeze(1)), embedding)

    def begin(self, memory: Memory) -> tuple[Any, DecoderState]:
        """Returns the memory that `step` takes, and the initial state.

        A subclass may use other types for the memory and for the attention output of `step`. They
        must be named tuples whose fields are tensors or None, so that `select` and `reorder` work.
        """
        return memory, self.initial(memory)

    def step(self, state: DecoderState, memory: Any) -> tuple[Tensor, Any]:
        """Returns the readout t_i (B, K, M) and the attention output, given s_{i-1} and y_{i-1}."""
        hidden = self.unit.output(state.hidden)
        attended = self.context(hidden, memory)
        return self.readout(hidden, state.embedding, attended.context), attended

    def advance(self, state: DecoderState, attended: Any, word: Tensor) -> DecoderState:
        """Returns the state after y_i. `word` (B, K) is y_i, and `attended` contains the context c_i."""
        embedded = self.dropout(self.embedding(word))
        unit_input = embedded if self.state_input == "current" else state.embedding
        hidden = self.unit(state.hidden, self.unit.project(unit_input), attended.context)
        return DecoderState(hidden, embedded)

    def forward(self, target: Tensor, target_mask: Tensor, memory: Memory) -> DecoderOutput:
        """Runs the decoder on target ids (B, T) with mask (B, T), by teacher forcing."""
        state = self.initial(memory)
        readouts, outputs = [], []
        for i in range(target.shape[1]):
            readout, attended = self.step(state, memory)
            readouts.append(readout)
            outputs.append(attended)
            if i + 1 < target.shape[1]:
                state = self.advance(state, attended, target[:, i : i + 1])
        readout = torch.cat(readouts, 1)
        if isinstance(self.context, FixedContext):
            return readout, None, None
        _, *columns = zip(*outputs, strict=True)
        weights, log_normalisers = (torch.cat(column, 1) for column in columns)
        return readout, weights * target_mask.unsqueeze(2), log_normalisers * target_mask
