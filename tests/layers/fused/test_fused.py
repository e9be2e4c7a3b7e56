"""The fused recurrences against the plain ones: values and gradients, in every precision."""

import pytest
import torch
from torch import nn
from torch.autograd import gradcheck

from nmt.layers.fused.decoder import attend_and_recur
from nmt.layers.fused.unit import recur
from tests.layers.nets import KINDS, SCORINGS, SIZES, batch, gradients, make

LENGTHS = [((6, 1, 4), (2, 5, 3)), ((1,), (1,)), ((3, 3), (1, 2)), ((2, 9), (7, 4))]


class Bilinear(nn.Module):
    """A user's own score qᵀ M k, without a derivative."""

    def __init__(self, size):
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


def both(scoring, state_input, lengths=LENGTHS[0], *, autocast=None, **options):
    """For plain and fused: (nll, forced, gradients), each sentence with another weight.

    With `autocast` given (on or off) the maxout units stay on one half.
    """
    results = []
    for recurrence in ("plain", "fused"):
        net = make(scoring, state_input, recurrence, **options)
        if autocast is not None:
            net.decoder.readout.bias.data[0::2] += 3
        words = batch(*lengths, sizes=options)
        with torch.autocast("cpu", torch.bfloat16, enabled=bool(autocast)):
            nll, forced = net(*words)
        weight = torch.arange(1, len(nll) + 1).unsqueeze(1) / len(nll)
        (nll * weight).sum().backward()
        grads = {
            # a part that a one-word target never uses: no gradient in plain, 0 in fused
            name: torch.zeros_like(p) if p.grad is None else p.grad
            for name, p in net.named_parameters()
        }
        results.append((nll, forced, grads))
    return results


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize(("scoring", "state_input"), KINDS)
def test_float64(scoring, state_input, lengths):
    (nll, forced, grads), (fused_nll, fused, fused_grads) = both(scoring, state_input, lengths)
    torch.testing.assert_close(fused_nll, nll, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(fused_grads, grads, rtol=1e-10, atol=1e-11)
    if scoring != "none":
        torch.testing.assert_close(fused.weights, forced.weights, rtol=1e-11, atol=1e-11)
        torch.testing.assert_close(fused.log_normaliser, forced.log_normaliser)


WIDE = {"hidden": 48, "embedding": 24, "alignment": 40, "maxout": 16, "source": 60, "target": 70}


@pytest.mark.parametrize(("scoring", "state_input"), KINDS)
def test_float32(scoring, state_input):
    """Within 1e-4 of the norm of each gradient."""
    plain, fused = both(scoring, state_input, ((9, 12, 3), (8, 5, 11)), dtype=torch.float32, **WIDE)
    torch.testing.assert_close(fused[0], plain[0], rtol=1e-5, atol=1e-5)
    for name, gradient in plain[2].items():
        assert (fused[2][name] - gradient).norm() <= 1e-4 * gradient.norm(), name


@pytest.mark.parametrize(("scoring", "state_input"), KINDS)
def test_bf16_autocast(scoring, state_input):
    """Both stay near float32: each NLL within 0.1, each gradient within 6 % of its norm.

    One half of each maxout pair is far above the other, or rounding would swap some.
    """
    lengths = ((9, 12, 3), (8, 5, 11))
    options = {"dtype": torch.float32, **WIDE}
    exact = both(scoring, state_input, lengths, autocast=False, **options)[0]
    mixed = both(scoring, state_input, lengths, autocast=True, **options)
    for nll, _, grads in mixed:
        assert (nll - exact[0]).abs().max() < 0.1
        for name, gradient in exact[2].items():
            assert grads[name].dtype == torch.float32
            assert (grads[name] - gradient).norm() <= 0.06 * gradient.norm(), name


def test_gradcheck_unit():
    torch.manual_seed(0)

    def leaf(*shape):
        return torch.randn(*shape, dtype=torch.float64, requires_grad=True)

    real = torch.ones(2, 3, 2, 1, dtype=torch.float64)
    real[0, 2, 1], real[1, 0, 1] = 0, 0
    inputs = (leaf(2, 3, 2, 9), leaf(2, 2, 3), leaf(2, 6, 3), leaf(2, 3, 3))
    assert gradcheck(lambda *x: recur(*x, real, torch.float64), inputs)


@pytest.mark.parametrize("scoring", SCORINGS)
def test_gradcheck_decoder(scoring):
    torch.manual_seed(0)

    def leaf(*shape):
        return torch.randn(*shape, dtype=torch.float64, requires_grad=True)

    h, a, n = 2, 3, 4
    module = SCORINGS[scoring](n).double()
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    mask = torch.tensor([[True, True, True], [True, True, False]])

    def run(words, initial, annotations, keys, *matrices):
        course = attend_and_recur(
            words, initial, annotations, keys, mask, matrices[:4], module, torch.float64
        )
        return course.states, course.contexts

    inputs = (
        leaf(2, 2, 3 * h), leaf(2, h), leaf(2, 3, a), leaf(2, 3, n),
        leaf(n, h), leaf(2 * h, h), leaf(h, h), leaf(3 * h, a),
    )  # fmt: skip
    # the scoring function's own parameters reach the function through the module
    assert gradcheck(run, (*inputs, *module.parameters()))


def test_own_scoring_with_its_derivative():
    plain, fused = both("own", "previous", scorer=DerivedBilinear)
    torch.testing.assert_close(fused[0], plain[0])
    torch.testing.assert_close(fused[2], plain[2], rtol=1e-10, atol=1e-11)
    assert plain[2]["decoder.context.scoring.M"].abs().max() > 1e-4


def test_own_scoring_without_derivative_is_refused():
    nll, _ = make("own", scorer=Bilinear)(*batch())
    assert nll.isfinite().all()
    with pytest.raises(ValueError, match="Bilinear gives no derivative"):
        make("own", recurrence="fused", scorer=Bilinear)


def test_frozen_parts():
    """Gradients of what is trained do not depend on what is frozen."""
    free = both("additive", "previous")[1][2]
    for frozen in ("encoder", "decoder.context", "decoder.unit", "decoder"):
        net = make("additive", recurrence="fused")
        net.get_submodule(frozen).requires_grad_(False)
        nll, _ = net(*batch())
        (nll * torch.tensor([[1], [2], [3]]) / 3).sum().backward()
        for name, gradient in gradients(net).items():
            if name.startswith(frozen + "."):
                assert gradient is None
            else:
                torch.testing.assert_close(gradient, free[name])


def test_nothing_of_size_source_times_alignment_is_kept_for_a_step():
    """Bytes kept for the backward pass, an entry more of T at a time: no B·S·N in the slope."""
    b, s, n = 4, 40, SIZES["alignment"] * 30
    kept = []
    for t in (10, 20):
        net = make(recurrence="fused", alignment=n)
        saved = {}

        def pack(tensor, saved=saved):
            saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            net(*batch((s,) * b, (t,) * b))
        kept.append(sum(saved.values()))
    assert (kept[1] - kept[0]) / 10 < b * s * n * 8 / 4


def test_unknown_recurrence_is_refused():
    with pytest.raises(ValueError, match="'plain' or 'fused'"):
        make(recurrence="fast")
    with pytest.raises(ValueError, match="'previous' or 'current'"):
        make(state_input="next")
