"""The real trainer with all its callbacks: updates a second, and that none of them makes the CPU wait."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hydra
import numpy as np
import numpy.typing as npt
import pytorch_lightning as pl
import torch

from benchmarks.gpu.findings import Findings
from benchmarks.gpu.recordings import recorded, rehearse_recordings
from benchmarks.gpu.setting import Setting
from benchmarks.gpu.speed import FAST
from benchmarks.work import BATCH, POOL, pair_lengths
from nmt.cli.composition import conf_folder, register_configs
from nmt.config import TrainConfig
from nmt.config.validation import load
from nmt.data import prepare
from nmt.data.module import MicroBatches, TranslationData
from nmt.data.splits import Array, Split
from nmt.models import Translator, build_model
from nmt.run.fit import Training
from nmt.run.folder import RunFolder
from nmt.run.run import Run
from nmt.training.loggers import make_loggers
from nmt.training.signals import Stop
from nmt.training.trainer import make_callbacks

LEAST, AIM = 110, 185  # updates a second on sorted pools


class Done(Exception):
    """As many updates as were asked for are made."""


class RandomText(Split):
    """Pairs of random words with given lengths (pairs, 2), `</s>` included."""

    def __init__(self, lengths: npt.NDArray[np.integer], vocabulary: int) -> None:
        super().__init__("train", range(len(lengths)), None, None)  # type: ignore[arg-type]
        self._lengths = lengths
        self._starts = np.concatenate([[0], lengths.sum(1).cumsum()])
        generator = np.random.default_rng(1)
        self._ids = generator.integers(2, vocabulary, self._starts[-1]).astype(np.int32)
        ends = self._starts[:-1, None] + lengths.cumsum(1) - 1
        self._ids[ends.ravel()] = 0  # </s>

    def ids(self, number: int) -> tuple[Array, Array]:
        start, middle = self._starts[number], self._starts[number] + self._lengths[number, 0]
        return self._ids[start:middle], self._ids[middle : self._starts[number + 1]]

    @property
    def sizes(self) -> Array:
        return self._lengths

    @property
    def words(self) -> Array:
        return self._lengths - 1

    def target_words(self, numbers: Sequence[int] | Array) -> Array:
        return self.words[np.asarray(numbers, np.int64), 1]


class Clock(pl.Callback):
    """Times the updates after the first `warm` ones, and ends the training after `count` more."""

    def __init__(self, setting: Setting, warm: int, count: int, *, alone: bool) -> None:
        self.setting = setting
        self.warm, self.count = warm, count
        self.alone = alone  # whether an operation that makes the CPU wait is an error meanwhile
        self.seconds = float("nan")

    def on_train_batch_end(self, trainer: pl.Trainer, *rest: Any) -> None:
        if trainer.global_step == self.warm:
            self.setting.wait()
            self._forbid("error")
            self._start = time.perf_counter()
        elif trainer.global_step == self.warm + self.count:
            self._forbid("default")
            self.setting.wait()
            self.seconds = time.perf_counter() - self._start
            raise Done

    def on_exception(self, *rest: Any) -> None:
        self._forbid("default")

    def _forbid(self, mode: str) -> None:
        if self.alone and self.setting.device == "cuda":
            torch.cuda.set_sync_debug_mode(mode)


def throughput(setting: Setting, findings: Findings) -> None:
    """Updates a second of the real trainer and of a bare loop over the same batches."""
    warm, count = (3, 4) if setting.rehearse else (2 * POOL, 10 * POOL)
    for name, lengths in texts(setting).items():
        training = prepared_training(setting, lengths, setting.folder / name, log_every=100)
        initial = weights(training.model)
        clock = fit(setting, training, warm, count, alone=False)
        rate = count / clock.seconds
        words = float((lengths[:, 1]).mean()) * training.run.config.data.batch_size
        findings.check(f"{name}: graphs held", recorded(training.model), at_least=1)
        model, bare = bare_loop(setting, training, warm, count)
        findings.note(**{
            f"{name}, updates a second": rate,
            f"{name}, updates a second of a bare loop": bare,
            f"{name}, target words a second": rate * words,
        })  # fmt: skip
        changed = (weights(model) - initial).norm()
        apart = float((weights(training.model) - weights(model)).norm() / changed)
        findings.check(f"{name}: distance from the bare loop's weights", apart, at_most=0.05)
        if not setting.rehearse and any(kind in torch.cuda.get_device_name() for kind in FAST):
            findings.target(f"{name}: trainer / bare loop", rate / bare, at_least=0.9)
            if name == "pools":
                findings.target("pools: updates a second, at least", rate, at_least=LEAST)
                findings.target("pools: updates a second, aim", rate, at_least=AIM)


def sync(setting: Setting, findings: Findings) -> None:
    """Whole updates of the real trainer while an operation that makes the CPU wait is an error.

    Those of the pools with a moving average of the weights.
    """
    warm, count = (3, 4) if setting.rehearse else (POOL + 1, 2 * POOL)
    if setting.rehearse:
        findings.leave_out("waiting", "a CPU has nothing to wait for; the updates are made")
    for name, lengths in texts(setting).items():
        typed = ["callbacks=ema"] if name == "pools" else []
        folder = setting.folder / name
        training = prepared_training(setting, lengths, folder, *typed, log_every=10**6)
        clock = fit(setting, training, warm, count, alone=True)
        findings.check(f"{name}: seconds", clock.seconds, at_least=0.0)
        finite = bool(torch.isfinite(weights(training.model)).all())
        findings.check(f"{name}: weights are finite", finite, equals=True)


def texts(setting: Setting) -> dict[str, npt.NDArray[np.integer]]:
    """Lengths of the pairs of one pool, all of 30 symbols or of mean 25 words; it comes again and again."""
    batch = setting.rows if setting.rehearse else BATCH
    pools = 1 + pair_lengths(setting.size, POOL * batch).numpy()
    return {"fixed": np.full_like(pools, 5 if setting.rehearse else 30), "pools": pools}


def prepared_training(
    setting: Setting, lengths: npt.NDArray[np.integer], folder: Path, *typed: str, log_every: int
) -> Training:
    """What `nmt.train` makes of a configuration, over random words."""
    size = setting.size
    config = compose(
        "+experiment=rnnsearch50", "regime=paper", "data=grammar", "data.grammar.train_pairs=200",
        "data.grammar.valid_pairs=8", "data.grammar.test_pairs=4", "data.grammar.by_length_pairs=14",
        f"data.cache={setting.shared}/cache", "trainer.enable_progress_bar=false", "logger=csv",
        f"trainer={'cpu' if setting.rehearse else 'gpu'}", "trainer.precision=bf16-mixed",
        f"trainer.log_every_n_steps={log_every}", f"model.hidden={size.hidden}", f"model.alignment={size.alignment}",
        f"model.embedding={size.embedding}", f"model.maxout={size.maxout}",
        f"data.batch_size={setting.rows}", "data.workers=0" if setting.rehearse else "data.workers=2",
        *typed,
    )  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    text = prepare.prepare(config.data, config.tokenizer, progress=False)
    loggers = make_loggers(config, folder)
    stop, callbacks = Stop(folder), make_callbacks(config, folder)
    run = Run(config, RunFolder(folder), stop=stop, callbacks=callbacks, loggers=loggers)
    training = Training(run, text)
    # the callbacks keep the grammar's development set; the model and its batches are of our sizes
    training.model = model_of(setting, config)
    random = RandomText(lengths, size.vocabulary)
    training.data = TranslationData(dataclasses.replace(text, train=random), config)  # type: ignore[arg-type]
    return training


def compose(*overrides: str) -> TrainConfig:
    """The configuration of `nmt.train` with these words typed after it."""
    register_configs(["train"])
    with hydra.initialize_config_dir(str(conf_folder()), version_base="1.3"):
        config = load(hydra.compose("train", overrides=list(overrides)))
    assert isinstance(config, TrainConfig)
    return config


def model_of(setting: Setting, config: TrainConfig) -> Translator:
    """The model of a configuration over our vocabulary, with the weights that each of them has."""
    torch.manual_seed(1)
    model = build_model(config, setting.size.vocabulary, setting.size.vocabulary)
    if setting.rehearse:
        rehearse_recordings(model)
    return model


def fit(setting: Setting, training: Training, warm: int, count: int, *, alone: bool) -> Clock:
    """Makes the updates by `Trainer.fit` and times the last `count`."""
    clock = Clock(setting, warm, count, alone=alone)
    training.trainer.callbacks.append(clock)  # type: ignore[attr-defined]
    try:
        training.trainer.fit(training.model, training.data)
    except Done:
        return clock
    raise RuntimeError(f"the training ended before {warm + count} updates")


def bare_loop(
    setting: Setting, training: Training, warm: int, count: int
) -> tuple[Translator, float]:
    """The same updates without Lightning, from batches that lie on the device; and their rate."""
    config = training.run.config
    assert isinstance(config, TrainConfig)
    model = model_of(setting, config).to(setting.device)
    model.train()
    made = model.configure_optimizers()
    optimizer, schedule = made["optimizer"], made["lr_scheduler"]["scheduler"]
    data = training.data
    source = MicroBatches(data.prepared.train, data.schedule, 1, 0, 1)
    batches = [source[n].to(setting.device) for n in range(min(POOL, warm + count))]
    start = float("nan")
    for update in range(warm + count):
        if update == warm:
            setting.wait()
            start = time.perf_counter()
        with setting.autocast(True):
            loss = model.training_step(batches[update % POOL], update)["loss"]
        optimizer.zero_grad()
        loss.backward()
        model.configure_gradient_clipping(optimizer)
        optimizer.step()
        schedule.step()
    setting.wait()
    return model, count / (time.perf_counter() - start)


def weights(model: Translator) -> torch.Tensor:
    """All of them, one after the other, on the CPU."""
    return torch.cat([p.detach().flatten().cpu().double() for p in model.parameters()])
