"""The scoring functions."""

import numpy as np
import pytest
import torch

from nmt.layers import Additive, Attention, Cosine, Dot, General, ScaledDot
from tests.layers import reference
from tests.layers.nets import mixed_precision


def test_scores_of_several_queries():
    torch.manual_seed(0)
    query, keys = torch.randn(2, 3, 5).double(), torch.randn(2, 4, 5).double()
    additive, cosine = Additive(5, 5).double(), Cosine(5, 5).double()
    torch.nn.init.normal_(additive.v)
    for scoring, name in (
        (additive, "additive"),
        (Dot(5, 5), "dot"),
        (ScaledDot(5, 5), "scaled_dot"),
        (cosine, "cosine"),
    ):
        scores = scoring(query, keys)
        assert scores.shape == (2, 3, 4)
        weights = {"v_a": additive.v.detach().numpy(), "log_scale": cosine.log_scale.item()}
        expected = [
            [[reference.score(weights, name, q, k) for k in ks] for q in qs]
            for qs, ks in zip(query.numpy(), keys.numpy(), strict=True)
        ]
        np.testing.assert_allclose(scores.detach(), expected, rtol=1e-12)
    assert cosine.log_scale.exp().item() == pytest.approx(5**0.5)


@pytest.mark.parametrize("scoring", [Additive, Dot, ScaledDot, Cosine])
def test_scores_keep_their_digits(scoring):
    """A score of a hundred has a step of 1/2 in bf16: enough to turn the attention round."""
    torch.manual_seed(0)
    function = scoring(64, 64)
    torch.nn.init.normal_(getattr(function, "v", torch.empty(1)), std=8.0)
    torch.nn.init.constant_(getattr(function, "log_scale", torch.empty(1)), 5.0)
    query, keys = (4 * torch.randn(2, length, 64).bfloat16() for length in (3, 5))
    with mixed_precision():
        scores = function(query, keys)
    exact = function.double()(query.double(), keys.double())
    assert scores.dtype == torch.float32
    assert exact.abs().max() > 20
    torch.testing.assert_close(scores.double(), exact, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("zeros", [False, True])
def test_the_cosine_is_that_of_the_angle_alone(zeros):
    """Neither length counts, and a vector of zeros scores 0 with a gradient that is a number."""
    torch.manual_seed(0)
    function = Cosine(6, 6).double()
    query, keys = torch.randn(2, 3, 6).double(), torch.randn(2, 4, 6).double()
    if zeros:
        keys[0, 1] = 0
    query.requires_grad_()
    scores = function(query, keys)
    torch.testing.assert_close(function(7 * query, keys / 3), scores)
    assert scores.abs().max() <= 6**0.5
    assert bool((scores[0, :, 1] == 0).all()) == zeros
    scores.sum().backward()
    assert query.grad.isfinite().all()
    # nothing of the gradient points along the query
    torch.testing.assert_close((query.grad * query).sum(2), torch.zeros(2, 3).double())


def test_dot_is_general_with_a_matrix_of_lower_rank():
    """sᵀ (W_aᵀ U_a) h with 3 entries to compare in, between states of 5 and annotations of 7."""
    torch.manual_seed(1)
    dot = Attention(5, 7, 3, Dot(3, 3)).double()
    general = Attention(5, 7, 3, General(7, 7)).double()
    for matrix in dot.projections():
        torch.nn.init.normal_(matrix)
    general.W_a.data = (dot.W_a.t() @ dot.U_a).detach().t()
    assert general.U_a is None
    state, annotations = torch.randn(2, 4, 5).double(), torch.randn(2, 6, 7).double()
    scores = [a.scoring(a.queries(state), a.keys(annotations)) for a in (dot, general)]
    torch.testing.assert_close(*scores)
    assert torch.linalg.matrix_rank(general.W_a) == 3


@pytest.mark.parametrize("init", ["paper", "glorot"])
def test_the_scale_of_the_projections_at_the_start(init):
    drawn = []
    for exponent in (0.0, -0.25):
        torch.manual_seed(2)
        attention = Attention(50, 70, 81, Dot(81, 81), init_exponent=exponent)
        attention.initialise(init)
        drawn.append(attention.projections())
    for matrix, smaller in zip(*drawn, strict=True):
        torch.testing.assert_close(smaller, matrix / 3)


def test_there_must_be_something_to_scale():
    class Plain(torch.nn.Module):
        projections = ()

    with pytest.raises(ValueError, match="Plain takes no projections"):
        Attention(5, 7, 3, Plain(), lr_exponent=-0.5)
    assert Attention(5, 7, 3, Plain()).projections() == []
