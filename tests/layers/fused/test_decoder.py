"""The fused recurrences against the plain ones: values and gradients, in every precision."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.autograd import gradcheck

from nmt.layers import Memory
from nmt.layers.fused.decoder import run_with_attention
from tests.layers.nets import KINDS, SCORINGS, SIZES, batch, both_recurrences, gradients, leaf, make

LENGTHS = [((6, 1, 4), (2, 5, 3)), ((1,), (1,)), ((3, 3), (1, 2)), ((2, 9), (7, 4))]


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize(("scoring", "state_input"), KINDS)
def test_float64(scoring, state_input, lengths):
    (nll, teacher_forced, grads), (fused_nll, fused, fused_grads) = both_recurrences(
        scoring, state_input, lengths
    )
    torch.testing.assert_close(fused_nll, nll, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(fused_grads, grads, rtol=1e-10, atol=1e-11)
    if scoring != "none":
        torch.testing.assert_close(fused.weights, teacher_forced.weights, rtol=1e-11, atol=1e-11)
        torch.testing.assert_close(fused.log_normaliser, teacher_forced.log_normaliser)


LARGER = {"hidden": 48, "embedding": 24, "alignment": 40, "maxout": 16, "source": 60, "target": 70}


@pytest.mark.parametrize(("scoring", "state_input"), KINDS)
def test_float32(scoring, state_input):
    """Within 1e-4 of the norm of each gradient."""
    plain, fused = both_recurrences(
        scoring, state_input, ((9, 12, 3), (8, 5, 11)), dtype=torch.float32, **LARGER
    )
    torch.testing.assert_close(fused[0], plain[0], rtol=1e-5, atol=1e-5)
    for name, gradient in plain[2].items():
        assert (fused[2][name] - gradient).norm() <= 1e-4 * gradient.norm(), name


@pytest.mark.parametrize(("scoring", "state_input"), KINDS)
def test_bf16_autocast(scoring, state_input):
    """Both stay near float32: each NLL within 0.1, each gradient within 6 % of its norm.

    One half of each maxout pair is far above the other, or rounding would swap some.
    """
    lengths = ((9, 12, 3), (8, 5, 11))
    options = {"dtype": torch.float32, **LARGER}
    exact = both_recurrences(scoring, state_input, lengths, autocast=False, **options)[0]
    mixed = both_recurrences(scoring, state_input, lengths, autocast=True, **options)
    for nll, _, grads in mixed:
        assert (nll - exact[0]).abs().max() < 0.1
        for name, gradient in exact[2].items():
            assert grads[name].dtype == torch.float32
            # terms of both signs sum to the one entry of a temperature
            cancelled = 0.02 if gradient.numel() == 1 else 0
            assert (grads[name] - gradient).norm() <= 0.06 * gradient.norm() + cancelled, name


@pytest.mark.parametrize("scoring", SCORINGS)
def test_gradcheck_decoder(scoring):
    torch.manual_seed(0)

    h, a, n = 2, 3, 4
    module = SCORINGS[scoring](n, n).double()
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    mask = torch.tensor([[True, True, True], [True, True, False]])

    def run(words, initial, annotations, keys, W_a, U_gates, U, C, *_):
        memory = Memory(annotations, keys, mask, initial)
        unit = SimpleNamespace(U_gates=U_gates, U=U, C=C)
        trace = run_with_attention(words, initial, memory, W_a, module, unit)
        return trace.states, trace.contexts

    inputs = (
        leaf(2, 2, 3 * h), leaf(2, h), leaf(2, 3, a), leaf(2, 3, n),
        leaf(n, h), leaf(2 * h, h), leaf(h, h), leaf(3 * h, a),
    )  # fmt: skip
    # the scoring function's own parameters reach the function through the module
    assert gradcheck(run, (*inputs, *module.parameters()))


def test_frozen_parts():
    """Gradients of what is trained do not depend on what is frozen."""
    free = both_recurrences("additive", "previous")[1][2]
    for frozen in ("encoder", "decoder.context", "decoder.unit", "decoder"):
        net = make("additive", recurrence="fused")
        net.get_submodule(frozen).requires_grad_(False)
        nll = net(*batch()).nll
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
