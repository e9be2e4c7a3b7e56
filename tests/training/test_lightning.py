"""What `nmt.training.lightning` takes of Lightning's inner parts is there, and is what it was."""

from __future__ import annotations

import inspect

import pytest
import pytorch_lightning as pl
import torch
from lightning_fabric.strategies.launchers.subprocess_script import _ChildProcessObserver
from pytorch_lightning.callbacks import EMAWeightAveraging
from pytorch_lightning.loggers import WandbLogger
from pytorch_lightning.loops.training_epoch_loop import _TrainingEpochLoop
from pytorch_lightning.strategies import DDPStrategy
from pytorch_lightning.strategies.launchers.subprocess_script import _SubprocessScriptLauncher
from pytorch_lightning.trainer import call
from pytorch_lightning.trainer.connectors.signal_connector import _SignalConnector
from pytorch_lightning.utilities.rank_zero import rank_zero_only

from nmt.config import TrainerConfig
from nmt.training.lightning import (
    accumulating,
    average_on_the_device,
    complete_loops,
    forget_wandb_run,
    has_wandb_run,
    leave_signals_alone,
    on_every_rank,
    wandb_settings,
)
from nmt.training.trainer import strategy

QUIET = {
    "logger": False,
    "accelerator": "cpu",
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}


class Line(pl.LightningModule):
    """y = a x, and what it saw of Lightning's state in each micro-batch."""

    def __init__(self) -> None:
        super().__init__()
        self.a = torch.nn.Parameter(torch.tensor(0.5))
        self.accumulated: list[bool] = []

    def training_step(self, batch, index):
        return (self.a * batch - 3).square().mean()

    def on_train_batch_end(self, outputs, batch, batch_idx):
        self.accumulated.append(accumulating(self.trainer))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)

    def train_dataloader(self):
        return torch.utils.data.DataLoader(torch.arange(1.0, 7.0), batch_size=1)


@pytest.fixture(scope="module")
def fitted():
    trainer = pl.Trainer(**QUIET, max_steps=2, accumulate_grad_batches=3, max_epochs=-1)
    model = Line()
    trainer.fit(model)
    return trainer, model


def test_the_last_micro_batch_of_an_update_is_known(fitted):
    _, model = fitted
    assert model.accumulated == [True, True, False] * 2


def test_the_counts_of_a_checkpoints_loops_are_where_they_are_set(fitted, tmp_path):
    trainer, _ = fitted
    trainer.save_checkpoint(tmp_path / "a.ckpt")
    content = torch.load(tmp_path / "a.ckpt", weights_only=True)
    loop = content["loops"]["fit_loop"]
    for count in ("total", "current"):
        assert set(loop["epoch_loop.batch_progress"][count]) == {
            *("ready", "started", "processed", "completed")
        }
    assert loop["epoch_loop.state_dict"]["_batches_that_stepped"] == 2
    trainer.val_check_interval = 5
    complete_loops(content, trainer)
    assert set(loop["epoch_loop.batch_progress"]["current"].values()) == {6}
    assert loop["epoch_loop.state_dict"]["_batches_that_stepped"] == 2
    trainer.val_check_interval = 6  # a validation was made at this update
    complete_loops(content, trainer)
    assert loop["epoch_loop.state_dict"]["_batches_that_stepped"] == 1
    assert "_batches_that_stepped" in inspect.getsource(_TrainingEpochLoop.on_load_checkpoint)


def test_work_on_every_rank_is_done_as_a_test_is(fitted):
    trainer, model = fitted
    model.train()

    def work():
        assert not model.training
        assert not torch.is_grad_enabled()
        return model.a.item() * 2

    assert on_every_rank(trainer, model, work) == pytest.approx(2 * model.a.item())
    assert model.training
    source = inspect.getsource(call._call_and_handle_interrupt)
    assert "trainer.strategy.launcher.launch(trainer_fn, *args, trainer=trainer" in source


def test_products_are_made_in_the_trainers_precision():
    trainer, model = pl.Trainer(**QUIET, precision="bf16-mixed"), Line()
    product = on_every_rank(trainer, model, lambda: torch.ones(2, 2) @ torch.ones(2, 2))
    assert product.dtype == torch.bfloat16


def test_lightning_leaves_the_signal_handlers_alone():
    import signal

    trainer = pl.Trainer(**QUIET, max_steps=1)
    assert isinstance(trainer._signal_connector, _SignalConnector)
    leave_signals_alone(trainer)
    before = signal.getsignal(signal.SIGTERM)
    trainer._signal_connector.register_signal_handlers()
    assert signal.getsignal(signal.SIGTERM) is before
    loop = trainer.fit_loop.epoch_loop
    assert "self._broadcast_sigterm_tensor()" in inspect.getsource(type(loop).advance)
    assert loop._broadcast_sigterm_tensor() is None
    assert "_broadcast_sigterm_tensor" in vars(loop)


def test_averaged_weights_are_kept_where_the_model_is_trained(monkeypatch):
    """Lightning's callback makes them before the model is moved to the device."""
    average = EMAWeightAveraging()
    trainer, model = pl.Trainer(**QUIET, callbacks=[average]), Line()
    monkeypatch.setattr(type(trainer.strategy), "root_device", torch.device("meta"))
    average_on_the_device(trainer)
    average.setup(trainer, model, "fit")
    assert {each.device.type for each in average._average_model.parameters()} == {"meta"}


def test_what_the_ranks_of_several_machines_wait_for_is_said(monkeypatch, caplog):
    met = []
    monkeypatch.setattr(rank_zero_only, "rank", 0)  # it is set for the rest of the process
    monkeypatch.setattr(DDPStrategy, "setup_distributed", lambda each: met.append(each))
    for name, value in (("MASTER_ADDR", "first"), ("MASTER_PORT", "1234"), ("NODE_RANK", "1")):
        monkeypatch.setenv(name, value)
    meeting = strategy(TrainerConfig(devices=4, num_nodes=2))
    trainer = pl.Trainer(**QUIET, devices=4, num_nodes=2, strategy=meeting)
    with caplog.at_level("INFO"):
        trainer.strategy.setup_distributed()
    said = "rank 4 waits for the others of 8 at first:1234, for at most 30 minutes"
    assert said in caplog.messages
    assert met == [trainer.strategy]


def test_wandbs_settings_are_where_they_are_changed(tmp_path):
    logger = WandbLogger(save_dir=tmp_path, offline=True, project="p", id="i")
    assert wandb_settings(logger)["project"] == "p"
    source = inspect.getsource(WandbLogger.experiment.fget)
    assert "wandb.init(**self._wandb_init)" in source
    assert "if self._experiment is None" in source
    assert not has_wandb_run(logger)
    logger._experiment = object()
    assert has_wandb_run(logger)
    forget_wandb_run(logger)
    assert not has_wandb_run(logger)


def test_ranks_are_started_and_watched_as_is_known():
    assert "self.procs" in inspect.getsource(_SubprocessScriptLauncher._call_children_scripts)
    assert _ChildProcessObserver(main_pid=0, child_processes=[])._run()  # it has nothing to watch
    assert "_configure_launcher" in vars(DDPStrategy)
    for name in ("_get_process_group_backend", "set_world_ranks", "setup_distributed"):
        assert callable(getattr(DDPStrategy, name))
    assert "_timeout" in inspect.signature(DDPStrategy).parameters or hasattr(
        DDPStrategy(), "_timeout"
    )
