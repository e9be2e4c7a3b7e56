"""The sections `trainer`, `callbacks` and `logger` of the configuration."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lightning_fabric
import pytest
import pytorch_lightning as pl
import torch
import wandb
from pytorch_lightning.callbacks import EarlyStopping, EMAWeightAveraging, ModelCheckpoint
from pytorch_lightning.loggers import CSVLogger, WandbLogger
from wandb.errors import CommError

from nmt.config.loading import load
from nmt.training import callbacks
from nmt.training.callbacks import CheckMonitors, Seeds
from nmt.training.loggers import connect, make_loggers
from nmt.training.run import is_asked_for
from nmt.training.trainer import make_callbacks, make_trainer
from nmt.training.training_log import stop_reason
from nmt.utils.errors import InputError

TYPED = ("regime=tiny", "trainer=cpu")


@pytest.mark.parametrize(
    "monitor", ["step", "epoch", "lr-Adadelta", "train/loss", "valid/loss", None]
)
def test_monitors_may_be_any_name_lightning_knows(monitor: str | None) -> None:
    trainer: Any = SimpleNamespace(callback_metrics={"valid/loss": torch.tensor(1.0)})
    check = CheckMonitors({"best": {"monitor": monitor}, "wrong": {"monitor": "valid/los"}})
    with pytest.raises(InputError, match=r"callbacks\.wrong\.monitor=valid/los: .* valid/loss"):
        check.on_sanity_check_end(trainer, trainer)


def test_trainer_gets_lightnings_arguments(composer, tmp_path):
    config = load(
        composer(
            *TYPED,
            "trainer.max_steps=7",
            "trainer.accumulate_grad_batches=3",
            "trainer.max_epochs=2",
            "trainer.val_check_interval=6",
            "trainer.precision=bf16-mixed",
            "+trainer.limit_val_batches=2",
            "trainer.gradient_clip_val=0.5",
        )
    )
    trainer = make_trainer(config.trainer, tmp_path)
    assert (trainer.max_steps, trainer.max_epochs, trainer.accumulate_grad_batches) == (7, 2, 3)
    assert (trainer.val_check_interval, trainer.limit_val_batches) == (6, 2)
    assert (trainer.precision, trainer.gradient_clip_val) == ("bf16-mixed", 0.5)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("trainer.max_steps=null", r"trainer\.max_steps=None: must be int"),
        ("trainer.log_every_n_steps=0", r"trainer\.log_every_n_steps=0: must be at least 1"),
        ("trainer.precision=17", r"trainer: "),
        ("trainer.accumulate_grad_batches=4", r"trainer\.val_check_interval=6: must be a multiple"),
        (
            "+callbacks.model_checkpoint.monitor=valid/bleu",
            r"callbacks\.model_checkpoint: there are callbacks\.best and callbacks\.last; to add",
        ),
        ("+callbacks.mine._target_=nowhere.Mine", r"callbacks\.mine\._target_=nowhere\.Mine: "),
        ("+callbacks.mine._target_=torch.nn.Identity", r".*: not a Callback"),
    ],
)
def test_refuses_wrong_trainer_and_callback_keys(composer, tmp_path, typed, said):
    def make(config):
        make_trainer(config.trainer, tmp_path)
        make_callbacks(config.callbacks, tmp_path)

    with pytest.raises(InputError, match=f"^{said}"):
        make(load(composer(*TYPED, typed)))


def test_callbacks_keep_best_and_last_checkpoint(composer, tmp_path):
    best, last = make_callbacks(load(composer(*TYPED)).callbacks, tmp_path)
    assert isinstance(best, ModelCheckpoint)
    assert (best.monitor, best.mode, best.filename) == ("valid/nll_per_word", "min", "best")
    assert isinstance(last, ModelCheckpoint)
    assert (last.monitor, last.filename) == (None, "last")
    assert {each.dirpath for each in (best, last)} == {str(tmp_path / "checkpoints")}


def test_several_best_checkpoints_have_names_of_their_updates(composer, tmp_path):
    typed = (*TYPED, "callbacks.best.save_top_k=3")
    best, _ = make_callbacks(load(composer(*typed)).callbacks, tmp_path)
    assert Path(best.format_checkpoint_name({"step": 40})).name == "best-40.ckpt"


def test_monitors_of_bleu_use_mode_max(composer, tmp_path):
    typed = ("callbacks=[early_stopping,ema]", "callbacks.best.monitor=valid/bleu")
    made = make_callbacks(load(composer(*TYPED, *typed)).callbacks, tmp_path)
    watching = {type(each): each.mode for each in made if getattr(each, "monitor", None)}
    assert watching == {EarlyStopping: "max", ModelCheckpoint: "max"}
    assert any(isinstance(each, EMAWeightAveraging) for each in made)


@pytest.mark.parametrize(
    ("file", "kept"),
    [
        ("callbacks/timer.py", True),
        ("trainer/setup.py", False),
        (f"{Path(lightning_fabric.__file__).parent}/accelerators/cuda.py", False),
        ("/mine.py", True),
    ],
)
def test_log_filter_keeps_notes_of_callbacks_and_user_code(file, kept):
    path = str(Path(pl.__file__).parent / file)
    assert is_asked_for(logging.LogRecord("", logging.INFO, path, 1, "", (), None)) is kept


def test_loggers_get_lightnings_arguments(composer, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_TAGS", "first, second")
    monkeypatch.setenv("WANDB_NAME", "mine")
    monkeypatch.setenv("WANDB_RUN_GROUP", "all")
    typed = ("logger=[wandb,csv]", "tags=[mine]", "logger.wandb.project=curves")
    typed += ("+logger.wandb.resume=never", "+logger.wandb.settings.silent=false")
    wandb, csv = make_loggers(load(composer(*TYPED, *typed)), tmp_path)
    assert isinstance(wandb, WandbLogger)
    assert isinstance(csv, CSVLogger)
    assert wandb._wandb_init["resume"] == "never"
    assert "anonymous" not in wandb._wandb_init  # W&B warns if this argument is given
    assert wandb._wandb_init["settings"]["silent"] is False
    run = wandb.experiment
    try:
        assert run.offline
        assert run.id == (tmp_path / "wandb/id").read_text()
        assert (run.name, run.group, run.project) == ("mine", "all", "curves")
        assert set(run.tags) == {"mine", "first", "second", "custom", "tiny"}
    finally:
        run.finish()
    assert make_loggers(load(composer(*TYPED, "logger=none")), tmp_path) == []


def test_wandb_online_without_a_key_is_refused(composer, tmp_path, monkeypatch):
    """Without the check, W&B would prompt for a key."""
    for name in ("WANDB_API_KEY", "WANDB_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with pytest.raises(InputError, match=r"logger\.wandb\.offline=false: W&B has no key here"):
        make_loggers(load(composer(*TYPED, "logger.wandb.offline=false")), tmp_path)
    with pytest.raises(
        InputError, match=r"logger\.wandb\.log_model=all: uploads checkpoints; type"
    ):
        make_loggers(load(composer(*TYPED, "+logger.wandb.log_model=all")), tmp_path)


def test_seeds_differ_by_batch_and_rank():
    module = pl.LightningModule()

    def draw(seed: int, batch: int, rank: int) -> float:
        trainer: Any = SimpleNamespace(
            fit_loop=SimpleNamespace(total_batch_idx=batch), global_rank=rank
        )
        Seeds(seed).on_train_batch_start(trainer, module, None, 0)
        return torch.rand(()).item()

    places = [(seed, batch, rank) for seed in (1, 2) for batch in (0, 1, 2) for rank in (0, 1)]
    drawn = {place: draw(*place) for place in places}
    assert len(set(drawn.values())) == len(places)
    assert all(draw(*place) == drawn[place] for place in reversed(places))


def test_heatmaps_of_all_ranks_are_logged_in_order(monkeypatch):
    monkeypatch.setattr(callbacks, "gather", lambda rows: [rows, [{"id": 2}, {"id": 7}]])
    logged: list[Any] = []
    monkeypatch.setattr(callbacks, "log_heatmaps", lambda *given: logged.append(given))
    heatmaps = callbacks.Heatmaps([10])
    heatmaps.rows = [{"id": 5}]
    trainer: Any = SimpleNamespace(
        is_global_zero=True, loggers=["logger"], global_step=3, sanity_checking=False
    )
    heatmaps.on_validation_epoch_end(trainer, pl.LightningModule())
    assert logged == [(["logger"], [{"id": 2}, {"id": 5}, {"id": 7}], 3)]
    assert heatmaps.rows == []


def test_stop_reason_names_the_callback():
    stopping = EarlyStopping("valid/bleu", patience=3)
    trainer: Any = SimpleNamespace(callbacks=[stopping])
    assert stop_reason(trainer) == "a callback has set trainer.should_stop"
    stopping.wait_count = 3
    assert stop_reason(trainer) == "valid/bleu has not improved for 3 validations"


@pytest.mark.parametrize(
    ("step", "environment"),
    [
        ("0", "SLURMEnvironment"),
        ("4294967290", "LightningEnvironment"),
        ("", "LightningEnvironment"),
    ],
)
def test_slurm_environment_only_under_srun(composer, tmp_path, monkeypatch, step, environment):
    """If srun has not started the ranks, Lightning starts them, as outside SLURM."""
    job = {"JOB_ID": "7", "NTASKS": "4", "NTASKS_PER_NODE": "4", "STEP_ID": step}
    for name, value in {**job, "PROCID": "0", "LOCALID": "0", "NODEID": "0"}.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    config = load(composer(*TYPED, "trainer.devices=4", "trainer.strategy=ddp"))
    trainer = make_trainer(config.trainer, tmp_path, [], [])
    assert type(trainer.strategy.cluster_environment).__name__ == environment


def test_without_a_network_wandb_logs_offline(composer, tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    monkeypatch.setenv("WANDB_MODE", "online")
    init = wandb.init

    def refuse_online(**given: Any) -> Any:
        if given.get("mode") != "offline":
            raise CommError("Error communicating with wandb process\nsee the log")
        return init(**given)

    monkeypatch.setattr(wandb, "init", refuse_online)
    config = load(composer(*TYPED, "logger=wandb", "logger.wandb.offline=false"))
    [logger] = make_loggers(config, tmp_path)
    connect(logger)
    logger.log_metrics({"a": 1.0})
    wandb.finish()
    assert "W&B: Error communicating with wandb process; logging offline" in caplog.text
    assert list(tmp_path.glob("wandb/offline-run-*"))
