"""An update as Lightning makes it, on a GPU that computes nothing: see `tests.helpers.fake_cuda`."""

from __future__ import annotations

from importlib.util import find_spec
from unittest.mock import patch

import pytest
import pytorch_lightning as pl
import torch
from nmt.training.checkpoint_folder import CheckpointFolder
from nmt.training.checkpoints import Checkpoints, Seeds
from nmt.training.progress import Progress
from pytorch_lightning.accelerators import CPUAccelerator
from pytorch_lightning.plugins.precision import MixedPrecision

from nmt.config.validation import load
from nmt.data.batch import Batch
from nmt.models import build_model
from nmt.training.callbacks import make_callbacks
from nmt.training.signals import Stop
from nmt.training.trainer import make_trainer
from nmt.utils.progress import TimeLeft
from tests.helpers.fake_cuda import GPU, Launches, fake_cuda

if not torch.backends.cuda.is_built() or find_spec("triton") is None:
    pytest.skip("needs a torch with CUDA and Triton, though no device", allow_module_level=True)

VOCABULARY = 30000


class Host(CPUAccelerator):
    def setup_device(self, device):
        """Nothing to set up."""


class Updates(pl.Callback):
    """What each update launched, from the end of the one before: its batch included."""

    def __init__(self, launches):
        self.launches = launches
        self.made = []

    def on_train_start(self, trainer, pl_module):
        self._take()

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        assert all(parameter.grad is not None for parameter in pl_module.parameters())
        self.made.append(self._take())

    def _take(self):
        taken = Launches()
        for name, value in vars(taken).items():
            if type(value) in (int, list):
                setattr(taken, name, getattr(self.launches, name))
                setattr(self.launches, name, type(value)())
        return taken


class Loader:
    """Batches in their order, their number not told in advance, as in a training."""

    def __init__(self, batches):
        self.batches = list(batches)

    def __iter__(self):
        return iter(self.batches)


def batch(sentences, source, target):
    words = [torch.zeros(sentences, length, dtype=torch.int64) for length in (source, target)]
    masks = [torch.ones(part.shape, dtype=torch.bool) for part in words]
    return Batch(
        words[0], masks[0], words[1], masks[1], torch.zeros(sentences, dtype=torch.int64),
        torch.ones(()), torch.zeros((), dtype=torch.int64),
    )  # fmt: skip


def updates(composer, folder, *typed, experiment="rnnsearch50", sizes=((80, 30, 30),) * 2):
    """The launches of each update at the paper's sizes, in bf16, with the callbacks of a run."""
    config = load(
        composer(
            f"+experiment={experiment}", "size=paper", "logger=none", "trainer.enable_progress_bar=false",
            "model.recurrence=fused", f"trainer.max_steps={len(sizes)}", "trainer.log_every_n_steps=1000",
            "trainer.val_check_interval=1000", "optimizer=adadelta", "trainer.accelerator=cpu", *typed,
        )
    )  # fmt: skip
    with fake_cuda() as launches:
        with GPU:
            model = build_model(config, VOCABULARY, VOCABULARY)
            model.gradient_norm, model.finite = torch.tensor(0.0), torch.tensor(True)
        made = Updates(launches)
        stop = Stop(folder)
        callbacks = [
            Seeds(config.seed),
            Progress(
                show=False,
                every=config.trainer["log_every_n_steps"],
                left=TimeLeft({}),
                validated=0,
            ),
            Checkpoints(CheckpointFolder(folder), config, stop),
            *make_callbacks(config),
            made,
        ]
        trainer = make_trainer(config, folder, callbacks, None)
        strategy = trainer.strategy
        strategy._root_device, strategy.accelerator = GPU, Host()
        strategy.precision_plugin = MixedPrecision("bf16-mixed", "cuda")
        strategy.model_to_device = strategy.teardown = lambda: None
        sizes = [size for size in sizes for _ in range(config.trainer["accumulate_grad_batches"])]
        there = patch.object(torch.nn.Module, "to", lambda module, *_: module)
        with there:
            trainer.fit(model, Loader(batch(*size) for size in sizes))
    assert len(made.made) == len(sizes)
    return made.made


@pytest.mark.parametrize(
    ("experiment", "typed"),
    [
        ("rnnsearch50", ["optimizer=adam", "model.dropout=0.2"]),
        ("rnnsearch50", ["model.graphs=false", "scoring=dot", "trainer.accumulate_grad_batches=2"]),
        ("rnnencdec50", ["model.dropout=0"]),
        ("rnnsearch50", ["model.graphs=false", "callbacks=ema"]),
        ("rnnsearch50", ["model.graphs=false", "callbacks=swa", "callbacks.swa.start=1"]),
    ],
)
def test_an_update_never_waits(experiment, typed, composer, tmp_path):
    """Nothing is read by the CPU, tensors are where they meet, and all copies are queued.

    Seven are of a batch, one of the addresses of what Adadelta moves, once one of its blocks.
    """
    sizes = ((6, 4, 3), (6, 3, 4))
    moves = []
    for made in updates(composer, tmp_path, *typed, experiment=experiment, sizes=sizes):
        assert made.blocking == []
        assert made.counts()["lookup_backward_kernel"] == 2
        moves.append(made.counts()["adadelta_kernel"])
        assert made.copies == 7 + moves[-1] + (moves[-1] and sum(moves) == 1)
    accumulate = 2 if "trainer.accumulate_grad_batches=2" in typed else 1
    every = [int((batch + 1) % accumulate == 0) for batch in range(len(moves))]
    assert moves == ([0] * len(moves) if "optimizer=adam" in typed else every)
    assert made.graphs == (0 if "model.graphs=false" in typed else 4)


def test_the_length_of_an_update(composer, tmp_path):
    """Kernels that the CPU launches, kernels in graphs, and what they all read and write.

    One batch of 80 sentences of 30 words, in bf16, with Adadelta. Whoever needs less writes the
    smaller number here; a larger one is a change that costs time at every update.
    """
    (_, made) = updates(composer, tmp_path)
    by_cpu = [launch for launch in made.all if not launch.graph]
    in_graphs = [launch for launch in made.all if launch.graph]
    found = (
        len(by_cpu), len(in_graphs), made.graphs,
        sum(launch.bytes for launch in by_cpu) / 2**20,
        sum(launch.bytes for launch in in_graphs) / 2**20,
    )  # fmt: skip
    allowed = (204, 466, 4, 5222, 3920)
    assert all(x <= limit for x, limit in zip(found, allowed, strict=True)), (
        found, made.counts().most_common(),
    )  # fmt: skip


def test_captures(composer, tmp_path):
    """Each recurrence has one stream, for warm-ups and captures of all its shapes, and one pool."""
    first, again, other = updates(composer, tmp_path, sizes=((6, 3, 2), (6, 4, 4), (6, 7, 3)))
    assert again.captures == again.warm_ups == []
    for made in (first, other):
        assert [stream for stream, _ in made.captures[::2]] == made.warm_ups
        assert made.captures[::2] == made.captures[1::2]  # forward and backward
        assert len({pool for _, pool in made.captures}) == 2
    assert first.captures == other.captures


class Wrong:
    """What an update must not do."""

    def item(self, x):
        return x.sum().item()

    def count(self, x):
        return x.nonzero()

    def meet(self, x):
        return x + torch.ones(3)


@pytest.mark.parametrize("name", ["item", "count", "meet"])
def test_what_waits_raises(name):
    with fake_cuda(), pytest.raises(Exception, match=r"_local_scalar|nonzero|devices"):
        getattr(Wrong(), name)(torch.ones(3, device=GPU))


def test_blocking_copies_are_seen():
    with fake_cuda() as launches:
        torch.ones(3).to(GPU, non_blocking=True)
        assert launches.blocking == []
        torch.ones(3).to(GPU)
        torch.tensor([1, 2], device=GPU)
        torch.ones(3, device=GPU).cpu()
        torch.empty(3, device=GPU).copy_(torch.ones(3))
    assert len(launches.blocking) == 4
