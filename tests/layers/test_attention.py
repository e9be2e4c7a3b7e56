"""Attention over the annotations."""

import torch

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
