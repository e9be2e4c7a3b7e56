"""The gradient of word vectors by its kernel, in Triton's interpreter or on a GPU."""

import pytest
import torch
from torch import nn

from nmt.fused.gpu import backend
from nmt.fused.gpu.embedding import look_up
from tests.helpers.triton import DEVICES  # isort: split

from nmt.fused.gpu import kernels
from tests.layers.nets import batch, gradients, make

VOCABULARY, SIZE = 23, 37


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(kernels.lookup, "ROWS", 4)
    monkeypatch.setattr(kernels.lookup, "COLUMNS", 16)


def example(count, device, dtype=torch.float32):
    """Gradients of rows, and words of which the last of the vocabulary is a third."""
    torch.manual_seed(count)
    grad = torch.randn(count, SIZE).to(dtype).to(device)
    words = torch.randint(0, VOCABULARY, (count,))
    words[::3] = VOCABULARY - 1
    return grad, words.to(device)


def in_float64(grad, words):
    total = torch.zeros(VOCABULARY, SIZE, dtype=torch.float64, device=grad.device)
    return total.index_add(0, words, grad.double())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("count", [0, 1, 4, 12, 50])  # runs of none, one, a whole block, a rest
def test_sums_are_those_of_float64(count, dtype, device):
    grad, words = example(count, device, dtype)
    found = kernels.lookup_backward(grad, words, VOCABULARY)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), in_float64(grad, words), rtol=1e-6, atol=2e-6)
    assert torch.equal(found, kernels.lookup_backward(grad, words, VOCABULARY))


@pytest.mark.parametrize("device", DEVICES)
def test_look_up(device, monkeypatch):
    """Vectors and gradient of a table, the words two-dimensional and transposed."""
    monkeypatch.setattr(backend, "steps_for", lambda *tensors: kernels)
    table = nn.Embedding(VOCABULARY, SIZE, device=device)
    words = torch.randint(0, VOCABULARY, (5, 7), device=device).t()
    found = look_up(table, words)
    assert "Lookup" in type(found.grad_fn).__name__
    assert torch.equal(found, table(words))
    upstream = torch.randn(7, 5, SIZE, device=device)
    for values in (found, table(words)):
        values.backward(upstream)
    twice = 2 * in_float64(upstream.flatten(0, 1), words.flatten())
    torch.testing.assert_close(table.weight.grad.double(), twice, rtol=1e-6, atol=4e-6)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("scoring", ["additive", "none"])
def test_a_fused_model_takes_the_kernel_and_a_plain_one_does_not(scoring, device, monkeypatch):
    words = [part.to(device) for part in batch()]
    calls, found = [], []
    backward = kernels.lookup_backward
    monkeypatch.setattr(backend, "steps_for", lambda *tensors: kernels)
    monkeypatch.setattr(
        kernels, "lookup_backward", lambda *given: (calls.append(1), backward(*given))[1]
    )
    for recurrence in ("plain", "fused"):
        net = make(scoring, recurrence=recurrence, dtype=torch.float32).to(device)
        net(*words).nll.sum().backward()
        found.append(gradients(net))
        assert len(calls) == (2 if recurrence == "fused" else 0)
    for side in ("encoder", "decoder"):
        name = f"{side}.embedding.weight"
        torch.testing.assert_close(found[1][name], found[0][name], rtol=1e-4, atol=1e-5)
