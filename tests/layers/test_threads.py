"""What the number of threads changes in an update: nothing but the order of float32 sums."""

from __future__ import annotations

import pytest
import torch

from nmt.config import OptimizerConfig
from nmt.models.optimizer import make_optimizer
from tests.layers.nets import batch, make

SIZES = {"source": 700, "target": 900, "hidden": 64, "embedding": 40, "alignment": 72, "maxout": 48}
LENGTHS = ([9] * 24 + [4] * 8, [8] * 20 + [5] * 12)


@pytest.fixture
def update():
    """update(threads): weights after an update with that many threads, and its gradients."""

    def made(threads: int) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        torch.set_num_threads(threads)
        net = make(recurrence="fused", dtype=torch.float32, **SIZES)
        source, source_mask, target, target_mask = batch(*LENGTHS, sizes=SIZES)
        settings = OptimizerConfig("torch.optim.Adadelta", lr=1.0)
        optimizer = make_optimizer(net.parameters(), settings, 1)["optimizer"]
        teacher_forced = net.decoder(target, target_mask, net.encode(source, source_mask))
        loss, _ = net.output.loss(teacher_forced.readout, target, target_mask)
        loss.backward()
        optimizer.step()
        gradients = {name: weight.grad for name, weight in net.named_parameters()}
        return {name: weight.detach() for name, weight in net.named_parameters()}, gradients

    yield made
    torch.set_num_threads(1)


def test_an_update_does_not_depend_on_the_threads(update):
    one, two = update(1), update(2)
    for part in (0, 1):
        for name, value in one[part].items():
            apart = torch.linalg.norm(two[part][name] - value)
            assert apart <= 1e-5 * torch.linalg.norm(value), (part, name)


def test_the_same_number_of_threads_gives_the_same_bits(update):
    for threads in (1, 2):
        first, second = update(threads), update(threads)
        for part in (0, 1):
            for name, value in first[part].items():
                assert torch.equal(value, second[part][name]), (threads, name)
