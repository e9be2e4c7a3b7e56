"""The decoder of both models: step by step for a search, a whole sentence for training (A.2.2).

B batch, S source length, T target length, K hypotheses a sentence, H state, A annotation, E
embedding, M maxout.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from nmt.layers.attention import (
    Attention,
    AttentionOutput,
    FixedContext,
    normalise_rows,
)
from nmt.layers.fused.embedding import look_up
from nmt.layers.fused.graphs import GraphCache
from nmt.layers.fused.inheritance import fits_forward
from nmt.layers.gated_unit import GatedUnit
from nmt.layers.initialisation import initialise_embedding, initialise_matrix
from nmt.layers.memory import Memory
from nmt.layers.precision import accumulate_dtype, compute_dtype
from nmt.layers.readout import Readout

LONGEST = 120
"""Source length up to which a search uses precomputed products of annotations. They are wider than
annotations: on a CPU with a beam of 12, reading them costs more than it saves beyond 100 to 140."""


class DecoderState(NamedTuple):
    """The recurrent state and the previous word, for K hypotheses a sentence."""

    hidden: Tensor  # (B, K, H) s_{i-1}; of a unit with a memory, that too
    word: Tensor  # (B, K, E) E y_{i-1}; 0 before the first word


class TeacherForced(NamedTuple):
    """What the decoder computed for a given target sentence.

    Each row of `weights` is a distribution over the source, whatever the kind of attention: scores and
    figures of attention are computed from them.
    """

    readout: Tensor  # (B, T, M) t_i
    weights: Tensor | None  # (B, T, S) α_ij, 0 at padded target positions; None for a fixed context
    log_normaliser: Tensor | None  # (B, T) log Z_i, 0 at padded target positions


class Decoder(nn.Module):
    """s_i = f(s_{i-1}, E y, c_i) by a recurrent unit, s_0 = tanh(W_s summary + b), with readout t_i.

    `context` is an `Attention` (RNNsearch) or a `FixedContext` (RNNencdec). The word y is y_{i-1}
    with `state_input="previous"` (the paper as printed) and y_i with "current" (the authors'
    program); E y_0 = 0. `dropout` falls on embeddings and readouts. Weights and log-normalisers of
    `forward` are for looking at: with `recurrence="fused"` no gradient flows into them from
    outside. With `graphs` a fused recurrence trained on a GPU is replayed from CUDA graphs. `unit`
    is the class of the recurrent unit; only the `GatedUnit` has a fused recurrence. With another
    one, or a context whose `run_fused` is None, the loop runs under autograd.

    Raises ValueError for an unknown `state_input` or `recurrence`, and for `fused` with a context
    of one's own that has no `run_fused` (see `Attention`).
    """

    def __init__(
        self,
        vocabulary: int,
        embedding: int,
        hidden: int,
        maxout: int,
        context: Attention | FixedContext,
        *,
        state_input: str = "previous",
        dropout: float = 0.0,
        recurrence: str = "plain",
        graphs: bool = False,
        unit: type[nn.Module] = GatedUnit,
    ) -> None:
        super().__init__()
        if state_input not in ("previous", "current"):
            raise ValueError(f"state_input is {state_input!r}; it must be 'previous' or 'current'")
        if recurrence not in ("plain", "fused"):
            raise ValueError(f"recurrence is {recurrence!r}; it must be 'plain' or 'fused'")
        autograd = getattr(context, "run_fused", False) is None  # by its own account
        if recurrence == "fused" and not (autograd or fits_forward(context, "run_fused")):
            raise ValueError(
                f"recurrence is 'fused', but {type(context).__name__} defines only one step "
                "(`forward`): add a method `run_fused`, or use recurrence 'plain'"
            )
        self.state_input = state_input
        self.recurrence = recurrence
        self.graph_cache = GraphCache() if graphs else None
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
        """What an encoder gave, with the keys that do not depend on the decoder's state."""
        return Memory(annotations, self.context.keys(annotations), mask, summary)

    def initial(self, memory: Memory) -> DecoderState:
        """s_0 = tanh(W_s summary + b) and E y_0 = 0, for one hypothesis a sentence (K = 1)."""
        hidden = torch.tanh(linear(memory.summary, self.W_s, self.bias_s)).to(self.W_s.dtype)
        word = self.W_s.new_zeros(hidden.shape[0], 1, self.embedding.embedding_dim)
        return DecoderState(self.unit.start(hidden.unsqueeze(1)), word)

    def precompute(self, memory: Memory) -> Memory:
        """The memory with [C; C_o] h_j, of which a search sums [C; C_o] c_i: equal up to rounding.

        One product a source position takes the place of one a hypothesis and step. Steps, readouts,
        units and contexts that are defined otherwise, and sentences of more than `LONGEST` symbols,
        are given c_i as in training.
        """
        usual = (
            type(self).step is Decoder.step
            and type(self).advance is Decoder.advance
            and type(self.readout).forward is Readout.forward
            and fits_forward(self.unit, "project_context")
            and fits_forward(self.context, "values")
        )
        if not usual:
            return memory
        values = self.context.values(memory)
        if values.shape[1] > LONGEST:
            return memory
        products = self.unit.project_context(values), linear(values, self.readout.C_o)
        return memory._replace(products=torch.cat(products, -1))

    def step(self, state: DecoderState, memory: Memory) -> tuple[Tensor, AttentionOutput]:
        """The readout t_i (B, K, M), and c_i with its weights, from s_{i-1} and y_{i-1}."""
        hidden = self.unit.output(state.hidden)
        attended = self.context(hidden, memory)
        if attended.products is None:
            return self.readout(hidden, state.word, attended.context), attended
        _, product = self._split(attended.products)
        return self.readout(hidden, state.word, None, product), attended

    def advance(self, state: DecoderState, attended: AttentionOutput, word: Tensor) -> DecoderState:
        """The state after y_i = `word` (B, K) was written, with the c_i of the same step."""
        embedded = self.dropout(self.embedding(word))
        read = embedded if self.state_input == "current" else state.word
        projected = self.unit.project(read)
        if attended.products is not None:
            product, _ = self._split(attended.products)
            projected = projected.to(accumulate_dtype(projected.dtype)) + product
        return DecoderState(self.unit(state.hidden, projected, attended.context), embedded)

    def _split(self, products: Tensor) -> tuple[Tensor, ...]:
        """C c_i for the unit and C_o c_i for the readout, of [C; C_o] c_i (B, K, P)."""
        rows = self.readout.C_o.shape[0]
        return products.split([products.shape[-1] - rows, rows], -1)

    def forward(self, target: Tensor, target_mask: Tensor, memory: Memory) -> TeacherForced:
        """Reads a given target sentence (B, T), mask (B, T), as a search that writes it would.

        Weights of an attention that does not normalise them (`Attention.normalised`) are divided by
        their sum here, after contexts were made with them; log α_ij + log Z_i stays what it was.
        """
        fusible = type(self.unit) is GatedUnit and fits_forward(self.context, "run_fused")
        run = self._fused if self.recurrence == "fused" and fusible else self._plain
        readout, weights, log_normaliser = run(target, memory)
        if weights is not None and log_normaliser is not None:
            if not getattr(self.context, "normalised", True):
                weights, total = normalise_rows(weights)
                log_normaliser = log_normaliser + total.squeeze(2).log()
            weights = weights * target_mask.unsqueeze(2)
            log_normaliser = log_normaliser * target_mask
        return TeacherForced(readout, weights, log_normaliser)

    def _plain(self, target: Tensor, memory: Memory) -> TeacherForced:
        """`forward` by the steps of a search, under autograd."""
        state = self.initial(memory)
        readouts, outputs = [], []
        for i in range(target.shape[1]):
            readout, attended = self.step(state, memory)
            readouts.append(readout)
            outputs.append(attended)
            if i + 1 < target.shape[1]:
                state = self.advance(state, attended, target[:, i : i + 1])
        looked_at = zip(*((each.weights, each.log_normaliser) for each in outputs), strict=True)
        weights, log_normaliser = (
            None if steps[0] is None else torch.cat(steps, 1) for steps in looked_at
        )
        return TeacherForced(torch.cat(readouts, 1), weights, log_normaliser)

    def _fused(self, target: Tensor, memory: Memory) -> TeacherForced:
        """`forward` with the loop in one `torch.autograd.Function`, time first."""
        start = self.initial(memory)
        words = self.dropout(look_up(self.embedding, target.t()))  # (T, B, E)
        previous = torch.cat([start.word.transpose(0, 1), words[:-1]]).to(compute_dtype(self.W_s))
        read = words[:-1] if self.state_input == "current" else previous[:-1]
        projected = self.unit.project(read)  # (T-1, B, 3H); s_T is never read
        trace = self.context.run_fused(
            projected, start.hidden.squeeze(1), memory, self.unit, self.graph_cache
        )
        readout = self.readout(trace.states, previous, trace.contexts)  # (T, B, M)
        by_sentence = (
            None if x is None else x.transpose(0, 1)
            for x in (readout, trace.weights, trace.log_normaliser)
        )
        return TeacherForced(*by_sentence)  # type: ignore[arg-type]
