"""The output layer: its likelihoods and their gradients against torch's own cross-entropy."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from tests.layers.nets import output_example


def torchs_own(output, readout, target, mask):
    logits = output.logits(readout)
    nll = cross_entropy(logits.flatten(0, 1).float(), target.flatten(), reduction="none")
    if logits.dtype == torch.float64:
        nll = cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="none")
    return nll.view_as(mask) * mask


def grads_of(loss, output, readout):
    return torch.autograd.grad(loss, (readout, output.W_o, output.bias))


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_equals_torchs_cross_entropy(scale):
    """Also where p underflows a float32 softmax (scale 100: NLLs of hundreds of nats)."""
    output, readout, target, mask = output_example(scale=scale)
    expected = torchs_own(output, readout, target, mask)
    found = output.nll(readout, target, mask)
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-11)
    weight = torch.rand(3, 4, dtype=torch.float64)
    torch.testing.assert_close(
        grads_of((found * weight).sum(), output, readout),
        grads_of((expected * weight).sum(), output, readout),
        rtol=1e-10, atol=1e-11,
    )  # fmt: skip
    expected = torchs_own(output, readout, target, mask)
    total, nll = output.loss(readout, target, mask)
    assert not nll.requires_grad
    torch.testing.assert_close(nll, expected.detach(), rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(total, expected.sum())
    torch.testing.assert_close(
        grads_of(0.3 * total, output, readout),
        grads_of(0.3 * expected.sum(), output, readout),
        rtol=1e-10, atol=1e-11,
    )  # fmt: skip


def test_improbable_words_in_float32():
    output, readout, target, mask = output_example(torch.float32, scale=100.0)
    expected = torchs_own(output, readout, target, mask)
    assert expected.max() > 200
    torch.testing.assert_close(
        output.loss(readout, target, mask)[1], expected, rtol=1e-5, atol=1e-4
    )


def test_bf16_autocast():
    """NLL within 0.05 nats and gradients within 2 % of float32."""
    output, readout, target, mask = output_example(torch.float32)
    expected = torchs_own(output, readout, target, mask)
    wanted = grads_of(expected.sum(), output, readout)
    with torch.autocast("cpu", torch.bfloat16):
        each = output.nll(readout, target, mask)
        total, _ = output.loss(readout, target, mask)
    assert each.dtype == torch.float32
    assert (each - expected).abs().max() < 0.05
    for loss in (each.sum(), total):
        for found, gradient in zip(grads_of(loss, output, readout), wanted, strict=True):
            assert found.dtype == torch.float32
            assert (found - gradient).norm() < 0.02 * gradient.norm()


def test_padded_rows_are_never_computed():
    output, readout, target, mask = output_example()
    with torch.no_grad():
        readout[~mask] = torch.nan
    nll = output.nll(readout, target, mask)
    assert nll[mask].isfinite().all()
    assert not nll[~mask].any()
    (grad,) = torch.autograd.grad(nll.sum(), readout)
    assert not grad[~mask].any()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_is_not_waited_for():
    """Loss and gradients as on a CPU, without a synchronisation."""
    output, readout, target, mask = output_example()
    total, nll = output.loss(readout, target, mask)
    wanted = grads_of(total, output, readout)
    output = output.cuda()
    on_gpu = readout.detach().cuda().requires_grad_(), target.cuda(), mask.cuda()
    output.loss(*on_gpu)[0].backward()  # libraries are set up
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        found, found_nll = output.loss(*on_gpu)
        grads = grads_of(found, output, on_gpu[0])
        each = output.nll(*on_gpu)
        each.sum().backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    torch.testing.assert_close(found_nll.cpu(), nll)
    torch.testing.assert_close(each.detach().cpu(), nll)
    torch.testing.assert_close([grad.cpu() for grad in grads], list(wanted))
