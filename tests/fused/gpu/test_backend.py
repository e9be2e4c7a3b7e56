"""Which operations carry out a step, and what a training does when kernels or graphs fail."""

import gc
import logging
import sys
import weakref
from types import ModuleType
from unittest.mock import patch

import pytest
import torch
from torch import nn

from nmt.fused import steps
from nmt.fused.gpu import backend, graphs
from nmt.fused.gpu.graphs import LossGraph, LossGraphs
from tests.helpers.fake_cuda import GPU, fake_cuda
from tests.layers.nets import batch, make

BATCHES = [batch(seed=1), batch((3, 9), (6, 2), seed=2), batch(seed=3), batch(seed=4)]


@pytest.fixture(autouse=True)
def untried():
    """Kernels that have not been probed, before a test and after it."""
    for _ in ("before", "after"):
        backend.allow_kernels(True)
        backend.is_right.cache_clear()
        if _ == "before":
            yield


@pytest.fixture
def fake_kernels(monkeypatch):
    monkeypatch.setitem(sys.modules, "nmt.fused.gpu.kernels", kernels := ModuleType("kernels"))
    monkeypatch.setattr(sys.modules["nmt.fused.gpu"], "kernels", kernels, raising=False)
    monkeypatch.setattr(backend, "is_right", lambda device: True)
    return kernels


@pytest.mark.parametrize("current", [0, 1])
def test_kernels_for_the_current_gpu_alone(current, fake_kernels):
    """Triton launches on the current device; PyTorch's operations on that of their tensors."""
    if not torch.backends.cuda.is_built():
        pytest.skip("needs a torch with CUDA, though no device")
    with fake_cuda(), patch.object(torch.cuda, "current_device", lambda: current):
        chosen = backend.steps_for(torch.zeros(1, device=GPU))
    assert chosen is (fake_kernels if current == GPU.index else steps)


def test_no_kernel_where_offsets_would_not_fit_32_bits(fake_kernels, monkeypatch):
    monkeypatch.setattr(backend, "launches_on", lambda device: True)
    tokens = (2**31 - 1) // 3000  # of a batch: of each a row of three times 1,000 units
    small, large = (torch.empty(n, 3000, device="meta") for n in (tokens, tokens + 1))
    assert backend.steps_for(small) is fake_kernels
    assert backend.steps_for(small, large) is steps
    assert backend.steps_for(small.double()) is steps
    backend.allow_kernels(False)
    assert backend.steps_for(small) is steps


def train(way):
    """The weights after four updates with dropout, and the losses."""
    net = make(recurrence="fused", dtype=torch.float32).train()
    net.decoder.readout.dropout.p = 0.3
    rule = torch.optim.Adadelta(net.parameters())
    losses = []
    for number, words in enumerate(BATCHES):
        torch.manual_seed(number)
        loss = way.loss(net, words)
        rule.zero_grad()
        loss.backward()
        rule.step()
        losses.append(loss.detach())
    return dict(net.named_parameters()) | {"losses": torch.stack(losses)}


@pytest.fixture
def goes_on(caplog, monkeypatch):
    """goes_on(): a training with graphs has the weights of one without a fault, and warns once."""

    def run(said):
        way = LossGraphs(rehearse=True)
        with caplog.at_level(logging.WARNING):
            found = train(way)
        assert len(caplog.messages) == 1
        assert backend.chosen is None
        assert said in caplog.messages[0]
        monkeypatch.undo()
        expected = train(LossGraphs(rehearse=True))
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
        return way

    return run


class Broken:
    """A kernel whose launch raises an error, from its first or a later one on."""

    def __init__(self, kernel, error, launches=0):
        self.kernel, self.error, self.left = kernel, error, launches

    def __getitem__(self, grid):
        self.left -= 1
        if self.left < 0:
            raise self.error
        return self.kernel[grid]


def out_of_resources():
    from triton.runtime.errors import OutOfResources

    return OutOfResources(300000, 232448, "shared memory")


def does_not_compile():
    from triton.compiler.errors import CompilationError

    return CompilationError("x = 1", None, "at 1:4")


ERRORS = [
    (does_not_compile, "CompilationError: "),
    (out_of_resources, "out of resource: shared memory"),
    (lambda: RuntimeError("Failed to find C compiler. Please specify\nvia CC"), "python3-dev"),
    (lambda: RuntimeError("CUDA error: no kernel image is available"), "no kernel image"),
]


@pytest.mark.parametrize(
    ("error", "said", "launches"),  # in the probe, or afterwards at the size of the model
    [*((*each, 0) for each in ERRORS), (*ERRORS[1], 4)],
)
def test_a_kernel_that_cannot_be_launched(error, said, launches, goes_on, monkeypatch):
    pytest.importorskip("triton", reason="Triton is not installed")
    from nmt.fused.gpu.kernels import gates

    broken = Broken(gates.next_state_kernel, error(), launches)
    monkeypatch.setattr(gates, "next_state_kernel", broken)
    monkeypatch.setattr(backend, "launches_on", lambda device: True)
    assert len(goes_on(said).graphs) == 2
    assert broken.left == -1


@pytest.mark.parametrize(
    ("name", "place", "said"),  # and which argument it reads wrong
    [
        ("open_gates", 0, "with Additive is off"),
        ("reset_backward", 1, "with Additive is off"),
        ("attention_steps", 1, "with Additive is off"),
        ("additive_scores", 0, "the scores of a search with Additive is off"),
        ("word_nll", 0, "with Additive is off"),
    ],
)
def test_a_kernel_that_computes_a_wrong_number(name, place, said, goes_on, monkeypatch):
    pytest.importorskip("triton", reason="Triton is not installed")
    from nmt.fused.gpu import kernels

    right = getattr(kernels, name)

    def wrong(*given, **options):
        changed = list(given)
        changed[place] = given[place] * 1.2
        return right(*changed, **options)

    monkeypatch.setattr(kernels, name, wrong)
    monkeypatch.setattr(backend, "launches_on", lambda device: True)
    goes_on(said)


def test_without_triton(goes_on, monkeypatch):
    monkeypatch.setattr(backend, "find_spec", lambda name: None)
    monkeypatch.setattr(backend, "launches_on", lambda device: True)
    goes_on("Triton is not installed")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError("operation not permitted when stream is capturing"), "not permitted"),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), "out of memory"),
    ],
)
@pytest.mark.parametrize("captured", [0, 1])  # shapes that were captured before
def test_a_capture_that_fails(error, said, captured, goes_on, monkeypatch):
    """Everything that the graphs held is freed."""
    capture, held = LossGraph.__init__, weakref.WeakSet()

    def fail(graph, words, compute):
        capture(graph, words, compute)
        held.add(graph)
        if len(held) > captured:
            raise error

    monkeypatch.setattr(LossGraph, "__init__", fail)
    way = goes_on(said)
    error.__traceback__ = None
    gc.collect()
    assert way.failed
    assert not way.graphs
    assert not way.gradients
    assert not held


class Captured:
    """A generator of random numbers that a failed capture has left behind, as CUDA's."""

    def __init__(self):
        self.captured = False

    def get_state(self):
        return torch.get_rng_state()

    def graphsafe_set_state(self, other):
        torch.set_rng_state(other.get_state())
        self.captured = False


def test_a_generator_left_capturing(goes_on, monkeypatch):
    """Dropout on a GPU then raises, until the generator has the state of another one."""
    generator, dropout, restore = Captured(), nn.functional.dropout, graphs.restore

    def drop(*given, **options):
        if generator.captured:
            raise RuntimeError("Offset increment outside graph capture encountered unexpectedly.")
        return dropout(*given, **options)

    def fail(graph, words, compute):
        compute()
        generator.captured = True
        raise RuntimeError("operation failed due to a previous error during capture")

    def as_on_a_gpu(generator, device, state):
        with patch.object(torch, "Generator", lambda device: torch.default_generator):
            restore(generator, GPU, state)

    monkeypatch.setattr(nn.functional, "dropout", drop)
    monkeypatch.setattr(LossGraph, "__init__", fail)
    monkeypatch.setattr(graphs, "generator_of", lambda device: generator)
    monkeypatch.setattr(graphs, "restore", as_on_a_gpu)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    way = goes_on("previous error")
    assert way.failed
    assert not generator.captured
