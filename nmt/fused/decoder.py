"""The decoder: one loop over the target words for training, and single steps for a search.

The steps of a search use C h_j (of the unit) and C_o h_j (of the readout) in place of annotations h_j.

B batch, S source length, T target length, K hypotheses per sentence, H state size, M maxout units.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from nmt.fused.attention import FusedAdditive
from nmt.fused.encoder import look_up
from nmt.fused.loop import run_units, run_with_attention
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
from nmt.layers.decoder import DecoderOutput
from nmt.layers.precision import accumulate_dtype, compute_dtype

SCORINGS = (Additive, FusedAdditive, Dot, ScaledDot, General)
# `begin` replaces h_j by [C; C_o] h_j, which is wider. On a CPU with a beam of 12 this is slower for
# sources of more than 100 to 140 symbols.
MAX_PRODUCT_SYMBOLS = 120


def is_supported(decoder: Decoder) -> bool:
    """Whether `FusedDecoder` supports the unit, readout and context of a decoder."""
    context = decoder.context
    attends = type(context) is Attention and type(context.scoring) in SCORINGS
    has_context = attends or type(context) is FixedContext
    return has_context and type(decoder.unit) is GatedUnit and type(decoder.readout) is Readout


class FusedDecoder(Decoder):
    """See `nmt.layers.Decoder`. If a part is not supported, the whole decoder runs the code of `Decoder`.

    The weights and log-normalisers that `forward` returns are not differentiable.
    """

    def forward(self, target: Tensor, target_mask: Tensor, memory: Memory) -> DecoderOutput:
        if not is_supported(self):
            return super().forward(target, target_mask, memory)
        start = self.initial(memory)
        words = self.dropout(look_up(self.embedding, target.t()))  # (T, B, E)
        first = start.embedding.transpose(0, 1)
        previous = torch.cat([first, words[:-1]]).to(compute_dtype(self.W_s))
        unit_input = words[:-1] if self.state_input == "current" else previous[:-1]
        projected = self.unit.project(unit_input)  # (T-1, B, 3H) for s_1 .. s_{T-1}
        initial = start.hidden.squeeze(1)
        context: Any = self.context
        unit: Any = self.unit
        if isinstance(context, FixedContext):
            projected = projected + linear(memory.summary, unit.C)
            states = run_units(projected, initial, unit.U_gates, unit.U)
            states = torch.cat([initial.unsqueeze(0), states])
            readout = self.readout(states, previous, memory.summary)  # (T, B, M)
            return readout.transpose(0, 1), None, None
        states, contexts, weights, log_normaliser = run_with_attention(
            projected, initial, memory, context.W_a, context.scoring, unit
        )
        readout = self.readout(states, previous, contexts).transpose(0, 1)
        weights = weights.transpose(0, 1) * target_mask.unsqueeze(2)
        return readout, weights, log_normaliser.t() * target_mask

    def begin(self, memory: Memory) -> tuple[Memory, DecoderState]:
        """Returns the memory with [C; C_o] h_j in place of h_j, and the first state.

        Attention then returns [C; C_o] c_i directly, which saves two matrix products per hypothesis
        and step. With attention, batches with a source of more than `MAX_PRODUCT_SYMBOLS` keep h_j.
        """
        state = self.initial(memory)
        fixed = isinstance(self.context, FixedContext)
        values = memory.summary if fixed else memory.annotations
        long = not fixed and memory.mask.shape[1] > MAX_PRODUCT_SYMBOLS
        rows = len(self.unit.C) + len(self.readout.C_o)
        if not is_supported(self) or long or rows == self.context.size:
            return memory, state
        products = torch.cat(
            [self.unit.project_context(values), linear(values, self.readout.C_o)], -1
        )
        field = "summary" if fixed else "annotations"
        return memory._replace(**{field: products}), state

    def step(self, state: DecoderState, memory: Memory) -> tuple[Tensor, AttentionOutput]:
        hidden = self.unit.output(state.hidden)
        attended = self.context(hidden, memory)
        if not self._has_products(attended):
            return self.readout(hidden, state.embedding, attended.context), attended
        for_readout = attended.context[..., len(self.unit.C) :]
        return self.readout.maxout(hidden, state.embedding, for_readout), attended

    def advance(self, state: DecoderState, attended: AttentionOutput, word: Tensor) -> DecoderState:
        if not self._has_products(attended):
            return super().advance(state, attended, word)
        embedded = self.dropout(self.embedding(word))
        unit_input = embedded if self.state_input == "current" else state.embedding
        projected = self.unit.project(unit_input)
        projected = projected.to(accumulate_dtype(projected.dtype))
        for_unit = attended.context[..., : len(self.unit.C)]
        return DecoderState(self.unit(state.hidden, projected + for_unit), embedded)

    def _has_products(self, attended: AttentionOutput) -> bool:
        """Whether the context holds [C; C_o] c_i, not c_i. `begin` ensures that their sizes differ."""
        return attended.context.shape[-1] != self.context.size
