"""Scoring functions of one's own under `recurrence=fused`, with a derivative and without."""

import pytest
import torch
from torch import nn

from nmt.layers import Additive, Cosine, Dot, General
from nmt.layers.fused.scans import (
    AdditiveScan,
    AutogradScan,
    CosineScan,
    DotScan,
    Halves,
    StepwiseScan,
    scan_of,
)
from tests.layers.nets import batch, both_recurrences, gradients, make

LENGTHS = [((6, 1, 4), (2, 5, 3)), ((1,), (1,)), ((2, 9), (7, 4))]


class Bilinear(nn.Module):
    """qᵀ M k, without a derivative."""

    def __init__(self, size, _):
        super().__init__()
        self.M = nn.Parameter(torch.randn(size, size) / size)

    def forward(self, query, keys):
        return query @ self.M @ keys.transpose(1, 2)


class DerivedBilinear(Bilinear):
    """The same with its derivative."""

    def backward(self, grad_scores, query, keys):
        grad_query = grad_scores @ keys @ self.M.t()
        grad_keys = grad_scores.transpose(1, 2) @ query @ self.M
        return grad_query, grad_keys, torch.einsum("bkn,bks,bsm->nm", query, grad_scores, keys)


class Perceptron(nn.Module):
    """v'ᵀ softplus(Q q + K (k∘scale) + b): several parameters, a buffer, no parameter left alone."""

    def __init__(self, size, _):
        super().__init__()
        self.query = nn.Linear(size, size + 2)
        self.keys = nn.Linear(size, size + 2, bias=False)
        self.v = nn.Parameter(torch.randn(size + 2))
        self.register_buffer("scale", torch.linspace(0.5, 2, size))

    def forward(self, query, keys):
        sums = self.query(query).unsqueeze(2) + self.keys(keys * self.scale).unsqueeze(1)
        return nn.functional.softplus(sums) @ self.v


class Angle(nn.Module):
    """The cosine of the angle between q and k: nothing to learn."""

    def __init__(self, size, _):
        super().__init__()

    def forward(self, query, keys):
        return nn.functional.cosine_similarity(query.unsqueeze(2), keys.unsqueeze(1), dim=3)


class States(nn.Module):
    """sᵀ M h of the states and annotations themselves, which differ in size."""

    projections = ()

    def __init__(self, query_size, key_size):
        super().__init__()
        self.M = nn.Parameter(torch.randn(query_size, key_size) / key_size)

    def forward(self, query, keys):
        return query @ self.M @ keys.transpose(1, 2)


class OfKeys(Dot):
    """The other of the two: states as they are, annotations projected to their size."""

    projections = ("keys",)


class Sharper(Additive):
    """Overrides the function whose derivative it inherits."""

    def forward(self, query, keys):
        return 3 * super().forward(query, keys)


class Position(nn.Module):
    """A learnt score of each position, whatever is there; one parameter takes no part."""

    def __init__(self, size, _):
        super().__init__()
        self.unused = nn.Parameter(torch.randn(size))
        self.bias = nn.Parameter(torch.randn(20))

    def forward(self, query, keys):
        return self.bias[: keys.shape[1]].expand(*query.shape[:2], -1)


class Constant(nn.Module):
    """The same score everywhere."""

    def __init__(self, size, _):
        super().__init__()

    def forward(self, query, keys):
        return query.new_ones(*query.shape[:2], keys.shape[1])


class WithDropout(Bilinear):
    def forward(self, query, keys):
        return super().forward(nn.functional.dropout(query, 0.5, self.training), keys)


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize(
    "scorer",
    [Bilinear, DerivedBilinear, Perceptron, Angle, States, OfKeys, Sharper, Position, Constant],
)
def test_equal_to_plain(scorer, lengths):
    """NLL, weights and every gradient, those of the scoring's own parameters among them."""
    (nll, teacher_forced, grads), (fused_nll, fused, fused_grads) = both_recurrences(
        "own", lengths=lengths, scorer=scorer
    )
    exact = {"rtol": 1e-12, "atol": 1e-12}
    torch.testing.assert_close(fused_nll, nll, **exact)
    torch.testing.assert_close(fused.weights, teacher_forced.weights, **exact)
    torch.testing.assert_close(fused.log_normaliser, teacher_forced.log_normaliser, **exact)
    torch.testing.assert_close(fused_grads, grads, **exact)


@pytest.mark.parametrize(
    ("scorer", "least"),
    [(Bilinear, 1e-4), (Perceptron, 1e-4), (States, 1e-4), (Sharper, 1e-4), (Position, 1e-4)],
)
def test_the_parameters_have_gradients(scorer, least):
    """Zeros on both sides would be equal, too."""
    (_, _, grads) = both_recurrences("own", scorer=scorer)[1]
    of_scoring = {n: g for n, g in grads.items() if ".scoring." in n and "unused" not in n}
    assert of_scoring
    for name, gradient in of_scoring.items():
        assert gradient.abs().max() > least, name


@pytest.mark.parametrize(
    ("scoring", "scan"),
    [
        (Additive(5, 5), AdditiveScan),
        (Dot(5, 5), DotScan),
        (General(5, 5), DotScan),
        (Cosine(5, 5), CosineScan),
        (DerivedBilinear(5, 5), StepwiseScan),
        (Bilinear(5, 5), AutogradScan),
        (Sharper(5, 5), AutogradScan),
    ],
)
def test_the_fastest_scan_that_is_right(scoring, scan):
    assert type(scan_of(scoring, torch.randn(2, 3, 5))) is scan


def test_frozen_parameters():
    free = both_recurrences("own", scorer=Perceptron)[1][2]
    net = make("own", recurrence="fused", scorer=Perceptron)
    net.decoder.context.scoring.query.requires_grad_(False)
    nll = net(*batch()).nll
    (nll * torch.tensor([[1], [2], [3]]) / 3).sum().backward()
    for name, gradient in gradients(net).items():
        if ".scoring.query." in name:
            assert gradient is None
        else:
            torch.testing.assert_close(gradient, free[name])


def test_what_is_drawn_at_random_cannot_be_computed_again():
    net = make("own", recurrence="fused", scorer=WithDropout)
    with pytest.raises(RuntimeError, match="WithDropout draws random numbers"):
        net(*batch())
    assert net.eval()(*batch())[0].isfinite().all()
    assert make("own", scorer=WithDropout)(*batch())[0].isfinite().all()


def test_scores_are_those_of_float32_under_autocast():
    """The products of the scoring function stay in float32; each gradient within 6 % of its norm."""
    options = {"dtype": torch.float32, "scorer": Perceptron}
    exact = both_recurrences("own", autocast=False, **options)[1]
    mixed = both_recurrences("own", autocast=True, **options)[1]
    assert (mixed[0] - exact[0]).abs().max() < 0.1
    for name, gradient in exact[2].items():
        assert mixed[2][name].dtype == torch.float32
        assert (mixed[2][name] - gradient).norm() <= 0.06 * gradient.norm() + 1e-4, name


@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 2e-6), (torch.float64, 1e-14)])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 12.0, 200.0])
def test_tanh_from_the_exponentials_of_its_terms(dtype, error, scale):
    """Against tanh itself, with entries from near 0 to where e^2x has no number any more."""
    generator = torch.Generator().manual_seed(3)
    query = torch.randn(2, 3, 7, generator=generator, dtype=torch.float64).mul_(scale).to(dtype)
    keys = torch.randn(2, 5, 7, generator=generator, dtype=torch.float64).mul_(scale).to(dtype)
    query.clamp_(-30, 30)
    parts = Halves(keys, queries=3, rows=1)  # a sentence at a time, in the same buffer
    found = torch.cat([1 - 2 * half for half in parts(query)])
    exact = torch.tanh(query.double().unsqueeze(2) + keys.double().unsqueeze(1))
    assert exact.abs().max() > 0.9 * min(1, scale)
    torch.testing.assert_close(found.double(), exact, rtol=0, atol=error)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_saturated_terms(dtype):
    """Whatever the size of one term, tanh is that of the sum; no 0 · infinity in between."""
    query = torch.tensor([[[1e4, -1e4, 1e4, -1e4, 35.0, torch.inf]]], dtype=dtype)
    keys = torch.tensor([[[1e4, -1e4, 3.0, -3.0, -35.0, 0.0]]], dtype=dtype)
    (half,) = Halves(keys)(query)
    assert (1 - 2 * half).flatten().tolist() == [1, -1, 1, -1, 0, 1]
