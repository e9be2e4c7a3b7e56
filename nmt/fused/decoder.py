"""The decoder: one loop over all target words in training, and single steps in a beam search.

The gated unit multiplies contexts by C, and the readout multiplies contexts by C_o. A beam search computes
C h_j and C_o h_j once for each annotation h_j, so its steps do not multiply by C or C_o.

Sizes: B = batch, S = source length, T = target length, K = hypotheses per sentence, H = state, N = key,
M = maxout units.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import linear

from nmt.fused.attention import FusedAdditive
from nmt.fused.backend import Backend
from nmt.fused.encoder import look_up
from nmt.fused.loop import run_units, run_with_attention
from nmt.fused.steps import pad_sizes
from nmt.layers import (
    Additive,
    Attention,
    AttentionOutput,
    Decoder,
    DecoderState,
    Dot,
    FixedContext,
    GatedUnit,
    General,
    Memory,
    Readout,
    ScaledDot,
)
from nmt.layers.attention import masked_softmax
from nmt.layers.decoder import DecoderOutput
from nmt.layers.precision import accumulate_dtype, compute_dtype

SCORINGS = (Additive, FusedAdditive, Dot, ScaledDot, General)
# Maximum number of source symbols for which `begin` computes [C; C_o] h_j. These vectors are longer than
# h_j, so they save time only for short sources (on a CPU with a beam of 12, at most 100 to 140 symbols).
MAX_PRODUCT_SYMBOLS = 120


class ProductMemory(NamedTuple):
    """The encoded sentences of a beam search: like `Memory`, but with products instead of annotations.

    A fixed context has only one product per sentence: [C; C_o] times the summary of the sentence.
    """

    products: Tensor  # (B, S, 3H + 2M) [C; C_o] h_j; fixed context: (B, 3H + 2M)
    keys: Tensor | None  # (B, S, N) U_a h_j; None for a fixed context
    mask: Tensor  # (B, S) bool, True on real positions


class ProductOutput(NamedTuple):
    """The attention output of a step with a `ProductMemory`."""

    for_unit: Tensor  # (B, K, 3H) C c_i
    weights: Tensor | None  # (B, K, S) α_ij, rows sum to 1; None for a fixed context
    log_normaliser: Tensor | None  # (B, K) log Z_i of the softmax; None for a fixed context


def is_supported(decoder: Decoder) -> bool:
    """Whether `FusedDecoder` supports the unit, readout and context of a decoder."""
    context = decoder.context
    attends = type(context) is Attention and type(context.scoring) in SCORINGS
    has_context = attends or type(context) is FixedContext
    return has_context and type(decoder.unit) is GatedUnit and type(decoder.readout) is Readout


class FusedDecoder(Decoder):
    """See `nmt.layers.Decoder`. Runs the code of `Decoder` if `is_supported` returns False.

    The weights and log-normalisers that `forward` returns are not differentiable.
    """

    backend = Backend()

    def forward(self, target: Tensor, target_mask: Tensor, memory: Memory) -> DecoderOutput:
        if not is_supported(self):
            return super().forward(target, target_mask, memory)
        start = self.initial(memory)
        words = self.dropout(look_up(self.embedding, target.t()))  # (T, B, E)
        first = start.embedding.transpose(0, 1)
        dtype = compute_dtype(self.W_s)
        previous = torch.cat([first, words[:-1]]).to(dtype)
        unit_input = words[:-1] if self.state_input == "current" else previous[:-1]
        unit: Any = self.unit
        weight = pad_sizes(unit.W.to(dtype))
        # (T-1, B, 3H) for s_1 .. s_{T-1}
        projected = linear(pad_sizes(unit_input), weight, unit.bias)
        initial = start.hidden.squeeze(1)
        context: Any = self.context
        if isinstance(context, FixedContext):
            projected = projected + linear(memory.summary, unit.C)
            states = run_units(self.backend, projected, initial, unit.U_gates, unit.U)
            states = torch.cat([initial.unsqueeze(0), states])
            readout = self.readout(states, previous, memory.summary)  # (T, B, M)
            return readout.transpose(0, 1), None, None
        states, contexts, weights, log_normaliser = run_with_attention(
            self.backend, projected, initial, memory, context.W_a, context.scoring, unit
        )
        readout = self.readout(states, previous, contexts).transpose(0, 1)
        weights = weights.transpose(0, 1) * target_mask.unsqueeze(2)
        return readout, weights, log_normaliser.t() * target_mask

    def begin(self, memory: Memory) -> tuple[Memory | ProductMemory, DecoderState]:
        """Returns a `ProductMemory`, or `memory` itself, and the first state.

        With a `ProductMemory`, a step computes [C; C_o] c_i as Σ_j α_ij [C; C_o] h_j. This saves two matrix
        products per hypothesis. Attention over more than `MAX_PRODUCT_SYMBOLS` symbols uses `memory` itself.
        """
        state = self.initial(memory)
        fixed = isinstance(self.context, FixedContext)
        long = not fixed and memory.mask.shape[1] > MAX_PRODUCT_SYMBOLS
        if long or not is_supported(self):
            return memory, state
        values = memory.summary if fixed else memory.annotations
        products = [self.unit.project_context(values), linear(values, self.readout.C_o)]
        return ProductMemory(torch.cat(products, -1), memory.keys, memory.mask), state

    def step(
        self, state: DecoderState, memory: Memory | ProductMemory
    ) -> tuple[Tensor, AttentionOutput | ProductOutput]:
        if isinstance(memory, Memory):
            return super().step(state, memory)
        weights = log_normaliser = None
        if memory.keys is None:
            products = memory.products.unsqueeze(1).expand(-1, state.hidden.shape[1], -1)
        else:
            context: Any = self.context
            scores = context.scores(state.hidden, memory.keys)
            weights, log_normaliser = masked_softmax(scores, memory.mask.unsqueeze(1))
            products = torch.bmm(weights, memory.products)
        for_unit, for_readout = products.split([len(self.unit.C), len(self.readout.C_o)], -1)
        readout = self.readout.maxout(state.hidden, state.embedding, for_readout)
        return readout, ProductOutput(for_unit, weights, log_normaliser)

    def advance(
        self, state: DecoderState, attended: AttentionOutput | ProductOutput, word: Tensor
    ) -> DecoderState:
        if isinstance(attended, AttentionOutput):
            return super().advance(state, attended, word)
        embedded = self.dropout(self.embedding(word))
        unit_input = embedded if self.state_input == "current" else state.embedding
        projected = self.unit.project(unit_input)
        projected = projected.to(accumulate_dtype(projected.dtype))
        return DecoderState(self.unit(state.hidden, projected + attended.for_unit), embedded)
