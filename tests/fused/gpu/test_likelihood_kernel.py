"""The kernel of the vocabulary's cross-entropy against PyTorch's operations, in the interpreter or a GPU."""

import pytest
import torch

from nmt.fused import steps
from nmt.fused.cross_entropy import chunked_nll
from nmt.fused.gpu import backend
from tests.helpers.triton import DEVICES  # isort: split

from nmt.fused.gpu import kernels

ROWS, MAXOUT, VOCABULARY = 7, 5, 37  # a vocabulary that ends within a block and within 16 bytes


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(kernels.likelihood, "WORDS", 16)


def example(device, dtype=torch.float32, scale=1.0):
    """Readouts, W_o and bias as `dtype` holds them, words, and weights with a 0 among them."""
    torch.manual_seed(0)
    rows, W_o = torch.randn(ROWS, MAXOUT), scale * torch.randn(VOCABULARY, MAXOUT)
    parts = (part.to(dtype).float().to(device) for part in (rows, W_o, torch.randn(VOCABULARY)))
    words = torch.randint(0, VOCABULARY, (ROWS,), device=device)
    words[0], words[1] = 0, VOCABULARY - 1
    weight = torch.rand(ROWS, device=device)
    weight[2] = 0
    return *parts, words, weight


def results(module, monkeypatch, rows, W_o, bias, words, weight, dtype, **options):
    monkeypatch.setattr(backend, "steps_for", lambda *tensors: module)
    with torch.no_grad():
        nll, grads = chunked_nll(rows, W_o, bias, words, dtype, weight=weight, **options)
    return nll, *(() if grads is None else grads)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("weighted", "chunk", "scale"),  # each two of them together
    [(False, None, 1.0), (True, 3, 1.0), (True, None, 100.0), (False, 3, 100.0)],
)
def test_float32(device, weighted, chunk, scale, monkeypatch):
    """NLLs and gradients as in float64, also where p underflows (NLLs of hundreds of nats)."""
    *parts, words, weight = example(device, scale=scale)
    weight = weight if weighted else None
    options = {"with_gradients": True, "chunk": chunk}
    found = results(kernels, monkeypatch, *parts, words, weight, torch.float32, **options)
    weight = None if weight is None else weight.double()
    parts = [part.double() for part in parts]
    exact = results(steps, monkeypatch, *parts, words, weight, torch.float64, **options)
    assert len(found) == 4
    for each, expected in zip(found, exact, strict=True):
        # logits of hundreds, and W_o itself in the gradient of the rows
        atol = 3e-6 if scale == 1 else 3e-3
        torch.testing.assert_close(each.double(), expected, rtol=3e-6, atol=atol)


@pytest.mark.parametrize("device", DEVICES)
def test_without_gradients(device, monkeypatch):
    parts = example(device)
    (alone,) = results(kernels, monkeypatch, *parts, torch.float32)
    assert torch.equal(
        alone, results(kernels, monkeypatch, *parts, torch.float32, with_gradients=True)[0]
    )
    assert alone[2] == 0  # its weight


@pytest.mark.parametrize("device", DEVICES)
def test_bf16_rounds_the_gradient_but_not_the_logits(device, monkeypatch):
    """NLLs of products of bf16 are those of float64; PyTorch's operations lose over a thousandth."""
    *parts, words, weight = example(device, torch.bfloat16, scale=4.0)
    options = {"with_gradients": True}
    found = results(kernels, monkeypatch, *parts, words, weight, torch.bfloat16, **options)
    rounded = results(steps, monkeypatch, *parts, words, weight, torch.bfloat16, **options)
    parts = [part.double() for part in parts]
    exact = results(steps, monkeypatch, *parts, words, weight.double(), torch.float64, **options)
    torch.testing.assert_close(found[0].double(), exact[0], rtol=1e-6, atol=1e-5)
    assert (rounded[0] - exact[0]).abs().max() > 1e-3
    for each, expected in zip(found[1:], exact[1:], strict=True):
        assert (each - expected).norm() <= 0.005 * expected.norm()
    assert [each.dtype for each in found[1:]] == [torch.bfloat16, torch.float32, torch.float32]


def test_rows_of_operands_begin_at_multiples_of_16_bytes():
    matrix = torch.arange(15.0).view(3, 5)
    for dtype, row in ((torch.float32, 8), (torch.bfloat16, 8), (torch.float16, 8)):
        operand = kernels.operand(matrix, dtype)
        assert operand.stride() == (row, 1)
        assert torch.equal(operand, matrix.to(dtype))
    assert kernels.operand(torch.zeros(3, 8), torch.bfloat16).is_contiguous()
