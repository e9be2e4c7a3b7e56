"""The scoring functions."""

import numpy as np
import pytest
import torch

from nmt.layers import Additive, Dot, ScaledDot
from tests.layers import reference
from tests.layers.nets import mixed_precision


def test_scores_of_several_queries():
    torch.manual_seed(0)
    query, keys = torch.randn(2, 3, 5).double(), torch.randn(2, 4, 5).double()
    additive = Additive(5).double()
    torch.nn.init.normal_(additive.v)
    for scoring, name in ((additive, "additive"), (Dot(5), "dot"), (ScaledDot(5), "scaled_dot")):
        scores = scoring(query, keys)
        assert scores.shape == (2, 3, 4)
        weights = {"v_a": additive.v.detach().numpy()}
        expected = [
            [[reference.score(weights, name, q, k) for k in ks] for q in qs]
            for qs, ks in zip(query.numpy(), keys.numpy(), strict=True)
        ]
        np.testing.assert_allclose(scores.detach(), expected, rtol=1e-12)


@pytest.mark.parametrize("scoring", [Additive, Dot, ScaledDot])
def test_scores_keep_their_digits(scoring):
    """A score of a hundred has a step of 1/2 in bf16: enough to turn the attention round."""
    torch.manual_seed(0)
    function = scoring(64)
    torch.nn.init.normal_(getattr(function, "v", torch.empty(1)), std=8.0)
    query, keys = (4 * torch.randn(2, length, 64).bfloat16() for length in (3, 5))
    with mixed_precision():
        scores = function(query, keys)
    exact = function.double()(query.double(), keys.double())
    assert scores.dtype == torch.float32
    assert exact.abs().max() > 20
    torch.testing.assert_close(scores.double(), exact, rtol=1e-5, atol=1e-3)
