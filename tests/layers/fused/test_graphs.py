"""GraphCache: padding them changes nothing, batches may come in any order, few shapes are kept.

On a CPU the same buffers are filled by computing; on a GPU by replaying CUDA graphs.
"""

import copy
import gc

import pytest
import torch

from nmt.layers.fused.graphs import MULTIPLE, GraphCache, cut, fill, rounded
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


def with_graphs(scoring="additive", device="cpu", limit=32, **options):
    """A fused net and its twin with a graph cache."""
    nets = [make(scoring, recurrence="fused", **options).to(device) for _ in range(2)]
    for part in (nets[1].encoder, nets[1].decoder):
        part.graph_cache = GraphCache(limit, eager=True)
    return nets


def loss_of(net, words):
    """Σ nll, each sentence with another weight."""
    nll, _ = net(*(part.to(net.output.bias.device) for part in words))
    return (nll * torch.arange(1, len(nll) + 1, device=nll.device).unsqueeze(1)).sum()


def tolerance(device):
    return {"rtol": 1e-9, "atol": 1e-10} if device == "cpu" else {"rtol": 1e-6, "atol": 1e-7}


def assert_equal(nets, device):
    torch.testing.assert_close(*map(gradients, reversed(nets)), **tolerance(device))


def test_rounding():
    assert [rounded(n) for n in (1, 4, 5, 50, 52)] == [4, 4, 8, 52, 52]
    assert MULTIPLE == 4


def test_fill_and_cut():
    buffer = torch.full((3, 4), 7.0)
    fill(buffer, torch.ones(2, 3))
    assert buffer.tolist() == [[1, 1, 1, 0], [1, 1, 1, 0], [0, 0, 0, 0]]
    copied = cut(buffer, (2, 3))
    buffer.zero_()
    assert copied.sum() == 6


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
    # one length for both sides: 8, 12, 8, 8 and, of two sentences, 8
    assert len(nets[1].decoder.graph_cache.graphs) == 3
    assert len(nets[1].encoder.graph_cache.graphs) == 3


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


def test_a_second_backward_after_another_batch_is_refused():
    net = with_graphs()[1]
    loss = loss_of(net, BATCHES[0])
    loss.backward(retain_graph=True)
    once = gradients(net)["decoder.W_s"].clone()
    loss.backward(retain_graph=True)
    torch.testing.assert_close(gradients(net)["decoder.W_s"], 2 * once)
    loss_of(net, BATCHES[3])
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


def test_least_recently_used_shape_is_dropped():
    net = with_graphs(limit=2)[1]

    def lengths_kept():
        return [place[0][0][0] + 1 for place in net.decoder.graph_cache.graphs]

    for lengths, kept in (((3,), [4]), ((7,), [4, 8]), ((2,), [8, 4]), ((11,), [4, 12])):
        loss_of(net, batch(lengths, (1,))).backward()
        assert lengths_kept() == kept


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
