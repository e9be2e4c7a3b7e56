"""Callbacks and arguments of Lightning's Trainer that the configuration names."""

from __future__ import annotations

import json

import pytest
import pytorch_lightning as pl
import torch

from nmt.config import Config, LoggerConfig, TrainerConfig
from nmt.config.validation import load
from nmt.training.callbacks import make_callbacks
from nmt.training.trainer import lightning_arguments
from nmt.utils.errors import InputError
from tests.helpers.processes import TINY, run

MINE = """
import json
from pathlib import Path
import pytorch_lightning as pl

class Count(pl.Callback):
    def __init__(self, file, every=1):
        self.file, self.every, self.updates = file, every, []
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if trainer.global_step % self.every == 0:
            self.updates.append(trainer.global_step)
    def on_train_end(self, trainer, pl_module):
        Path(self.file).write_text(json.dumps(self.updates))
    def state_dict(self):
        return {"updates": self.updates}
"""


def lightnings(name: str, **arguments) -> dict:
    return {name.lower(): {"_target_": f"pytorch_lightning.callbacks.{name}", **arguments}}


def test_the_callbacks_of_the_group(composer):
    typed = "callbacks=[ema,learning_rate_monitor]"
    average, rates = make_callbacks(load(composer(typed, "callbacks.ema.decay=0.5")))
    assert isinstance(average, pl.callbacks.EMAWeightAveraging)
    assert (average.share(0), average.share(1)) == (1, 0.5)
    assert isinstance(rates, pl.callbacks.LearningRateMonitor)
    assert rates.logging_interval == "step"
    assert make_callbacks(load(composer())) == []


@pytest.mark.parametrize(
    ("callbacks", "said"),
    [
        ({"mine": {"every": 3}}, "callbacks.mine: names no class; type +callbacks.mine._target_="),
        ({"mine": {"_target_": "no.Such"}}, "callbacks.mine._target_=no.Such: there is no"),
        ({"mine": {"_target_": "torch.nn.Identity"}}, "callbacks.mine._target_=torch.nn.Identity:"),
        (lightnings("DeviceStatsMonitor", rate=1), "callbacks.devicestatsmonitor._target_=pytorch"),
        (
            lightnings("StochasticWeightAveraging", swa_lrs=0.1),
            "a run here counts updates; take callbacks=swa",
        ),
        (
            {"swa": {"_target_": "nmt.training.averaging.StochasticWeightAveraging", "start": 0}},
            "callbacks.swa._target_=nmt.training.averaging.StochasticWeightAveraging: start=0: must",
        ),
        (lightnings("ModelCheckpoint"), "type trainer.valid_every or checkpoint.minutes"),
        (lightnings("TQDMProgressBar"), "type trainer.progress"),
        (lightnings("Timer"), "a run ends after trainer.max_steps"),
        (lightnings("GradientAccumulationScheduler", scheduling={0: 2}), "type trainer.accumulate"),
        (lightnings("LearningRateMonitor"), "needs a logger; take logger=csv"),
        (
            lightnings("EarlyStopping", monitor="val_loss"),
            "monitor=val_loss: not logged; take one such as valid/nll_per_word",
        ),
        (
            lightnings("EarlyStopping", monitor="valid/nll_per_word", patience="abc"),
            "callbacks.earlystopping.patience=abc: must be a whole number",
        ),
        (
            lightnings("EMAWeightAveraging", update_starting_at_step="abc"),
            "callbacks.emaweightaveraging.update_starting_at_step=abc: must be a whole number or null",
        ),
        (
            {
                "ema": {
                    "_target_": "nmt.training.averaging.ExponentialMovingAverage",
                    "update_every_n_steps": 0.5,
                }
            },
            "callbacks.ema.update_every_n_steps=0.5: must be a whole number",
        ),
        (
            lightnings("EarlyStopping", monitor="valid/nll"),
            "monitor=valid/nll: not logged; take one such as valid/nll_per_word",
        ),
    ],
)
def test_what_does_not_work_is_refused_by_its_key(callbacks, said):
    with pytest.raises(InputError) as refused:
        make_callbacks(Config(callbacks=callbacks, logger=LoggerConfig(name="none")))
    assert said in str(refused.value)
    assert str(refused.value).startswith(f"callbacks.{next(iter(callbacks))}")
    assert "\n" not in str(refused.value)


def test_a_callback_that_does_not_fit_the_model_is_refused_in_a_line(program):
    target = "pytorch_lightning.callbacks.BackboneFinetuning"
    ended = program("train", *TINY, f"+callbacks.tune._target_={target}")
    assert ended.code == 2
    said = f"nmt: callbacks.tune._target_={target}: does not work in this run: AttributeError: "
    assert said in ended.err
    assert "Traceback" not in ended.err


def test_an_error_of_a_callback_after_updates_fails_the_run_with_its_traceback(program):
    settings = "{_target_:pytorch_lightning.callbacks.EarlyStopping,monitor:valid/nll_per_word}"
    checked = "pytorch_lightning.callbacks:EarlyStopping._run_early_stopping_check"
    hook = f"fail({checked!r}, 1, RuntimeError('out of order'))"
    ended = program("train", *TINY, f"+callbacks.stop={settings}", hook=hook)
    assert ended.code == 1
    assert "RuntimeError: out of order" in ended.err
    assert "does not work in this run" not in ended.err


def test_weights_are_averaged_once(composer):
    with pytest.raises(InputError) as refused:
        make_callbacks(load(composer("callbacks=[ema,swa]")))
    said = "callbacks.swa: averages weights, as callbacks.ema does; take one of them"
    assert str(refused.value) == said


def test_an_average_that_would_never_begin_is_refused(composer):
    typed = ("callbacks=swa", "callbacks.swa.start=5")
    make_callbacks(load(composer(*typed, "trainer.max_steps=5")))
    with pytest.raises(InputError) as refused:
        make_callbacks(load(composer(*typed, "trainer.max_steps=4")))
    said = "callbacks.swa.start=5: must be at most trainer.max_steps=4, or no weights are averaged"
    assert str(refused.value) == said
    late = ("callbacks=ema", "+callbacks.ema.update_starting_at_step=4", "trainer.max_steps=4")
    with pytest.raises(
        InputError, match=r"^callbacks\.ema\.update_starting_at_step=4: must be below"
    ):
        make_callbacks(load(composer(*late)))
    for every in (0, 4):
        rare = ("callbacks=ema", f"+callbacks.ema.update_every_n_steps={every}")
        with pytest.raises(
            InputError, match=f"^callbacks.ema.update_every_n_steps={every}: takes no"
        ):
            make_callbacks(load(composer(*rare, "trainer.max_steps=4")))
    make_callbacks(load(composer(*rare, "trainer.max_steps=5")))
    make_callbacks(load(composer("callbacks=ema", "trainer.max_steps=1")))


def test_two_states_that_a_checkpoint_would_not_tell_apart_are_refused(composer):
    stop = (
        "+callbacks.{}={{_target_: pytorch_lightning.callbacks.EarlyStopping, monitor: valid/bleu}}"
    )
    with pytest.raises(InputError) as refused:
        make_callbacks(load(composer(stop.format("a"), stop.format("b"))))
    said = "callbacks.b: a checkpoint cannot tell its state from that of callbacks.a; leave one out"
    assert str(refused.value).startswith(said)
    typed = (stop.format("a"), "+callbacks.a.mode=max", "trainer.monitor=bleu")
    assert len(make_callbacks(load(composer(*typed)))) == 1
    with pytest.raises(InputError, match=r"^callbacks\.a: .* from that of trainer\.patience;"):
        make_callbacks(load(composer(*typed, "trainer.patience=2")))


def test_a_callback_of_ones_own_a_moving_average_and_a_profiler(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    ended = run(
        "train",
        *TINY,
        "hydra.run.dir=run",
        "callbacks=ema",
        "callbacks.ema.decay=0.5",
        "+callbacks.count._target_=mine.Count",
        "+callbacks.count.file=updates.json",
        "+callbacks.count.every=5",
        "+trainer.lightning.profiler=simple",
        "+trainer.lightning.detect_anomaly=true",
        "~data.test.by_length",
        "evaluation.resamples=0",
        "evaluation.train_sample=0",
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
    )
    assert ended.code == 0, ended.err
    assert json.loads((tmp_path / "updates.json").read_text()) == [5, 10]
    assert "run_training_batch" in (tmp_path / "run/fit-profile.txt").read_text()
    best = torch.load(tmp_path / "run/checkpoints/best.ckpt", weights_only=True)
    assert best["global_step"] == 12
    averaged, last = best["state_dict"], best["current_model_state"]
    assert any(not torch.equal(averaged[name], last[name]) for name in averaged)
    results = json.loads((tmp_path / "run/results.json").read_text())
    for trusted, code in (("[]", 2), ("[mine]", 0)):  # a stranger's callback is not run
        ended = run(
            "evaluate",
            "checkpoint=run/checkpoints/best.ckpt",
            f"hydra.run.dir=again{code}",
            f"trust={trusted}",
            cwd=tmp_path,
            env={"PYTHONPATH": str(tmp_path)},
        )
        assert ended.code == code, ended.err
        assert ("if you trust it, add trust=[mine]" in ended.err) == (code == 2)
    again = json.loads((tmp_path / "again0/results.json").read_text())
    before, after = (found["test"]["test"]["nll_per_sentence"] for found in (results, again))
    assert after["score"] == pytest.approx(before["score"], rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"limit_train_batch": 3}, "trainer.lightning.limit_train_batch: no argument of Lightning"),
        ({"limit_train_batches": 0}, "trainer.lightning.limit_train_batches=0: must be a whole"),
        ({"limit_val_batches": 0.5}, "trainer.lightning.limit_val_batches=0.5: must be a whole"),
        ({"limit_train_batches": 4}, "trainer.lightning.limit_train_batches=4: must be a multiple"),
        (
            {"fast_dev_run": "yes"},
            "trainer.lightning.fast_dev_run=yes: must be true, false or a num",
        ),
        (
            {"fast_dev_run": -1},
            "trainer.lightning.fast_dev_run=-1: must be true, false or a number",
        ),
        ({"detect_anomaly": "no"}, "trainer.lightning.detect_anomaly=no: must be true or false"),
        ({"profiler": ["simple"]}, "trainer.lightning.profiler=['simple']: must be one of simple,"),
        ({"profiler": "fast"}, "trainer.lightning.profiler=fast: must be one of simple, advanced"),
    ],
)
def test_arguments_that_lightning_has_not(tmp_path, arguments, said):
    with pytest.raises(InputError) as refused:
        lightning_arguments(TrainerConfig(lightning=arguments, accumulate=3), tmp_path)
    assert str(refused.value).startswith(said)


def test_arguments_of_lightning_are_handed_on(tmp_path):
    options = TrainerConfig(lightning={"limit_val_batches": 2, "profiler": "advanced"})
    made = lightning_arguments(options, tmp_path)
    assert made["limit_val_batches"] == 2
    assert isinstance(made["profiler"], pl.profilers.AdvancedProfiler)
    assert made["profiler"].dirpath == tmp_path
    assert options.lightning["profiler"] == "advanced"
