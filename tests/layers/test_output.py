"""Compares the plain and the fused output layer with the cross-entropy of torch."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from nmt.fused.output import FusedOutput
from nmt.layers import Output
from tests.layers.nets import output_example

KINDS = pytest.mark.parametrize("kind", [Output, FusedOutput])


def torchs_own(output, readout, target, mask):
    logits = output.logits(readout)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    nll = cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="none")
    return nll.view_as(mask) * mask


def grads_of(loss, output, readout):
    return torch.autograd.grad(loss, (readout, output.W_o, output.bias))


@KINDS
@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_nll_equals_torch_cross_entropy(scale, kind):
    """NLLs and gradients equal torch's, even if probabilities underflow. With scale 100, NLLs are hundreds of nats."""
    output, *words = output_example(scale=scale, kind=kind)
    exact = {"rtol": 1e-10, "atol": 1e-11}
    expected = torchs_own(output, *words)
    with torch.no_grad():
        torch.testing.assert_close(output.nll(*words), expected, **exact)
    found = output.nll(*words)
    torch.testing.assert_close(found, expected, **exact)
    weight = torch.rand(3, 4, dtype=torch.float64)
    wanted = grads_of((expected * weight).sum(), output, words[0])
    torch.testing.assert_close(grads_of((found * weight).sum(), output, words[0]), wanted, **exact)
    total = output.loss(*words)
    expected = torchs_own(output, *words)
    torch.testing.assert_close(total, expected.sum())
    wanted = grads_of(0.3 * expected.sum(), output, words[0])
    torch.testing.assert_close(grads_of(0.3 * total, output, words[0]), wanted, **exact)


@KINDS
def test_nll_of_improbable_words_in_float32(kind):
    output, *words = output_example(torch.float32, scale=100.0, kind=kind)
    expected = torchs_own(output, *words)
    assert expected.max() > 200
    torch.testing.assert_close(output.loss(*words), expected.sum(), rtol=1e-5, atol=1e-4)


def test_fused_logits_equal_plain_logits():
    output, readout, *_ = output_example(torch.float32, kind=FusedOutput)
    with torch.no_grad():
        torch.testing.assert_close(output.logits(readout), Output.logits(output, readout))


@KINDS
def test_nll_under_bf16_autocast(kind):
    """NLLs differ from those of float32 by less than 0.05 nats, and gradients by less than 2 % of their norm."""
    output, *words = output_example(torch.float32, kind=kind)
    expected = torchs_own(output, *words)
    wanted = grads_of(expected.sum(), output, words[0])
    with torch.autocast("cpu", torch.bfloat16):
        total = output.loss(*words)
        with torch.no_grad():
            each = output.nll(*words)
    assert each.dtype == torch.float32
    assert (each - expected).abs().max() < 0.05
    for found, gradient in zip(grads_of(total, output, words[0]), wanted, strict=True):
        assert found.dtype == torch.float32
        assert (found - gradient).norm() < 0.02 * gradient.norm()


@KINDS
def test_padded_rows_are_not_computed(kind):
    output, readout, target, mask = output_example(kind=kind)
    with torch.no_grad():
        readout[~mask] = torch.nan
        nll = output.nll(readout, target, mask)
    assert nll[mask].isfinite().all()
    assert not nll[~mask].any()
    (grad,) = torch.autograd.grad(output.loss(readout, target, mask), readout)
    assert not grad[~mask].any()
