"""What stays in float32 where products are made in 16 bits: sums, gates and scores."""

import pytest
import torch
from torch.nn.functional import linear

from nmt.layers import Additive, Dot, GatedUnit, ScaledDot


def mixed():
    return torch.autocast("cpu", torch.bfloat16)


@pytest.mark.parametrize("scoring", [Additive, Dot, ScaledDot])
def test_scores_keep_their_digits(scoring):
    """A score of a hundred has a step of 1/2 in bf16: enough to turn the attention round."""
    torch.manual_seed(0)
    function = scoring(64)
    torch.nn.init.normal_(getattr(function, "v", torch.empty(1)), std=8.0)
    query, keys = (4 * torch.randn(2, length, 64).bfloat16() for length in (3, 5))
    with mixed():
        scores = function(query, keys)
    exact = function.double()(query.double(), keys.double())
    assert scores.dtype == torch.float32
    assert exact.abs().max() > 20
    torch.testing.assert_close(scores.double(), exact, rtol=1e-5, atol=1e-3)


def test_gates_are_sums_of_16_bit_products():
    torch.manual_seed(0)
    unit = GatedUnit(6, 8, context=5)
    unit.initialise("glorot")
    state, words, context = torch.randn(3, 8), torch.randn(3, 6), torch.randn(3, 5)
    with mixed():
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
