"""The gated hidden unit."""

import torch
from torch.nn.functional import linear

from nmt.layers import GatedUnit
from tests.layers.nets import mixed_precision


def test_reset_acts_before_the_recurrent_product():
    """`torch.nn.GRU` with the same weights gives something else."""
    unit = GatedUnit(2, 3).double()
    torch.nn.init.normal_(unit.bias)
    torch.nn.init.normal_(unit.W)
    state, word = torch.randn(4, 3).double(), torch.randn(4, 2).double()
    n = 3
    z, r, candidate = unit.project(word).chunk(3, 1)
    z = torch.sigmoid(z + state @ unit.U_gates[:n].t())
    r = torch.sigmoid(r + state @ unit.U_gates[n:].t())
    after = torch.tanh(candidate + r * (state @ unit.U.t()))
    before = torch.tanh(candidate + (r * state) @ unit.U.t())
    found = unit(state, unit.project(word))
    torch.testing.assert_close(found, (1 - z) * state + z * before)
    assert (found - ((1 - z) * state + z * after)).abs().max() > 1e-2


def test_padding_freezes_the_state_exactly():
    unit = GatedUnit(2, 3)
    state, word = torch.randn(2, 3), torch.randn(2, 2)
    after = unit(state, unit.project(word), real=torch.tensor([True, False]))
    assert torch.equal(after[1], state[1])
    assert not torch.equal(after[0], state[0])


def test_gates_are_sums_of_16_bit_products():
    torch.manual_seed(0)
    unit = GatedUnit(6, 8, context=5)
    unit.initialise("glorot")
    state, words, context = torch.randn(3, 8), torch.randn(3, 6), torch.randn(3, 5)
    with mixed_precision():
        found = unit(state, unit.project(words), context)

    def product(x, matrix, bias=None):
        bias = None if bias is None else bias.bfloat16()
        return linear(x.bfloat16(), matrix.bfloat16(), bias).float()

    projected = product(words, unit.W, unit.bias) + product(context, unit.C)
    for_gates, for_candidate = projected.split([16, 8], -1)
    z, r = torch.sigmoid(for_gates + product(state, unit.U_gates)).chunk(2, -1)
    candidate = torch.tanh(for_candidate + product(r * state, unit.U))
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, (1 - z) * state + z * candidate, rtol=1e-6, atol=1e-6)
