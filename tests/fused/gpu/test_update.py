"""Lightning's updates on a simulated GPU that records launches (`tests.fused.gpu.fake_cuda`)."""

from __future__ import annotations

from collections import Counter
from functools import partial
from importlib.util import find_spec
from unittest.mock import patch

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.accelerators import CPUAccelerator
from pytorch_lightning.plugins.precision import MixedPrecision

from nmt.config.loading import load
from nmt.data.batch import collate
from nmt.data.module import TranslationData
from nmt.fused import backend_of
from nmt.models import build_model
from nmt.training.callbacks import Seeds
from nmt.training.trainer import make_trainer
from nmt.training.training_log import TrainingRecord
from tests.fused.gpu.fake_cuda import GPU, fake_cuda

if not torch.backends.cuda.is_built() or find_spec("triton") is None:
    pytest.skip("needs PyTorch built with CUDA, and Triton, but no GPU", allow_module_level=True)


class Host(CPUAccelerator):
    def setup_device(self, device):
        """Does nothing."""


class Updates(pl.Callback):
    """Records what is launched between the ends of consecutive updates."""

    def __init__(self, launches):
        self.launches = launches
        self.made = []

    def on_train_start(self, trainer, pl_module):
        self.launches.take()

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        assert all(parameter.grad is not None for parameter in pl_module.parameters())
        self.made.append(self.launches.take())


class Loader:
    """Iterates over batches in order. As in training, the loader has no length."""

    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        return iter(self.batches)


def updates(composer, folder, *typed, sizes, experiment="rnnsearch50", log_every=1000):
    """Returns the launches of each update at the paper's sizes, in bf16."""
    config = load(
        composer(
            f"+experiment={experiment}", "size=paper", "logger=none", "optimizer=adadelta",
            f"trainer.max_steps={len(sizes)}", f"trainer.log_every_n_steps={log_every}",
            "trainer.val_check_interval=1000", "trainer.accelerator=cpu", *typed,
        )
    )  # fmt: skip
    with fake_cuda() as launches:
        with GPU:
            model = build_model(config, 30000, 30000)
            model.finite = torch.tensor(True)
        backend_of(model.network).verify = lambda device: True
        move = partial(TranslationData.transfer_batch_to_device, None)
        model.transfer_batch_to_device = move
        made = Updates(launches)
        trainer = make_trainer(
            config.trainer, folder, [Seeds(config.seed), TrainingRecord(), made], []
        )
        strategy = trainer.strategy
        strategy._root_device = GPU
        strategy.accelerator = Host()
        strategy.precision_plugin = MixedPrecision("bf16-mixed", "cuda")
        strategy.model_to_device = strategy.teardown = lambda: None
        batches = [
            collate([[0] * source] * rows, [[0] * target] * rows) for rows, source, target in sizes
        ]
        with patch.object(torch.nn.Module, "to", lambda module, *_: module):
            trainer.fit(model, Loader(batches))
    assert len(made.made) == len(sizes)
    return made.made


@pytest.mark.parametrize(
    ("experiment", "typed", "graphs"),
    [
        ("rnnsearch50", ["model.graphs=false", "scoring=dot", "model.dropout=0.2"], 0),
        ("rnnencdec50", ["optimizer=adam", "model.dropout=0.2"], 1),
    ],
)
def test_an_update_never_waits(experiment, typed, graphs, composer, tmp_path):
    """The CPU reads nothing from the GPU, and all copies are asynchronous."""
    for made in updates(composer, tmp_path, *typed, experiment=experiment, sizes=((6, 3, 2),) * 2):
        assert made.blocking == []
        assert made.graphs == graphs


def test_the_cpu_reads_from_the_gpu_only_to_log(composer, tmp_path):
    """The CPU reads the logged values after updates 3 and 6, and at no other update."""
    made = updates(composer, tmp_path, sizes=((6, 3, 2),) * 8, log_every=3)
    assert [len(each.blocking) for each in made] == [0, 0, 4, 0, 0, 4, 0, 0]


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        (8, (70, 360, 1, 2200, 3600)),
        pytest.param(30, (70, 910, 1, 2200, 8600), marks=pytest.mark.slow),
    ],
)
def test_the_length_of_an_update(words, allowed, composer, tmp_path):
    """Limits the kernels and the memory traffic of an update, since both cost time.

    `allowed` limits the numbers of kernels launched by the CPU, of kernels in graphs, and of graph replays.
    Its last two numbers limit the memory traffic (in MiB) of the CPU's kernels and of the graphs. The batch
    has 80 sentences of 8 or 30 words. All captures use one memory pool and the stream of the warm-ups.
    """
    sizes = ((80, words, words), (80, words - 1, words - 1), (6, 3, 2))
    first, made, other = updates(composer, tmp_path, sizes=sizes)
    assert made.captures == made.warm_ups == made.blocking == []
    assert first.captures == other.captures
    assert [stream for stream, _ in first.captures] == first.warm_ups
    found = (
        len(made.by_cpu), len(made.in_graphs), made.graphs,
        sum(launch.bytes for launch in made.by_cpu) / 2**20,
        sum(launch.bytes for launch in made.in_graphs) / 2**20,
    )  # fmt: skip
    assert all(x <= limit for x, limit in zip(found, allowed, strict=True)), (
        found, Counter(launch.name for launch in made.by_cpu),
    )  # fmt: skip
