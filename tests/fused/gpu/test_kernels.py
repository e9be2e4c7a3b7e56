"""Triton kernels compared with PyTorch operations, in Triton's interpreter or on a GPU."""

import math

import pytest
import torch

from nmt.fused import output, steps
from nmt.layers import Additive, Dot
from tests.fused.gpu.devices import DEVICES  # isort: split

from nmt.fused.gpu import kernels, probe
from tests.layers.nets import batch, gradients, make

ROWS, MAXOUT, VOCABULARY = 7, 5, 37  # 37 words do not fill whole blocks, or whole 16-byte units
ON_DEVICES = pytest.mark.parametrize("device", DEVICES)


@pytest.fixture
def small_blocks(monkeypatch):
    """Sets block sizes that do not divide the numbers of units, positions, entries and words."""
    for module, block, size in (
        (kernels.gates, "UNITS", 32),
        (kernels.likelihood, "WORDS", 16),
    ):
        monkeypatch.setattr(module, block, size)
    for kernel in ("SCORE", "CONTEXT", "QUERY_BACKWARD", "GRADIENTS"):
        monkeypatch.setattr(
            kernels.attention, kernel, {"POSITIONS": 4, "ENTRIES": 16, "num_warps": 4}
        )


@pytest.mark.slow  # Triton's interpreter runs each block in Python
@ON_DEVICES
@pytest.mark.parametrize(
    ("scorer", "dtype"),
    [(Additive, torch.float32), (Additive, torch.bfloat16), (Dot, torch.float32)],
)
def test_kernels_equal_pytorch_over_several_blocks(scorer, dtype, device, small_blocks):
    found, expected = (
        probe.results(scorer, dtype, torch.device(device), module) for module in (kernels, steps)
    )
    assert {"the loss", "Adadelta"} < found.keys()
    limit = {torch.float32: 1e-5, torch.bfloat16: 0.06}[dtype]
    for name, value in expected.items():
        assert (found[name] - value).norm() <= limit * value.norm(), name


@ON_DEVICES
def test_attention_by_hand_where_exponentials_overflow(device, small_blocks):
    """The attention scores are 300, 299 and, at a padded position, 310."""
    keys = torch.tensor([[[300.0], [299.0], [310.0]]], device=device)
    mask = torch.tensor([[True, True, False]], device=device)
    weights, log_normaliser = keys.new_empty(1, 3), keys.new_empty(1)
    context = keys.new_empty(1, 1)
    attention = kernels.attention_steps(Dot(1, 1), torch.ones_like(keys), keys, mask)
    attention.attend(keys.new_ones(1, 1), weights, log_normaliser, context)
    larger = 1 / (1 + math.exp(-1))
    torch.testing.assert_close(weights.tolist(), [[larger, 1 - larger, 0.0]])
    assert log_normaliser.item() == pytest.approx(300 - math.log(larger))
    assert context.item() == pytest.approx(1)


@ON_DEVICES
# In `general` scoring the keys are the annotations. Autocast leaves them in float32.
@pytest.mark.parametrize(
    ("scoring", "autocast"),
    [
        pytest.param("scaled_dot", False, marks=pytest.mark.slow),
        pytest.param("general", True, marks=pytest.mark.slow),
        ("none", True),
    ],
)
def test_network_with_kernels_equals_pytorch(scoring, device, autocast):
    """A fused network has the same NLLs and gradients with kernels as with PyTorch operations."""
    results = []
    for module in (steps, kernels):
        net = make(scoring, recurrence="fused", dtype=torch.float32, steps=module).to(device)
        if autocast:
            net.decoder.readout.bias.data[0::2] += 3  # else rounding could change a maximum
        with torch.autocast(device, torch.bfloat16, enabled=autocast):
            words = [part.to(device) for part in batch((3, 1), (2, 3))]
            net.loss(*words).backward()
            with torch.no_grad():
                results.append((net(*words), gradients(net)))
    (expected, grads), (found, found_grads) = results
    share = 0.06 if autocast else 1e-5
    assert ((found.nll - expected.nll).abs() <= share * (1 + expected.nll)).all()
    for name, gradient in grads.items():
        assert (found_grads[name] - gradient).norm() <= share * gradient.norm(), name
    if scoring != "none":
        assert (found.weights - expected.weights).abs().max() < share


def example(device, dtype=torch.float32, scale=1.0):
    """Returns [readouts, W_o, bias, words] with floats rounded to `dtype`, and a weight per word (one weight is 0)."""
    torch.manual_seed(0)
    rows = torch.randn(ROWS, MAXOUT)
    W_o = scale * torch.randn(VOCABULARY, MAXOUT)
    parts = (part.to(dtype).float().to(device) for part in (rows, W_o, torch.randn(VOCABULARY)))
    words = torch.randint(0, VOCABULARY, (ROWS,), device=device)
    words[0] = 0
    words[1] = VOCABULARY - 1
    weight = torch.rand(ROWS, device=device)
    weight[2] = 0
    return [*parts, words], weight


def likelihood(module, parts, dtype, weight=None, with_gradients=True):
    if dtype == torch.float64:
        parts = [part.double() if part.is_floating_point() else part for part in parts]
        weight = None if weight is None else weight.double()
    options = {"weight": weight, "with_gradients": with_gradients}
    with torch.no_grad():
        nll, grads = output.chunked_nll(module, *parts, dtype, **options)
    return nll, *(grads or ())


@ON_DEVICES
@pytest.mark.parametrize("chunk", [3, ROWS])
@pytest.mark.parametrize(("weighted", "scale"), [(True, 1.0), (True, 100.0), (False, 100.0)])
def test_likelihood_kernel_in_float32(device, weighted, scale, chunk, small_blocks, monkeypatch):
    """NLLs and gradients equal those of float64, even if probabilities underflow (NLLs of hundreds of nats)."""
    for name in ("LOGITS_BYTES", "LOGITS_BYTES_GPU"):
        monkeypatch.setattr(output, name, chunk * VOCABULARY * 4)
    parts, weight = example(device, scale=scale)
    weight = weight if weighted else None
    found = likelihood(kernels, parts, torch.float32, weight)
    assert torch.equal(found[0], likelihood(kernels, parts, torch.float32, weight, False)[0])
    assert not weighted or found[0][2] == 0
    for each, expected in zip(found, likelihood(steps, parts, torch.float64, weight), strict=True):
        # At scale 100, logits and the readouts' gradient are larger, and so are their rounding errors.
        atol = 3e-6 if scale == 1 else 3e-3
        torch.testing.assert_close(each.double(), expected, rtol=3e-6, atol=atol)


@ON_DEVICES
def test_likelihood_kernel_in_bf16(device, small_blocks):
    """With bf16 inputs, kernels give the NLLs of float64, whereas PyTorch operations are off by over 0.001 nats."""
    parts, weight = example(device, torch.bfloat16, scale=4.0)
    found = likelihood(kernels, parts, torch.bfloat16, weight)
    exact = likelihood(steps, parts, torch.float64, weight)
    torch.testing.assert_close(found[0].double(), exact[0], rtol=1e-6, atol=1e-5)
    rounded = likelihood(steps, parts, torch.bfloat16, weight)
    assert (rounded[0] - exact[0]).abs().max() > 1e-3
    for each, expected in zip(found[1:], exact[1:], strict=True):
        assert (each - expected).norm() <= 0.005 * expected.norm()
    assert [each.dtype for each in found[1:]] == [torch.bfloat16, torch.float32, torch.float32]
