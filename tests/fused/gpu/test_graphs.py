"""CUDA graphs give the same losses as the plain equations, for all shapes, batch orders and ranks.

On a CPU a replay runs the operations again, on the buffers that a GPU graph would use.
"""

import copy

import pytest
import torch
import torch.multiprocessing
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from nmt.fused.gpu.graphs import LossGraphs, pad_batch
from tests.layers.nets import ON_GPU, batch, gradients, make

DEVICES = ["cpu", ON_GPU]
SHAPES = [  # ten shapes after padding, which makes the first and the fifth equal
    ((6, 1, 4), (2, 5, 3)),
    ((3, 3, 2), (9, 4, 1)),
    ((5, 2, 7), (1, 1, 1)),
    ((4, 12), (8, 2)),
    ((7, 5, 4), (4, 6, 3)),
    ((1,), (1,)),
    ((2, 9), (17, 4)),
    ((13,) * 9, (3,) * 9),
    ((4,) * 8, (16,) * 8),
    ((20, 1), (1, 20)),
    ((5,) * 17, (6,) * 17),
]
BATCHES = [batch(*shape, seed=i) for i, shape in enumerate(SHAPES)]


def rehearsed():
    return LossGraphs(rehearse=True)


def learn(net, graphs, words):
    words = tuple(part.to(net.device) for part in words)
    loss = net.loss(*words) if graphs is None else graphs.loss(net, words)
    (loss / len(words[0])).backward()
    return loss.detach()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "scoring",
    [
        "additive",
        pytest.param("dot", marks=pytest.mark.slow),
        pytest.param("none", marks=pytest.mark.slow),
    ],
)
def test_graphs_equal_plain_gradients_over_ten_shapes(scoring, device):
    plain, fused = (make(scoring, recurrence=name).to(device) for name in ("plain", "fused"))
    graphs = rehearsed()
    for words in (*BATCHES, *BATCHES[:3]):
        losses = []
        for net, way in ((plain, None), (fused, graphs)):
            net.zero_grad()
            losses.append(learn(net, way, words))
        torch.testing.assert_close(losses[1], losses[0], rtol=1e-10, atol=1e-10)
        for name, gradient in gradients(plain).items():
            expected = torch.zeros_like(gradients(fused)[name]) if gradient is None else gradient
            torch.testing.assert_close(gradients(fused)[name], expected, rtol=1e-9, atol=1e-10)
    assert len(graphs.graphs) == 10


def test_graphs_draw_the_dropout_of_the_padded_batch():
    """With the same seed, a graph gives the same loss as the padded batch without a graph."""
    nets = [make(recurrence="fused").train() for _ in range(2)]
    for part in (part for net in nets for part in net.modules() if isinstance(part, nn.Dropout)):
        part.p = 0.4
    graphs = rehearsed()
    found = []
    for words in (BATCHES[0], BATCHES[1], BATCHES[0]):
        losses = []
        for net, way in ((nets[0], None), (nets[1], graphs)):
            net.zero_grad()
            torch.manual_seed(3)
            losses.append(learn(net, way, words if way else pad_batch(*words)))
        found.append(losses[1])
        torch.testing.assert_close(losses[1], losses[0])
        drawn = gradients(nets[0])
        for name, gradient in gradients(nets[1]).items():
            # `learn` divides by the number of sentences, which padding increases.
            share = -(-len(words[0]) // 8) * 8 / len(words[0])
            torch.testing.assert_close(gradient, drawn[name] * share)
    assert found[0] == found[2]
    assert found[0] != make(recurrence="fused").loss(*BATCHES[0])


@pytest.mark.parametrize("device", DEVICES)
def test_graphs_accumulate_gradients_across_a_validation(device):
    nets = [make(recurrence="fused").to(device) for _ in range(2)]
    graphs = rehearsed()
    for words in (BATCHES[0], BATCHES[4], BATCHES[1]):
        for net, way in ((nets[0], None), (nets[1], graphs)):
            with torch.no_grad():
                way and way.loss(net, tuple(part.to(device) for part in BATCHES[3]))
            learn(net, way, words)
    torch.testing.assert_close(*map(gradients, nets), rtol=1e-9, atol=1e-10)
    assert len(graphs.graphs) == 2


def test_refuses_a_backward_pass_after_a_later_batch():
    net = make(recurrence="fused")
    graphs = rehearsed()
    first = graphs.loss(net, BATCHES[0])
    graphs.loss(net, BATCHES[4])
    with pytest.raises(RuntimeError, match=r"model\.graphs=false"):
        first.backward()


def test_graphs_are_captured_again_for_other_weights():
    net = make(recurrence="fused")
    graphs = rehearsed()
    learn(net, graphs, BATCHES[0])
    twin = copy.deepcopy(graphs)
    assert (len(graphs.graphs), len(twin.graphs), twin.rehearse) == (1, 0, True)
    net.output.W_o.data = net.output.W_o.data * 2
    net.encoder.requires_grad_(False)
    net.zero_grad()
    found = learn(net, graphs, BATCHES[0])
    expected = copy.deepcopy(net)
    expected.zero_grad()
    torch.testing.assert_close(found, learn(expected, None, BATCHES[0]))
    torch.testing.assert_close(gradients(net), gradients(expected))
    assert len(graphs.graphs) == 1


@pytest.mark.parametrize("device", DEVICES)
def test_graphs_in_bf16_use_the_current_weights(device):
    """A replay casts the current weights. It does not reuse weights that were cast at the capture."""
    nets = [make(recurrence="fused", dtype=torch.float32).to(device) for _ in range(2)]
    graphs = rehearsed()
    for _ in range(3):
        for net, way in ((nets[0], None), (nets[1], graphs)):
            net.zero_grad()
            with torch.autocast(device, torch.bfloat16):
                learn(net, way, pad_batch(*BATCHES[0]))
            with torch.no_grad():
                for parameter in net.parameters():
                    parameter -= 0.1 * parameter.grad
    torch.testing.assert_close(*(dict(net.named_parameters()) for net in nets))


class Step(nn.Module):
    def __init__(self, net, graphs):
        super().__init__()
        self.net = net
        self.graphs = graphs

    def forward(self, *words):
        return self.graphs.loss(self.net, words)


def rank(number, address, folder):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=address, rank=number, world_size=2)
    net = make(recurrence="fused")
    step = DistributedDataParallel(Step(net, rehearsed()), gradient_as_bucket_view=True)
    rule = torch.optim.SGD(net.parameters(), lr=0.01)
    for words in BATCHES[:5]:
        share = tuple(part[number::2] for part in words)
        step(*share).backward()
        rule.step()
        rule.zero_grad()
    torch.save(net.state_dict(), f"{folder}/{number}")
    torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_graphs_on_two_ranks_equal_one_rank(tmp_path):
    address = f"file://{tmp_path}/store"
    torch.multiprocessing.start_processes(rank, (address, tmp_path), 2, start_method="fork")
    net = make(recurrence="fused")
    rule = torch.optim.SGD(net.parameters(), lr=0.01)
    for words in BATCHES[:5]:
        (net.loss(*words) / 2).backward()  # DDP averages gradients over ranks
        rule.step()
        rule.zero_grad()
    for number in range(2):
        found = torch.load(tmp_path / str(number), weights_only=True)
        torch.testing.assert_close(found, net.state_dict(), rtol=1e-9, atol=1e-10)
