"""GraphCache: padding changes nothing, batches may come in any order, memory has a limit.

On a CPU the same buffers are filled by computing; on a GPU by replaying CUDA graphs.
"""

import copy
import gc
import logging
import weakref

import pytest
import torch
from torch.utils import deterministic

from nmt.fused.gpu import captured
from nmt.fused.gpu.captured import CapturedGraph, cast, cut, fill
from nmt.fused.gpu.graphs import MULTIPLE, SENTENCES, GraphCache, rounded
from tests.layers.nets import batch, gradients, make

DEVICES = [
    "cpu",
    pytest.param(
        "cuda",
        marks=[
            pytest.mark.gpu,
            pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
        ],
    ),
]
BATCHES = [
    batch((6, 1, 4), (2, 5, 3), seed=1),
    batch((3, 3, 2), (9, 4, 1), seed=2),
    batch((5, 2, 7), (1, 1, 1), seed=3),
    batch((6, 5, 4), (4, 5, 3), seed=4),  # the shape of the first, other sentences
    batch((4, 8), (8, 2), seed=5),
]


def with_graphs(scoring="additive", device="cpu", limit=None, **options):
    """A fused net and its twin with a graph cache."""
    nets = [make(scoring, recurrence="fused", **options).to(device) for _ in range(2)]
    for part in (nets[1].encoder, nets[1].decoder):
        part.graph_cache = GraphCache(limit, eager=True)
    return nets


def loss_of(net, words):
    """Σ nll, each sentence with another weight."""
    nll = net(*(part.to(net.output.bias.device) for part in words)).nll
    return (nll * torch.arange(1, len(nll) + 1, device=nll.device).unsqueeze(1)).sum()


def tolerance(device):
    return {"rtol": 1e-9, "atol": 1e-10} if device == "cpu" else {"rtol": 1e-6, "atol": 1e-7}


def assert_equal(nets, device):
    torch.testing.assert_close(*map(gradients, reversed(nets)), **tolerance(device))


def test_rounding():
    assert [rounded(n) for n in (1, 4, 5, 50, 52)] == [4, 4, 8, 52, 52]
    assert [rounded(n, SENTENCES) for n in (1, 8, 80, 81)] == [8, 8, 80, 88]
    assert MULTIPLE == 4


def test_fill_and_cut():
    buffer = torch.full((3, 4), 7.0)
    fill(buffer, torch.ones(2, 3))
    assert buffer.tolist() == [[1, 1, 1, 0], [1, 1, 1, 0], [0, 0, 0, 0]]
    copied = cut(buffer, (2, 3))
    buffer.zero_()
    assert copied.sum() == 6


def test_fill_and_cut_in_other_types():
    """As two passes would: a cast, and a copy."""
    torch.manual_seed(0)
    buffer = torch.full((3, 4), 7.0, dtype=torch.bfloat16)
    given = torch.randn(3, 2)
    fill(buffer, given)
    assert torch.equal(buffer[:, :2], given.bfloat16())
    assert (buffer[:, 2:] == 0).all()
    copied = cut(buffer, (2, 2), torch.float32)
    assert torch.equal(copied, buffer[:2, :2].float())
    assert cut(buffer, (3, 4), torch.bfloat16).data_ptr() != buffer.data_ptr()
    (left, right) = cast([given, None], [torch.bfloat16, torch.float32])
    assert left.dtype == torch.bfloat16
    assert right is None


def test_weights_are_cast_as_they_are_copied_in():
    """Buffers have the type of products, and gradients that of the parameters."""
    net = with_graphs(dtype=torch.float32)[1]
    with torch.autocast("cpu", torch.bfloat16):
        net.encoder(*BATCHES[0][:2])
    (graph,) = net.encoder.graph_cache.graphs.values()
    # projected, initial, U_gates, U, real
    types = [x.dtype for x in graph.inputs]
    assert types == [torch.bfloat16, torch.float32, torch.bfloat16, torch.bfloat16, torch.float32]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("scoring", ["additive", "dot", "none"])
def test_equal_over_changing_shapes(scoring, device):
    """Losses and gradients of each batch, though lengths are rounded up to a multiple of 4."""
    nets = with_graphs(scoring, device)
    for words in BATCHES:
        losses = []
        for net in nets:
            net.zero_grad()
            losses.append(loss_of(net, words))
            losses[-1].backward()
        torch.testing.assert_close(losses[1], losses[0], **tolerance(device))
        assert_equal(nets, device)
    # one length for both sides: 8, 12, 8, 8 and, of two sentences, which count as eight, 8
    assert len(nets[1].decoder.graph_cache.graphs) == 2
    assert len(nets[1].encoder.graph_cache.graphs) == 2


@pytest.mark.parametrize("device", DEVICES)
def test_cleared_caches_capture_anew(device):
    nets = with_graphs(device=device)
    caches = [nets[1].encoder.graph_cache, nets[1].decoder.graph_cache]
    for words in (BATCHES[0], BATCHES[1], BATCHES[0]):
        for net in nets:
            loss_of(net, words).backward()
        assert all(cache.graphs for cache in caches)
        for cache in caches:
            cache.clear()
        assert not any(cache.graphs or cache.bytes for cache in caches)
    assert_equal(nets, device)


@pytest.mark.parametrize("device", DEVICES)
def test_accumulation_with_validation_in_between(device):
    nets = with_graphs(device=device)
    for net in nets:
        for words in (BATCHES[0], BATCHES[3], BATCHES[1]):
            loss = loss_of(net, words)
            with torch.no_grad():
                loss_of(net, BATCHES[3])  # would overwrite what the backward pass needs
            loss.backward()
    assert_equal(nets, device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("without_gradients", [torch.no_grad, torch.inference_mode])
def test_nothing_is_captured_without_gradients(device, without_gradients):
    nets = with_graphs(device=device)
    for net in nets:
        with without_gradients():
            loss_of(net, BATCHES[0])
    assert not nets[1].decoder.graph_cache.graphs
    assert not nets[1].encoder.graph_cache.graphs
    for net in nets:
        loss_of(net, BATCHES[0]).backward()  # of the same shape
    assert_equal(nets, device)


@pytest.mark.parametrize("device", DEVICES)
def test_parameters_change_between_updates(device):
    nets = with_graphs(device=device, dtype=torch.float32)
    for net in nets:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            loss = loss_of(net, BATCHES[0])
            loss.backward()
            optimizer.step()
        net.decoder.context.scoring.v.data = net.decoder.context.scoring.v.data * 0.5
        net.zero_grad()
        loss_of(net, BATCHES[3]).backward()
    for found, expected in zip(*(gradients(net).values() for net in nets), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_two_batches_of_a_shape_before_their_backward(device):
    """The second is computed without the graph; afterwards it is free again."""
    nets = with_graphs(device=device)
    for net in nets:
        losses = [loss_of(net, BATCHES[0]), loss_of(net, BATCHES[3])]
        sum(losses).backward()
        loss_of(net, BATCHES[0])  # dropped without a backward pass
        gc.collect()
        loss_of(net, BATCHES[3]).backward()
    assert_equal(nets, device)
    assert len(nets[1].decoder.graph_cache.graphs) == 1


def share_memory(net, monkeypatch):
    """As in a pool of CUDA's: at worst a replay overwrites what all other graphs of it keep."""
    caches = net.encoder.graph_cache, net.decoder.graph_cache

    def wrap(method):
        def run(graph, *arguments):
            method(graph, *arguments)
            (cache,) = (cache for cache in caches if graph in cache.graphs.values())
            for other in set(cache.graphs.values()) - {graph}:
                buffers = [x.untyped_storage().data_ptr() for x in other.inputs if x is not None]
                for x in (*other.outputs, *other.saved, *other.gradients):
                    if x.untyped_storage().data_ptr() not in buffers:
                        x.untyped_storage().fill_(255)  # NaN

        return run

    for name in ("forward", "backward"):
        monkeypatch.setattr(CapturedGraph, name, wrap(getattr(CapturedGraph, name)))


@pytest.mark.parametrize("device", DEVICES)
def test_two_batches_of_different_shapes_before_their_backward(device, monkeypatch):
    """Graphs share memory, so that the second batch is computed without one."""
    nets = with_graphs(device=device)
    if device == "cpu":
        share_memory(nets[1], monkeypatch)
    for net in nets:
        for words in BATCHES[:2]:
            loss_of(net, words).backward()  # both shapes are known
        losses = [loss_of(net, words) for words in BATCHES[:2]]
        for loss in losses:
            loss.backward()
    assert_equal(nets, device)


def test_one_batch_in_graphs_at_a_time():
    net = with_graphs()[1]
    losses = [loss_of(net, words) for words in BATCHES[:3]]
    assert len(net.decoder.graph_cache.graphs) == len(net.encoder.graph_cache.graphs) == 1
    sum(losses).backward()
    loss_of(net, BATCHES[1]).backward()
    assert len(net.decoder.graph_cache.graphs) == len(net.encoder.graph_cache.graphs) == 2


@pytest.mark.parametrize("later", [BATCHES[3], BATCHES[1]])  # of the same and of another shape
def test_a_second_backward_after_another_batch_is_refused(later):
    net = with_graphs()[1]
    loss = loss_of(net, BATCHES[0])
    loss.backward(retain_graph=True)
    once = gradients(net)["decoder.W_s"].clone()
    loss.backward(retain_graph=True)
    torch.testing.assert_close(gradients(net)["decoder.W_s"], 2 * once)
    loss_of(net, later)
    with pytest.raises(RuntimeError, match="graphs=False"):
        loss.backward()


def test_outputs_outlive_the_next_replay():
    net = with_graphs()[1]
    states = net.encoder(*BATCHES[0][:2])[0]
    before = states.detach().clone()
    detached = states.detach()
    del states
    net.encoder(*BATCHES[3][:2])
    assert torch.equal(detached, before)


def keep_all(monkeypatch):
    """Every graph that is made from here on, for as long as something else keeps it, too."""
    made = weakref.WeakSet()
    make_one = CapturedGraph.__init__
    monkeypatch.setattr(
        CapturedGraph, "__init__", lambda self, *given: (made.add(self), make_one(self, *given))[1]
    )
    return made


@pytest.mark.parametrize("device", DEVICES)
def test_nothing_is_captured_beyond_the_limit_and_nothing_dropped(device, monkeypatch):
    """The limit is of bytes: the second shape reaches it, the third is computed without a graph."""
    made = keep_all(monkeypatch)
    nets = with_graphs(device=device)
    cache = nets[1].decoder.graph_cache
    sizes = []
    third = batch((13, 4), (8, 2), seed=6)
    for words in (BATCHES[0], BATCHES[1], third, BATCHES[0], BATCHES[2]):
        for net in nets:
            net.zero_grad()
            loss_of(net, words).backward()
        assert_equal(nets, device)
        sizes.append((len(cache.graphs), cache.bytes))
        if len(sizes) == 1:
            cache.limit = cache.bytes + 1
    gc.collect()
    assert [number for number, _ in sizes] == [1, 2, 2, 2, 2]
    assert sizes[0][1] < sizes[1][1] == sizes[2][1] == sizes[4][1]
    assert set(cache.graphs.values()) < made
    assert len(made) == 2 + 3  # the encoder's own limit was not reached


def test_bytes_are_those_of_the_tensors_once():
    """8 bytes each: three inputs and their gradient, the output and its gradient."""
    cache = GraphCache(eager=True)
    inputs = [torch.ones(2, 3, dtype=torch.float64)]
    replay = cache.replay(
        lambda x: ((x * 2,), (x,)), lambda saved, upstream: (upstream[0] * 2,), inputs, [(2, 4)], 1
    )
    assert replay is not None
    assert cache.bytes == 4 * 8 * 8


def test_weights_are_kept_once():
    """And so is each input that has one shape in two graphs."""
    net = with_graphs()[1]
    for words in BATCHES[:2]:
        loss_of(net, words).backward()
    first, second = net.decoder.graph_cache.graphs.values()
    shared = [x is y for x, y in zip(first.inputs, second.inputs, strict=True)]
    # projected, initial, annotations, keys, from_state, U, C, mask
    assert shared == [False, True, False, False, True, True, True, False]


class Crash(RuntimeError):
    """What a capture ends in after an allocation in it has failed."""


@pytest.mark.parametrize("message", ["allocation", "capture", "driver"])
def test_out_of_memory_in_a_capture(message, monkeypatch, caplog):
    """Graphs are dropped, and training goes on without: equal gradients, one line of the log."""
    made = keep_all(monkeypatch)
    nets = with_graphs()
    loss_of(nets[1], BATCHES[0]).backward()
    kept = nets[1].encoder.graph_cache
    make_function = captured.EagerFunction.__init__

    def fail(self, function):
        make_function(self, function)
        if message == "driver":
            raise RuntimeError("CUDA error: out of memory")
        try:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        except torch.OutOfMemoryError:
            if message == "capture":
                raise Crash("operation failed due to a previous error during capture") from None
            raise

    monkeypatch.setattr(captured.EagerFunction, "__init__", fail)
    nets[1].encoder.graph_cache = GraphCache(eager=True)
    with caplog.at_level(logging.WARNING):
        for words in (BATCHES[1], BATCHES[0]):
            for net in nets:
                net.zero_grad()
                loss_of(net, words).backward()
            assert_equal(nets, "cpu")
    for part in (nets[1].encoder, nets[1].decoder):
        assert not part.graph_cache.graphs
        assert part.graph_cache.bytes == 0
    gc.collect()
    assert set(made) == set(kept.graphs.values())
    lines = [record.message for record in caplog.records]
    assert len(lines) == 2  # one for each recurrence
    assert all("out of memory" in line for line in lines)


def test_another_error_in_a_capture_is_raised(monkeypatch):
    def fail(self, function):
        raise Crash("an operation that is not permitted")

    monkeypatch.setattr(captured.EagerFunction, "__init__", fail)
    with pytest.raises(Crash) as raised:
        loss_of(with_graphs()[1], BATCHES[0])
    assert any("model.graphs=false" in note for note in raised.value.__notes__)


def test_deterministic_algorithms_fill_nothing_in_a_capture():
    """Lightning's `deterministic` has torch fill all new memory with NaN."""

    def forward(x):
        filled.append(deterministic.fill_uninitialized_memory)
        return (x * 2,), (x.new_empty(64),)

    def backward(saved, upstream):
        filled.append(deterministic.fill_uninitialized_memory)
        return (upstream[0] * 2,)

    filled = []
    torch.use_deterministic_algorithms(True)
    try:
        GraphCache(eager=True).replay(forward, backward, [torch.ones(3)], [(4,)], 1)
        assert filled[:2] == [False, False]
        assert deterministic.fill_uninitialized_memory
    finally:
        torch.use_deterministic_algorithms(False)


def test_a_copy_starts_without_graphs():
    net = with_graphs(limit=5)[1]
    loss_of(net, BATCHES[0]).backward()
    twin = copy.deepcopy(net)
    assert len(net.decoder.graph_cache.graphs) == 1
    assert len(twin.decoder.graph_cache.graphs) == 0
    assert twin.decoder.graph_cache.limit == 5


def test_off_without_a_gpu_unless_eager():
    net = make(recurrence="fused", graphs=True)
    loss_of(net, batch()).backward()
    assert len(net.decoder.graph_cache.graphs) == 0
    assert make(recurrence="fused").decoder.graph_cache is None


@pytest.mark.parametrize("device", DEVICES)
def test_bf16_autocast(device):
    """The same numbers as without a graph: the operations are the same."""
    nets = with_graphs(device=device, dtype=torch.float32)
    for net in nets:
        for words in BATCHES[:2]:
            with torch.autocast(device, torch.bfloat16):
                loss = loss_of(net, words)
            loss.backward()
    for found, expected in zip(*(gradients(net).values() for net in nets), strict=True):
        assert (found - expected).norm() <= 0.02 * expected.norm()
