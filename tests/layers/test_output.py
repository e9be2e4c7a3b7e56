"""The chunked cross-entropy against torch's own."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from nmt.layers import Output
from nmt.layers.fused.cross_entropy import chunked


def example(dtype=torch.float64, scale=1.0):
    torch.manual_seed(0)
    output = Output(5, 17).to(dtype)
    torch.nn.init.normal_(output.W_o, std=scale)
    torch.nn.init.normal_(output.bias)
    readout = torch.randn(3, 4, 5, dtype=dtype, requires_grad=True)
    target = torch.randint(0, 17, (3, 4))
    mask = torch.arange(4) < torch.tensor([[4], [1], [3]])
    return output, readout, target, mask


def plain(output, readout, target, mask):
    logits = output.logits(readout)
    nll = cross_entropy(logits.flatten(0, 1).float(), target.flatten(), reduction="none")
    if logits.dtype == torch.float64:
        nll = cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="none")
    return nll.view_as(mask) * mask


def grads_of(loss, output, readout):
    return torch.autograd.grad(loss, (readout, output.W_o, output.bias))


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_equals_plain_cross_entropy(scale):
    """Also where p underflows a float32 softmax (scale 100: NLLs of hundreds of nats)."""
    output, readout, target, mask = example(scale=scale)
    expected = plain(output, readout, target, mask)
    found = output.nll(readout, target, mask)
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-11)
    weight = torch.rand(3, 4, dtype=torch.float64)
    torch.testing.assert_close(
        grads_of((found * weight).sum(), output, readout),
        grads_of((expected * weight).sum(), output, readout),
        rtol=1e-10, atol=1e-11,
    )  # fmt: skip
    expected = plain(output, readout, target, mask)
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
    output, readout, target, mask = example(torch.float32, scale=100.0)
    expected = plain(output, readout, target, mask)
    assert expected.max() > 200
    torch.testing.assert_close(
        output.loss(readout, target, mask)[1], expected, rtol=1e-5, atol=1e-4
    )


@pytest.mark.parametrize("chunk", [1, 2, 3, 8, 100])
def test_chunks_do_not_change_the_sum(chunk):
    output, readout, target, mask = example()
    inputs = (readout[mask], output.W_o, output.bias, target[mask], torch.float64)
    weight = torch.rand(8, dtype=torch.float64)
    with torch.no_grad():
        nll, grads = chunked(*inputs, derive=True, weight=weight, chunk=chunk)
        whole_nll, whole = chunked(*inputs, derive=True, weight=weight)
    torch.testing.assert_close(nll, whole_nll)
    torch.testing.assert_close(tuple(grads), tuple(whole))


def test_bf16_autocast():
    """NLL within 0.05 nats and gradients within 2 % of float32."""
    output, readout, target, mask = example(torch.float32)
    expected = plain(output, readout, target, mask)
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
    output, readout, target, mask = example()
    with torch.no_grad():
        readout[~mask] = torch.nan
    nll = output.nll(readout, target, mask)
    assert nll[mask].isfinite().all()
    assert not nll[~mask].any()
    (grad,) = torch.autograd.grad(nll.sum(), readout)
    assert not grad[~mask].any()


def test_rows_of_weight_0_are_as_good_as_left_out():
    """What a GPU does, to which the number of real positions is unknown."""
    output, readout, target, mask = example()
    parameters = output.W_o, output.bias
    with torch.no_grad():
        nll, grads = chunked(
            readout.flatten(0, 1), *parameters, target.flatten(), torch.float64,
            derive=True, weight=mask.flatten().double(),
        )  # fmt: skip
        chosen, chosen_grads = chunked(
            readout[mask], *parameters, target[mask], torch.float64, derive=True
        )
    torch.testing.assert_close(nll[mask.flatten()], chosen)
    assert not nll[~mask.flatten()].any()
    torch.testing.assert_close(grads.rows[mask.flatten()], chosen_grads.rows)
    assert not grads.rows[~mask.flatten()].any()
    torch.testing.assert_close(grads[1:], chosen_grads[1:])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_is_not_waited_for():
    """Loss and gradients as on a CPU, without a synchronisation."""
    output, readout, target, mask = example()
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
