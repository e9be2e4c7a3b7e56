"""Triton's kernels against the steps in PyTorch operations, through Triton's interpreter or a GPU."""

import pytest
import torch

from nmt.fused import steps
from nmt.fused.gpu import backend, probe
from tests.helpers.triton import DEVICES  # isort: split

from nmt.fused.gpu import kernels
from tests.layers.nets import batch, gradients, make


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", probe.TOLERANCE)
@pytest.mark.parametrize("name", probe.CHECKS)
def test_each_kernel_over_several_blocks(name, dtype, device, monkeypatch):
    """Units, positions, entries and words that are no multiple of a block, and padding."""
    for module, block, size in (
        (kernels.gates, "UNITS", 16),
        (kernels.attention, "POSITIONS", 4),
        (kernels.attention, "ENTRIES", 16),
        (kernels.likelihood, "WORDS", 16),
    ):
        monkeypatch.setattr(module, block, size)
    device, tolerance = torch.device(device), {torch.float32: 1e-5, torch.bfloat16: 0.04}[dtype]
    with torch.no_grad():
        pairs = [[*probe.CHECKS[name](module, device, dtype)] for module in (kernels, steps)]
    for found, expected in zip(*pairs, strict=True):
        error = (found.double() - expected.double()).abs().max()
        assert error <= tolerance * expected.double().abs().max().clamp(min=1)
    if name == "the gates":  # the state of a padded position is that of the one before, to the bit
        assert torch.equal(pairs[0][3][:, 1], probe.numbers(device, torch.float32, 2, 3, 37)[:, 1])
    if name == "additive attention":
        assert not pairs[0][0][:, 0, 3:].any()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("scoring", "autocast"),
    [
        *((name, False) for name in ("additive", "dot", "scaled_dot", "none")),
        # the keys of `general` are the annotations, which autocast leaves in float32
        *((name, True) for name in ("additive", "general", "none")),
    ],
)
def test_whole_model(scoring, device, autocast, monkeypatch):
    """NLL and every gradient of fused recurrences on kernels and on PyTorch operations."""
    results = []
    for module in (steps, kernels):
        monkeypatch.setattr(backend, "steps_for", lambda *tensors, module=module: module)
        net = make(scoring, recurrence="fused", dtype=torch.float32).to(device)
        if autocast:
            net.decoder.readout.bias.data[0::2] += 3  # or rounding swaps maxout units
        with torch.autocast(device, torch.bfloat16, enabled=autocast):
            words = [part.to(device) for part in batch()]
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
