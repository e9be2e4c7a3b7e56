"""What a person sees during training: NLL a word, words a second, the time that is left."""

from __future__ import annotations

import logging
import sys
import time
from typing import Any

import pytorch_lightning as pl
import torch
from tqdm import tqdm

from nmt.training.lightning import accumulating

log = logging.getLogger(__name__)

QUIET_SECONDS = 30.0  # between two lines where there is no terminal to draw a bar on


class Progress(pl.Callback):
    """Training NLL and rates, as a bar on a terminal and as lines elsewhere.

    Everything is summed over all devices. Rates are over the time spent on updates: validation and
    the checkpoint after it are left out.

    Attributes:
        sentences, words: seen since training began, over all resumes.
        seconds: time spent on updates, over all resumes.
    """

    def __init__(self, *, show: bool, every: int) -> None:
        self.every = every
        self.show = show and sys.stderr.isatty()
        self.lines = show and not self.show
        self.sentences = self.words = 0
        self.seconds = 0.0
        self._bar: Any = None
        self._sums = torch.zeros(3, dtype=torch.float64)  # NLL, words, sentences since a report
        self._since_validation = torch.zeros(2, dtype=torch.float64)
        self._clock: float | None = None  # when the updates since the last report began
        self._said = 0.0

    def state_dict(self) -> dict[str, Any]:
        return {
            "sentences": self.sentences,
            "words": self.words,
            "seconds": self.seconds,
            "since_validation": self._since_validation.tolist(),
            "since_report": self._sums.tolist(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.sentences = state_dict["sentences"]
        self.words = state_dict["words"]
        self.seconds = state_dict["seconds"]
        self._since_validation = torch.tensor(state_dict["since_validation"], dtype=torch.float64)
        self._sums = torch.tensor(state_dict["since_report"], dtype=torch.float64)

    def rates(self) -> dict[str, float]:
        """Sentences and target words (with `</s>`) a second."""
        seconds = max(self.seconds, 1e-9)
        return {
            "sentences_per_second": self.sentences / seconds,
            "target_words_per_second": self.words / seconds,
        }

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._said = time.monotonic()
        # what one process had summed up when it was stopped belongs to one of those that go on
        self._sums = self._sums.to(pl_module.device) * trainer.is_global_zero
        if self.show and trainer.is_global_zero:
            self._bar = tqdm(
                total=trainer.max_steps,
                initial=trainer.global_step,
                desc="training",
                unit="update",
                dynamic_ncols=True,
                smoothing=0.05,
            )

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        if self._clock is None:
            self._clock = time.monotonic()

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        # sums stay on the device: reading them at each update would make a GPU wait for the CPU
        new = (outputs["nll"].double(), outputs["words"], outputs["sentences"])
        self._sums += torch.stack([value.to(self._sums) for value in new])
        update = trainer.global_step
        if accumulating(trainer):
            return
        if self._bar is not None:
            self._bar.update(1)
        if update % self.every == 0:
            self._report(trainer, pl_module)

    def on_validation_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if trainer.state.fn == "fit":
            self._report(trainer, pl_module)
            nll, words = self._since_validation.tolist()
            self._since_validation.zero_()
            if words:
                pl_module.log(
                    "train/nll_per_word", nll / words, on_step=False, on_epoch=True, logger=False
                )

    def on_validation_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        self._clock = None
        if trainer.state.fn != "fit" or not trainer.is_global_zero:
            return
        metrics = {
            name: float(value)
            for name, value in trainer.callback_metrics.items()
            if name.startswith("valid/")  # of training there are rows of its own
        }
        for logger in trainer.loggers:
            # Lightning would count the update before this one
            logger.log_metrics(metrics, step=trainer.global_step)
        scores = {name[6:]: value for name, value in metrics.items()}
        said = [f"nll/word {scores['nll_per_word']:.3f}", f"perplexity {scores['perplexity']:.2f}"]
        if "bleu" in scores:
            said.append(f"greedy BLEU {scores['bleu']:.1f}")
        if "alignment_error_rate" in scores:
            said.append(f"AER {scores['alignment_error_rate']:.3f}")
        if "eos_weight" in scores:
            said.append(f"attention on </s> {scores['eos_weight']:.2f}")
        self.say(f"update {trainer.global_step}: development " + ", ".join(said))

    def say(self, line: str) -> None:
        """A line of the log that does not break the bar."""
        if self._bar is not None:
            self._bar.clear()
        log.info(line)
        if self._bar is not None:
            self._bar.refresh()

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._close()

    def on_exception(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException
    ) -> None:
        self._close()

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _report(self, trainer: pl.Trainer, module: Any) -> None:
        nll, words, sentences = trainer.strategy.reduce(self._sums, reduce_op="sum").tolist()
        self._sums = torch.zeros_like(self._sums)
        if not words:
            return
        self._since_validation += torch.tensor([nll, words], dtype=torch.float64)
        now = time.monotonic()
        elapsed = 0.0 if self._clock is None else now - self._clock
        self._clock = now
        self.seconds += elapsed
        self.words += int(words)
        self.sentences += int(sentences)
        rate = words / max(elapsed, 1e-9)
        scores = {
            "train/nll_per_word": nll / words,
            "train/gradient_norm": float(module.gradient_norm),
            "train/learning_rate": trainer.optimizers[0].param_groups[0]["lr"],
            "train/target_words_per_second": rate,
        }
        for logger in trainer.loggers:
            logger.log_metrics(scores, step=trainer.global_step)
        if self._bar is not None:
            self._bar.set_postfix_str(f"nll/word {nll / words:.3f}, {rate:,.0f} words/s")
        elif self.lines and trainer.is_global_zero and now - self._said > QUIET_SECONDS:
            self._said = now
            left = (trainer.max_steps - trainer.global_step) * self.seconds
            left /= max(trainer.global_step, 1)
            log.info(
                "update %d of %d: nll/word %.3f, %s words/s, about %s left",
                trainer.global_step,
                trainer.max_steps,
                nll / words,
                f"{rate:,.0f}",
                duration(left),
            )


def duration(seconds: float) -> str:
    """Seconds as people say them: `45 s`, `12 min`, `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
