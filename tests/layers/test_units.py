"""Single steps of the recurrent units."""

import numpy as np
import torch
from torch.nn.functional import linear

from nmt.layers import GatedUnit, LstmUnit
from tests.layers.nets import mixed_precision
from tests.layers.reference import sigmoid


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


def test_lstm_unit_equals_numpy():
    """The state is [h; m], and the output is h."""
    torch.manual_seed(0)
    unit = LstmUnit(2, 3, context=4).double()
    assert unit.bias.tolist() == [0] * 3 + [1] * 3 + [0] * 6  # gates i, f, o; candidate g
    for parameter in unit.parameters():
        torch.nn.init.normal_(parameter)
    state, word, context = (torch.randn(size).double() for size in (6, 2, 4))
    W, U, C, bias = (x.detach().numpy() for x in (unit.W, unit.U, unit.C, unit.bias))
    h, m = np.split(state.numpy(), 2)
    i, f, o, g = np.split(W @ word.numpy() + U @ h + C @ context.numpy() + bias, 4)
    m = sigmoid(f) * m + sigmoid(i) * np.tanh(g)
    found = unit(state, unit.project(word), context)
    expected = np.concatenate([sigmoid(o) * np.tanh(m), m])
    np.testing.assert_allclose(found.detach(), expected, rtol=1e-12)
    assert torch.equal(unit.output(found), found[:3])
    assert unit.start(found[:3])[3:].eq(0).all()
