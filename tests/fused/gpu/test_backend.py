"""Which operations carry out a step."""

import logging
import sys
from types import ModuleType, SimpleNamespace
from unittest.mock import patch

import pytest
import torch

from nmt.fused import steps
from nmt.fused.gpu import backend
from tests.helpers.fake_cuda import GPU, fake_cuda


@pytest.mark.parametrize("current", [0, 1])
def test_kernels_for_the_current_gpu_alone(current, monkeypatch):
    """Triton launches on the current device; PyTorch's operations on that of their tensors."""
    if not torch.backends.cuda.is_built():
        pytest.skip("needs a torch with CUDA, though no device")
    monkeypatch.setattr(backend, "has_triton", lambda: True)
    monkeypatch.setitem(sys.modules, "nmt.fused.gpu.kernels", kernels := ModuleType("kernels"))
    monkeypatch.setattr(sys.modules["nmt.fused.gpu"], "kernels", kernels, raising=False)
    with fake_cuda(), patch.object(torch.cuda, "current_device", lambda: current):
        chosen = backend.steps_for(torch.zeros(1, device=GPU))
    assert chosen is (kernels if current == GPU.index else steps)


@pytest.mark.parametrize(
    ("tokens", "kernel"),  # of a batch: of each a row of three times 1,000 units
    [((2**31 - 1) // 3000, True), (2**31 // 3000 + 1, False)],
)
def test_no_kernel_where_offsets_would_not_fit_32_bits(tokens, kernel, monkeypatch):
    monkeypatch.setattr(backend, "launches_on", lambda device: True)
    monkeypatch.setitem(sys.modules, "nmt.fused.gpu.kernels", kernels := ModuleType("kernels"))
    monkeypatch.setattr(sys.modules["nmt.fused.gpu"], "kernels", kernels, raising=False)
    large = torch.empty(tokens, 3000, device="meta")
    chosen = kernels if kernel else steps
    assert backend.steps_for(large) is chosen
    assert backend.steps_for(torch.zeros(1), large) is chosen


@pytest.mark.parametrize("fails", [False, True])
def test_triton_that_cannot_launch(fails, monkeypatch, caplog):
    """Without a C compiler Triton is left out, and a warning says what it lacks."""

    def get_current_device():
        if fails:
            raise RuntimeError("Failed to find C compiler. Please specify\nvia CC")
        return 0

    runtime = ModuleType("triton.runtime")
    runtime.driver = SimpleNamespace(active=SimpleNamespace(get_current_device=get_current_device))
    monkeypatch.setitem(sys.modules, "triton", ModuleType("triton"))
    monkeypatch.setitem(sys.modules, "triton.runtime", runtime)
    monkeypatch.setattr(backend, "find_spec", lambda name: object())
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with caplog.at_level(logging.WARNING):
        assert backend.has_triton.__wrapped__() is not fails
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == fails
    assert all("C compiler" in line and "python3-dev" in line for line in lines)
