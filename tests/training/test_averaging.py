"""Averages of the weights against those taken by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import EMAWeightAveraging

from nmt.config.validation import load
from nmt.training.averaging import ExponentialMovingAverage, StochasticWeightAveraging
from nmt.training.callbacks import make_callbacks

UPDATES = 12


class Line(pl.LightningModule):
    """y = a x; the weight after each update, and the one that each validation sees."""

    def __init__(self, keep: Path | None) -> None:
        super().__init__()
        self.register_buffer("batches", torch.tensor(0))
        self.keep = keep
        self.a = torch.nn.Parameter(torch.tensor(0.5, dtype=torch.float64))
        self.weights: dict[int, float] = {}
        self.validated: dict[int, float] = {}

    def training_step(self, batch, index):
        self.batches += 1
        return (self.a * batch - 3).square().mean()

    def on_train_batch_end(self, outputs, batch, batch_idx):
        self.weights[self.trainer.global_step] = self.a.item()
        if self.keep and self.trainer.global_step == self.trainer.max_steps:
            self.trainer.save_checkpoint(self.keep)

    def validation_step(self, batch, index):
        self.validated[self.trainer.global_step] = self.a.item()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)

    def train_dataloader(self):
        return torch.utils.data.DataLoader(torch.arange(1.0, 25.0).double() % 5, batch_size=1)

    def val_dataloader(self):
        return torch.utils.data.DataLoader(torch.ones(1), batch_size=1)


def fit(
    average: pl.Callback, updates: int, path: Path | None = None, keep: Path | None = None
) -> Line:
    """Trained from the checkpoint `path`; another is kept after the last update."""
    trainer = pl.Trainer(
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[average],
        max_steps=updates,
        max_epochs=-1,
        accumulate_grad_batches=2,
        val_check_interval=2,
        num_sanity_val_steps=0,
    )
    model = Line(keep)
    trainer.fit(model, ckpt_path=path, weights_only=True)
    return model


def expected(weights: dict[int, float], first: int, every: int, update: int) -> float:
    """The mean at an update, of the weights after each update."""
    if update <= first:
        return weights[update]
    taken = [weights[each] for each in range(first, update + 1, every)]
    return sum(taken) / len(taken)


@pytest.mark.parametrize(("start", "first"), [(5, 5), (0.5, 6), (1, 1), (0.01, 1), (40, 40)])
@pytest.mark.parametrize("every", [1, 3])
def test_the_mean_of_the_weights_is_validated_and_kept(start, first, every):
    average = StochasticWeightAveraging(start=start, every=every)
    model = fit(average, UPDATES)
    assert len(set(model.weights.values())) == UPDATES + 1  # from before the first one on
    assert sorted(model.validated) == list(range(1, UPDATES + 1))
    for update, seen in model.validated.items():
        wanted = expected(model.weights, first, every, update)
        assert seen == pytest.approx(wanted, rel=1e-12), update
    assert model.a.item() == model.validated[UPDATES]


def moving_average(weights: dict[int, float], decay: float) -> float:
    average = weights[1]
    for update in range(2, UPDATES + 1):
        average = decay * average + (1 - decay) * weights[update]
    return average


def test_the_moving_average():
    """By hand and as Lightning's own; buffers that are no real numbers are copied."""
    average = ExponentialMovingAverage(decay=0.75)
    model = fit(average, UPDATES)
    reference = fit(EMAWeightAveraging(decay=0.75), UPDATES)
    assert model.weights == reference.weights
    assert model.validated == pytest.approx(reference.validated, rel=1e-12)
    assert model.a.item() == pytest.approx(moving_average(model.weights, 0.75), rel=1e-12)
    assert model.batches == 2 * UPDATES
    assert average._average_model.n_averaged == UPDATES


def test_a_moving_average_goes_on_where_it_stopped(tmp_path):
    first = fit(ExponentialMovingAverage(decay=0.75), 6, keep=tmp_path / "a.ckpt")
    second = fit(ExponentialMovingAverage(decay=0.75), UPDATES, tmp_path / "a.ckpt")
    wanted = moving_average(first.weights | second.weights, 0.75)
    assert second.a.item() == pytest.approx(wanted, rel=1e-12)


def test_what_is_resumed_has_the_start_of_the_first_part(tmp_path):
    """Six updates, of which the last three are averaged, and twelve from there."""
    first = fit(StochasticWeightAveraging(start=0.5), 6, keep=tmp_path / "a.ckpt")
    stored = torch.load(tmp_path / "a.ckpt", weights_only=True)
    assert stored["state_dict"]["a"] == first.validated[6]
    average = StochasticWeightAveraging(start=0.5)
    second = fit(average, UPDATES, tmp_path / "a.ckpt")
    assert average.first == 3
    weights = first.weights | second.weights
    assert second.a.item() == pytest.approx(expected(weights, 3, 1, UPDATES), rel=1e-12)


def test_it_is_an_option(composer):
    [average] = make_callbacks(load(composer("callbacks=swa", "callbacks.swa.every=4")))
    assert isinstance(average, StochasticWeightAveraging)
    assert (average.start, average.every) == (0.75, 4)
