"""The choice between kernels and PyTorch operations, and how training goes on after a failure."""

import copy
import gc
import logging
import pickle
import weakref
from functools import partial
from unittest.mock import Mock

import pytest
import torch
from torch import nn

from nmt.fused import backend
from nmt.fused.backend import Backend
from nmt.fused.gpu import graphs, probe
from nmt.fused.gpu.graphs import LossGraphs
from tests.layers.nets import batch, gradients, make

BATCHES = [batch(seed=1), batch((3, 9), (6, 2), seed=2), batch(seed=3), batch(seed=4)]


@pytest.fixture(autouse=True)
def untried():
    """Clears the cached results of the probe before and after a test."""
    probe.kernels_are_correct.cache_clear()
    yield
    probe.kernels_are_correct.cache_clear()


@pytest.fixture
def on_cpu(monkeypatch):
    """Enables kernels on the CPU, in Triton's interpreter. Returns the module of kernels."""
    pytest.importorskip("triton", reason="Triton is not installed")
    from nmt.fused.gpu import kernels

    monkeypatch.setattr(backend, "launches_on", lambda device: True)
    return kernels


@pytest.mark.parametrize("current", [0, 1])
def test_kernels_for_the_current_gpu_alone(current, monkeypatch):
    """Kernels need tensors on the current GPU, because Triton always launches there."""
    monkeypatch.setattr(torch.cuda, "current_device", lambda: current)
    assert backend.launches_on(torch.device("cuda", 0)) == (current == 0)
    assert not backend.launches_on(torch.device("cpu"))


@pytest.fixture
def launched(on_cpu, monkeypatch):
    """Returns run(net, fail), which computes a loss and reports whether the kernel `next_state` was launched.

    If `fail` is given, the kernel raises `fail`.
    """
    monkeypatch.setattr(probe, "probe", lambda device: None)
    right = on_cpu.next_state
    seen = Mock(side_effect=right)
    monkeypatch.setattr(on_cpu, "next_state", seen)

    def run(net, fail=None):
        seen.side_effect = fail or right
        seen.reset_mock()
        net.loss(*batch((2, 1), (2, 1))).backward()
        return seen.called

    return run


def test_models_with_kernels_and_without_in_one_process(launched):
    """Copies of a network keep its setting of `kernels`. A network in float64 uses no kernels."""
    ways = (True, False, True)
    nets = [make(recurrence="fused", dtype=torch.float32, kernels=way) for way in ways]
    nets += [copy.deepcopy(net) for net in nets]
    nets += [pickle.loads(pickle.dumps(net)) for net in nets[:3]]
    assert [launched(net) for net in nets] == [*ways, *ways, *ways]
    assert not launched(make(recurrence="fused"))
    for net in nets[1:]:
        torch.testing.assert_close(gradients(net), gradients(nets[0]), rtol=1e-4, atol=1e-5)


def test_a_failure_is_of_one_model_and_its_parts(launched, caplog):
    """A network whose kernel fails stops using kernels. An earlier copy and other networks still use them."""
    net, other = (make(recurrence="fused", dtype=torch.float32) for _ in range(2))
    twin = copy.deepcopy(net)
    assert launched(net, fail=RuntimeError("no such kernel"))
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert not launched(net)
    assert launched(twin)
    assert launched(other)
    assert not net.decoder.backend.kernels
    assert net.decoder.backend is net.encoder.backend is net.output.backend


def train(way):
    """Makes four updates with dropout, and returns the weights and the losses."""
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


@pytest.fixture(scope="module")
def expected():
    """Weights and losses of a training without failures."""
    return train(LossGraphs(rehearse=True))


@pytest.fixture
def goes_on(expected, caplog):
    """Returns run(said), which trains with graphs, and checks that one warning contains `said`.

    `run` also checks that weights and losses equal those of a training without failures.
    """

    def run(said):
        way = LossGraphs(rehearse=True)
        with caplog.at_level(logging.WARNING):
            found = train(way)
        assert len(caplog.messages) == 1
        assert said in caplog.messages[0]
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
        return way

    return run


class Broken:
    """A kernel that raises an error after a number of successful launches."""

    def __init__(self, kernel, error, launches=0):
        self.kernel = kernel
        self.error = error
        self.left = launches

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


@pytest.mark.parametrize(
    ("error", "said", "launches"),  # with 0 launches it fails in the probe, with 4 in training
    [
        (does_not_compile, "CompilationError: ", 0),
        (lambda: RuntimeError("Failed to find C compiler. Please specify\nvia"), "python3-dev", 0),
        (out_of_resources, "out of resource: shared memory", 0),
        (out_of_resources, "out of resource: shared memory", 4),
    ],
)
def test_a_kernel_that_cannot_be_launched(error, said, launches, goes_on, on_cpu, monkeypatch):
    if launches:
        monkeypatch.setattr(probe, "probe", lambda device: None)
    broken = Broken(on_cpu.gates.next_state_kernel, error(), launches)
    monkeypatch.setattr(on_cpu, "next_state", partial(on_cpu.gates.launch, broken))
    assert len(goes_on(said).graphs) == 2
    assert broken.left == -1


def test_a_kernel_that_fails_in_validation_or_translation(launched, on_cpu, monkeypatch):
    """After the failure, PyTorch operations compute the NLLs and the first state of a search."""
    expected = make(recurrence="fused", dtype=torch.float32, kernels=False)
    source, mask, *target = batch()
    with torch.no_grad():
        for compute in (
            lambda net: net(source, mask, *target).nll,
            lambda net: net.begin(source, mask)[1].hidden,
        ):
            net = make(recurrence="fused", dtype=torch.float32)
            monkeypatch.setattr(on_cpu, "compute_gates", Mock(side_effect=out_of_resources()))
            assert torch.equal(compute(net), compute(expected))
            on_cpu.compute_gates.assert_called_once()


def test_kernels_stay_after_a_lack_of_memory(on_cpu):
    runs = Backend(kernels=True)
    compute = Mock(side_effect=torch.OutOfMemoryError)
    with pytest.raises(torch.OutOfMemoryError):
        runs.run(torch.empty(3), compute)
    assert runs.kernels
    compute.assert_called_once_with(on_cpu)


@pytest.fixture
def wrong(monkeypatch):
    """Returns wrong(name, place), which makes kernel `name` multiply its argument at index `place` by 1.2."""

    def replace(name, place):
        pytest.importorskip("triton", reason="Triton is not installed")
        from nmt.fused.gpu import kernels

        right = getattr(kernels, name)

        def compute(*given, **options):
            changed = list(given)
            changed[place] = given[place] * 1.2
            return right(*changed, **options)

        monkeypatch.setattr(kernels, name, compute)

    return replace


@pytest.mark.parametrize(
    ("name", "place"),
    [("compute_gates", 1), ("reset_backward", 1), ("attention_steps", 1), ("word_nll", 0)],
)
def test_the_probe_sees_a_wrong_number(name, place, wrong):
    wrong(name, place)
    with pytest.raises(ArithmeticError, match="with Additive is off"):
        probe.probe(torch.device("cpu"))


def test_a_training_with_a_wrong_kernel_goes_on_without(wrong, goes_on, on_cpu):
    wrong("compute_gates", 1)
    goes_on("with Additive is off")


def test_without_triton(goes_on, monkeypatch):
    monkeypatch.setattr(probe, "find_spec", lambda name: None)
    monkeypatch.setattr(backend, "launches_on", lambda device: True)
    goes_on("Triton is not installed")


@pytest.mark.parametrize("captured", [0, 1])  # number of earlier captures that succeeded
def test_a_capture_that_fails(captured, goes_on, monkeypatch):
    """After the failure, all memory of the graphs is freed."""
    error = RuntimeError("operation not permitted when stream is capturing")
    capture = graphs.LossGraph
    held = weakref.WeakSet()

    def fail(batch, *rest):
        held.add(batch[0])
        if len(held) > captured:
            raise error
        return capture(batch, *rest)

    monkeypatch.setattr(graphs, "LossGraph", fail)
    way = goes_on("not permitted")
    error.__traceback__ = None
    gc.collect()
    assert way.failed
    assert not way.graphs
    assert not way.gradients
    assert not held


@pytest.mark.parametrize("stuck", [False, True])
@pytest.mark.parametrize("failing", [1, 2])
def test_a_capture_without_memory(failing, stuck, goes_on, monkeypatch):
    """Only the shape that failed has no graph. If the generator stays in capture mode, no shape has a graph."""
    capture = graphs.LossGraph
    captures = iter(range(1, 9))

    def fail(*given):
        if next(captures) == failing:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return capture(*given)

    monkeypatch.setattr(graphs, "LossGraph", fail)
    monkeypatch.setattr(graphs, "is_stuck", lambda generator: stuck)
    way = goes_on("out of memory")
    assert way.failed == stuck
    held = [graph is not None for graph in way.graphs.values()]
    assert held == ([] if stuck else [failing == 2, failing == 1])
    assert next(captures) == (failing if stuck else 2) + 1


def test_a_generator_in_use_is_not_stuck():
    assert not graphs.is_stuck(torch.default_generator)


class Captured:
    """Simulates CUDA's random generator after a failed capture."""

    device = torch.device("cuda", 0)
    captured = False

    def get_state(self):
        return torch.get_rng_state()

    def graphsafe_set_state(self, other):
        self.captured = False

    def set_state(self, state):
        assert not self.captured
        torch.set_rng_state(state)


def test_a_generator_left_capturing(goes_on, monkeypatch):
    """After a failed capture, dropout raises an error until the generator gets a new state object."""
    generator = Captured()
    dropout = nn.functional.dropout

    def drop(*given, **options):
        if generator.captured:
            raise RuntimeError("Offset increment outside graph capture encountered unexpectedly.")
        return dropout(*given, **options)

    def fail(*given):
        generator.captured = True
        raise RuntimeError("operation failed due to a previous error during capture")

    monkeypatch.setattr(nn.functional, "dropout", drop)
    monkeypatch.setattr(graphs, "LossGraph", fail)
    monkeypatch.setattr(torch, "default_generator", generator)
    monkeypatch.setattr(torch, "Generator", lambda device: None)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    way = goes_on("previous error")
    assert way.failed
    assert not generator.captured
