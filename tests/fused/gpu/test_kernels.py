"""Triton's kernels against the steps in PyTorch operations, through Triton's interpreter or a GPU."""

import pytest
import torch

from nmt.fused import steps
from nmt.fused.gpu import backend
from nmt.layers import Additive, Dot
from tests.helpers.triton import DEVICES  # isort: split

from nmt.fused.gpu import kernels, probe
from tests.layers.nets import batch, gradients, make


@pytest.fixture
def small_blocks(monkeypatch):
    """Units, positions, entries and words that are no multiple of a block."""
    for module, block, size in (
        (kernels.gates, "UNITS", 16),
        (kernels.attention, "POSITIONS", 4),
        (kernels.attention, "ENTRIES", 16),
        (kernels.likelihood, "WORDS", 16),
    ):
        monkeypatch.setattr(module, block, size)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", probe.TOLERANCE)
@pytest.mark.parametrize("scorer", [Additive, Dot])
def test_what_the_probe_compares_over_several_blocks(scorer, dtype, device, small_blocks):
    found, expected = (
        probe.results(scorer, dtype, torch.device(device), module) for module in (kernels, steps)
    )
    assert {"the loss", "the scores of a search", "Adadelta"} < found.keys()
    limit = {torch.float32: 1e-5, torch.bfloat16: 0.06}[dtype]
    for name, value in expected.items():
        assert (found[name] - value).norm() <= limit * value.norm(), name


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("scoring", "autocast"),
    [
        *((name, False) for name in ("additive", "dot", "scaled_dot", "none")),
        # the keys of `general` are the annotations, which autocast leaves in float32
        *((name, True) for name in ("additive", "general", "none")),
    ],
)
def test_whole_model(scoring, device, autocast):
    """NLL and every gradient of fused recurrences on kernels and on PyTorch operations."""
    results = []
    for module in (steps, kernels):
        net = make(scoring, recurrence="fused", dtype=torch.float32).to(device)
        if autocast:
            net.decoder.readout.bias.data[0::2] += 3  # or rounding swaps maxout units
        with backend.using(module), torch.autocast(device, torch.bfloat16, enabled=autocast):
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
