"""GraphCache: padding changes nothing, batches may come in any order, memory has a limit.

On a CPU the same buffers are filled by computing; on a GPU by replaying CUDA graphs.
"""

import copy
import gc
import logging
import weakref

import pytest
import torch

from nmt.fused.gpu import captured
from nmt.fused.gpu.captured import CapturedGraph, cut, fill
from nmt.fused.gpu.graphs import GraphCache
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


def test_fill_and_cut():
    buffer = torch.full((3, 4), 7.0)
    fill(buffer, torch.ones(2, 3))
    assert buffer.tolist() == [[1, 1, 1, 0], [1, 1, 1, 0], [0, 0, 0, 0]]
    copied = cut(buffer, (2, 3))
    buffer.zero_()
    assert copied.sum() == 6


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
