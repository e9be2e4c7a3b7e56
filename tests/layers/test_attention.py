"""Attention over the annotations."""

import pytest
import torch

from nmt.layers import Attention, Decoder, Dot
from tests.layers.nets import batch, make


def test_energy_is_log_weight_plus_log_normaliser():
    net = make()
    source, source_mask, *_ = batch()
    memory = net.encode(source, source_mask)
    state = net.decoder.initial(memory)
    _, attended = net.decoder.step(state, memory)
    attention = net.decoder.context
    energy = attention.scoring(state.hidden @ attention.W_a.t(), memory.keys)
    found = attended.weights.log() + attended.log_normaliser.unsqueeze(2)
    torch.testing.assert_close(found[:, 0][source_mask], energy[:, 0][source_mask])


def test_a_context_of_ones_own_is_not_replaced_by_the_one_it_comes_from():
    class Doubled(Attention):
        def forward(self, state, memory):
            return super().forward(2 * state, memory)

    context = Doubled(5, 10, 7, Dot(7, 7))
    Decoder(13, 4, 5, 3, context, recurrence="plain")
    with pytest.raises(ValueError, match="Doubled defines only one step"):
        Decoder(13, 4, 5, 3, context, recurrence="fused")
