"""Records and logs the validations, time and speed of a training run, and the reason for an early end."""

from __future__ import annotations

import logging
import math
import os
import time
from functools import partial
from itertools import count
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import EarlyStopping, ModelCheckpoint

from nmt.config.schema import class_name, scoring_of
from nmt.utils.devices import name_of, why_no_gpu
from nmt.utils.errors import RunError
from nmt.utils.text import counted

log = logging.getLogger(__name__)

LOG_INTERVAL_S = 5.0  # minimum seconds between log lines if there is no progress bar

ADVICE = (
    "the previous checkpoints are intact (try a smaller optimizer.lr or trainer.gradient_clip_val)"
)


class TrainingRecord(pl.Callback):
    """Records and logs the history of a training run across resumes.

    Every checkpoint contains the state of this callback. The callback raises RunError if the loss or its
    gradient is not finite, and it forces a validation after the last update. If the folder of the run was
    moved, it updates the paths of ModelCheckpoints.

    Attributes:
        history: one dictionary per validation. `update` counts the updates before it. The metric
            `valid/NAME` has the key NAME. `train_nll_per_word` is the last logged `train/nll_per_word`.
        words, sentences: target words and sentences processed so far, on all devices.
        seconds: seconds spent on updates, without validations.
        hours: hours of training up to the last checkpoint, including the time before a resume.
        stopped_early: the reason why training ended before `max_steps` and `max_epochs`, or an empty string.
        continues: whether the folder or the planned length of the run has changed. If so, the training
            continues even if it had ended early.
    """

    def __init__(self) -> None:
        self.history: list[dict[str, float]] = []
        self.words = self.sentences = 0
        self.seconds = self.hours = 0.0
        self.stopped_early = ""
        self.continues = False
        self._sums = torch.zeros(2, dtype=torch.float64)  # words, sentences since last `_report`
        self._clock: float | None = None  # start of the time that `seconds` does not include yet
        self._begun = time.monotonic()
        # updates between log lines; chosen when the first line is logged
        self._stride: int | None = None
        self._planned_end = False  # whether the last update was reached

    def state_dict(self) -> dict[str, Any]:
        now = time.monotonic()  # each checkpoint adds the time since the previous one to `hours`
        self.hours = self.hours + (now - self._begun) / 3600
        self._begun = now
        names = ("history", "words", "sentences", "seconds", "hours", "stopped_early")
        return {name: getattr(self, name) for name in names}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        vars(self).update(state_dict)

    def on_load_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Updates the paths of ModelCheckpoints if the folder was moved.

        If their files are not in this run's folder (`ckpt_path`), the search for the best checkpoint starts anew.
        """
        for each in trainer.checkpoint_callbacks:
            state = checkpoint["callbacks"].get(each.state_key)
            if isinstance(each, ModelCheckpoint) and state and each.dirpath:
                here = str(each.dirpath)
                moved = partial(_moved, state["dirpath"], here)
                if state["best_model_path"] and not os.path.isfile(moved(state["best_model_path"])):
                    del checkpoint["callbacks"][each.state_key]
                    continue
                for name in ("best_model_path", "kth_best_model_path", "last_model_path"):
                    state[name] = moved(state[name])
                kept = state["best_k_models"].items()
                state["best_k_models"] = {moved(path): score for path, score in kept}
                state["dirpath"] = here

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        log.info(describe_training(pl_module, trainer))
        if self.continues:
            self.stopped_early = ""
        trainer.should_stop = bool(self.stopped_early)
        if self.stopped_early:
            log.info("the training has already ended early: %s", self.stopped_early)

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._begun = time.monotonic()
        self._sums = torch.zeros_like(self._sums, device=pl_module.device)

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        self._clock = self._clock or time.monotonic()

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        # The sums stay on the device, because reading them would synchronize the GPU.
        self._sums += torch.stack([outputs["words"], outputs["sentences"]]).to(self._sums)
        if (batch_idx + 1) % trainer.accumulate_grad_batches:
            return
        last_epoch = trainer.current_epoch + 1 == trainer.max_epochs and trainer.is_last_batch
        if trainer.global_step == trainer.max_steps or last_epoch:
            # With `should_stop`, Lightning runs a last validation before it ends the training.
            self._planned_end = trainer.should_stop = True
        elif trainer.global_step % trainer.log_every_n_steps == 0:  # type: ignore[attr-defined]
            before = self.seconds
            self._report(trainer, pl_module)
            if trainer.progress_bar_callback is None:
                self._log_update(trainer, self.seconds - before)

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.state.fn == "fit" and not trainer.sanity_checking:
            self._report(trainer, pl_module)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Adds an entry to the history, which the ModelCheckpoints save, because Lightning calls them later."""
        self._clock = None
        if trainer.state.fn != "fit" or trainer.sanity_checking:
            return
        update = trainer.global_step
        metrics = {name: float(value) for name, value in trainer.callback_metrics.items()}
        if not math.isfinite(metrics.get("valid/nll_per_word", 0.0)):
            raise RunError(f"the validation NLL is not finite at update {update}; {ADVICE}")
        scores = {
            name.removeprefix("valid/").replace("train/", "train_"): value
            for name, value in metrics.items()
            if name.startswith(("valid/", "train/nll")) and name.count("/") == 1
        }
        self.history.append({"update": update} | scores)
        if trainer.should_stop and not self._planned_end:
            self.stopped_early = stop_reason(trainer)
            log.info("training ends early: %s", self.stopped_early)
        listed = ", ".join(f"{name} {value:.4g}" for name, value in scores.items())
        log.info("update %d: validation %s", update, listed)

    def rates(self) -> dict[str, float]:
        """Returns the sentences and the target words (with `</s>`) per second of update time."""
        seconds = max(self.seconds, 1e-9)
        return {
            "sentences_per_second": self.sentences / seconds,
            "target_words_per_second": self.words / seconds,
        }

    def _report(self, trainer: pl.Trainer, module: Any) -> None:
        """Adds all devices' sums to `words` and `sentences`."""
        if not bool(module.finite):
            raise RunError(
                f"the loss or its gradient is not finite at or before update {trainer.global_step}; "
                f"{ADVICE}"
            )
        words, sentences = trainer.strategy.reduce(self._sums, reduce_op="sum").tolist()
        self._sums = torch.zeros_like(self._sums)
        now = time.monotonic()
        self.seconds += now - (self._clock or now)
        self.words, self.sentences = self.words + int(words), self.sentences + int(sentences)
        self._clock = now

    def _log_update(self, trainer: pl.Trainer, seconds: float) -> None:
        """Logs a line at every multiple of a fixed number of updates, which take about `LOG_INTERVAL_S` or more.

        Args:
            seconds: time of the last `log_every_n_steps` updates.
        """
        interval = trainer.log_every_n_steps  # type: ignore[attr-defined]
        if self._stride is None:
            self._stride = interval * round_number(LOG_INTERVAL_S / max(seconds, 1e-9))
        elif trainer.global_step % self._stride:
            return
        nll = trainer.callback_metrics.get("train/nll_per_word", torch.tensor(math.nan))
        total = f" of {trainer.max_steps:,}" if trainer.max_steps > 0 else ""
        log.info(
            "update %s%s: train/nll_per_word %.3f, %.0f words/s",
            f"{trainer.global_step:,}", total, float(nll), self.rates()["target_words_per_second"],
        )  # fmt: skip


def round_number(smallest: float) -> int:
    """Returns the first of 1, 2, 5, 10, 20, 50, 100, … that is at least `smallest`.

    >>> [round_number(smallest) for smallest in (0.3, 2, 2.1, 60)]
    [1, 2, 5, 100]
    """
    return next(
        digit * 10**power
        for power in count()
        for digit in (1, 2, 5)
        if digit * 10**power >= smallest
    )


def stop_reason(trainer: pl.Trainer) -> str:
    """Returns the reason why a training ends before its last update."""
    for each in trainer.callbacks:  # type: ignore[attr-defined]
        if isinstance(each, EarlyStopping) and each.wait_count >= each.patience:
            return f"{each.monitor} has not improved for {each.patience} validations"
    return "a callback has set trainer.should_stop"


def describe_training(model: Any, trainer: pl.Trainer) -> str:
    """Returns a log line about the model, the updates and the device of a training run."""
    config = model.config
    parameters = sum(parameter.numel() for parameter in model.parameters())
    size = f"{parameters / 1e6:.1f} M" if parameters >= 1e6 else f"{parameters:,}"
    devices = f"{trainer.world_size} x " if trainer.world_size > 1 else ""
    scoring = class_name(scoring_of(config.model) or "none")
    batch = counted(config.data.batch_size, "sentence")
    if config.data.batch_tokens is not None:
        batch = f"at most {counted(config.data.batch_tokens, 'token')}"
    device = trainer.strategy.root_device
    length = f"without a limit of updates, {batch} per update,"
    if trainer.max_steps > 0:
        length = f"for {counted(trainer.max_steps, 'update')} of {batch}"
    return (
        f"training {config.name} ({size} parameters, scoring {scoring}, "
        f"{config.model.recurrence} recurrence) {length} on {devices}{name_of(device)}, "
        f"precision {trainer.precision}{reason_for_cpu(config.trainer['accelerator'], device)}"
    )


def reason_for_cpu(accelerator: str, device: torch.device) -> str:
    """Returns the reason why no GPU is used, as the end of a log line; returns "" if a GPU is used.

    With `trainer=cpu`, the GPU is not tested, because another process may be using it.
    """
    if device.type == "cuda":
        return ""
    reason = "" if accelerator == "cpu" else why_no_gpu()
    return f", {reason or 'the GPU is not used'}"


def _moved(before: str, here: str, path: str) -> str:
    """Returns the path of a file in the folder `here` that was in the folder `before`; empty if `path` is."""
    return path and os.path.join(here, os.path.relpath(path, before))
