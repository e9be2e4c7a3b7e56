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


@pytest.mark.slow
def test_copies_of_a_network_keep_its_setting_of_kernels(launched):
    """Copies of a network keep its setting of `kernels`. A network in float64 uses no kernels."""
    ways = (True, False, True)
    nets = [make(recurrence="fused", dtype=torch.float32, kernels=way) for way in ways]
    nets += [copy.deepcopy(net) for net in nets]
    nets += [pickle.loads(pickle.dumps(net)) for net in nets[:3]]
    assert [launched(net) for net in nets] == [*ways, *ways, *ways]
    assert not launched(make(recurrence="fused"))
    for net in nets[1:]:
        torch.testing.assert_close(gradients(net), gradients(nets[0]), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_failed_kernel_disables_kernels_in_its_network_only(launched, caplog):
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
@pytest.mark.slow
def test_training_continues_after_a_failed_launch(
    error, said, launches, goes_on, on_cpu, monkeypatch
):
    if launches:
        monkeypatch.setattr(probe, "probe", lambda device: None)
    broken = Broken(on_cpu.gates.next_state_kernel, error(), launches)
    monkeypatch.setattr(on_cpu, "next_state", partial(on_cpu.gates.launch, broken))
    assert len(goes_on(said).graphs) == 2
    assert broken.left == -1


def test_run_keeps_kernels_if_memory_runs_out(on_cpu):
    def compute(steps):
        assert steps is on_cpu
        raise torch.OutOfMemoryError

    runs = Backend(kernels=True)
    with pytest.raises(torch.OutOfMemoryError):
        runs.run(torch.empty(3), compute)
    assert runs.kernels


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
    [
        ("compute_gates", 1),
        pytest.param("reset_backward", 1, marks=pytest.mark.slow),
        pytest.param("attention_steps", 1, marks=pytest.mark.slow),
        pytest.param("word_nll", 0, marks=pytest.mark.slow),
    ],
)
def test_probe_detects_a_wrong_kernel(name, place, wrong):
    wrong(name, place)
    with pytest.raises(ArithmeticError, match="with Additive is off"):
        probe.probe(torch.device("cpu"))


@pytest.mark.slow
def test_training_continues_without_a_wrong_kernel(wrong, goes_on, on_cpu):
    wrong("compute_gates", 1)
    goes_on("with Additive is off")


def test_training_continues_without_triton(goes_on, monkeypatch):
    monkeypatch.setattr(probe, "find_spec", lambda name: None)
    monkeypatch.setattr(backend, "launches_on", lambda device: True)
    goes_on("Triton is not installed")


def test_training_continues_after_a_failed_capture(goes_on, monkeypatch):
    """After the failure, all memory of the graphs is freed."""
    error = RuntimeError("operation not permitted when stream is capturing")
    capture = graphs.LossGraph
    held = weakref.WeakSet()

    def fail(batch, *rest):
        held.add(batch[0])
        if len(held) > 1:  # the second capture fails
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


@pytest.mark.parametrize("failing", [1, 2])
def test_training_continues_after_a_capture_without_memory(failing, goes_on, monkeypatch):
    """Only the shape that failed has no graph."""
    capture = graphs.LossGraph
    captures = iter(range(1, 9))

    def fail(*given):
        if next(captures) == failing:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return capture(*given)

    monkeypatch.setattr(graphs, "LossGraph", fail)
    way = goes_on("out of memory")
    assert not way.failed
    assert [graph is not None for graph in way.graphs.values()] == [failing == 2, failing == 1]
