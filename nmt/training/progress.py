"""Progress of training: NLL per word, words per second, time left."""

from __future__ import annotations

import logging
import sys
import time
from typing import Any

import pytorch_lightning as pl
import torch
from tqdm import tqdm

from nmt.data.batch import Batch
from nmt.training.lightning import accumulating
from nmt.training.validation import validation_scores
from nmt.utils.progress import Stage, TimeLeft

log = logging.getLogger(__name__)


class Progress(pl.Callback):
    """Training NLL and rates, as a bar on a terminal and as lines elsewhere.

    Everything is summed over all devices. Rates are over the time spent on updates: validation and
    the checkpoint after it are left out. The time left is that of the whole command.

    Args:
        show: nothing is shown otherwise.
        every: updates between two reports of training scores.
        left: what the command has still to do; the updates and validations are timed by it.
        validated: development pairs.

    Attributes:
        sentences, words: number trained on, over all resumes.
        seconds: time spent on updates, over all resumes.
    """

    def __init__(self, *, show: bool, every: int, left: TimeLeft, validated: int) -> None:
        self.every, self.show, self.left, self.validated = every, show, left, validated
        self.sentences = self.words = 0
        self.seconds = 0.0
        self._training: Stage | None = None
        self._validation: Stage | None = None
        self._validation_began: float | None = None
        self._scores = ""  # of the last report
        self._updates = 0  # at the last report
        self._sums = torch.zeros(3, dtype=torch.float64)  # NLL, words, sentences since a report
        self._since_validation = torch.zeros(2, dtype=torch.float64)
        self._clock: float | None = None  # when the updates since the last report began

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
        # what one process had summed up when it was stopped belongs to one of those that go on
        self._sums = self._sums.to(pl_module.device) * trainer.is_global_zero
        self._updates = trainer.global_step
        self.left.expect(work_ahead(trainer))
        self._training = Stage(
            "training",
            trainer.max_steps,
            "update",
            shown=self.show,
            begun=trainer.global_step,
            text=lambda: (
                f"update {trainer.global_step:,} of {trainer.max_steps:,}: {self._scores}{self.left}"
            ),
        )
        self._training.begin()

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        if self._clock is None:
            self._clock = time.monotonic()
        self._time_validation()

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        # sums stay on the device: reading them at each update would make a GPU wait for the CPU
        new = (outputs["nll"].double(), outputs["words"], outputs["sentences"])
        self._sums += torch.stack([value.to(self._sums) for value in new])
        update = trainer.global_step
        if accumulating(trainer):
            return
        if self._training is not None:
            self._training.advance()
        if update % self.every == 0:
            self._report(trainer, pl_module)

    def on_validation_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        self._report(trainer, pl_module)
        self._validation_began = time.monotonic()
        self._validation = Stage(
            "validating", self.validated, "sentence", shown=self.show, leave=False
        )
        self._validation.begin()
        nll, words = self._since_validation.tolist()
        self._since_validation.zero_()
        if words:
            pl_module.log(
                "train/nll_per_word", nll / words, on_step=False, on_epoch=True, logger=False
            )

    def on_validation_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: Any,
        outputs: Any,
        batch: Batch,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        if self._validation is not None:
            self._validation.advance(len(batch) * trainer.world_size)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        self._clock = None
        if self._validation is not None:
            self._validation.end()
        if not trainer.is_global_zero:
            return
        scores = validation_scores(trainer)
        said = [f"nll/word {scores['nll_per_word']:.3f}", f"perplexity {scores['perplexity']:.2f}"]
        if "bleu" in scores:
            said.append(f"greedy BLEU {scores['bleu']:.1f}")
        if "alignment_error_rate" in scores:
            said.append(f"AER {scores['alignment_error_rate']:.3f}")
        if "eos_weight" in scores:
            said.append(f"attention on </s> {scores['eos_weight']:.2f}")
        with tqdm.external_write_mode(sys.stderr):  # or the line would break the bar
            log.info(f"update {trainer.global_step}: development " + ", ".join(said))

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._time_validation()
        self.left.expect({"updates": 0, "validations": 0})  # training may end early
        self._end()

    def on_exception(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException
    ) -> None:
        self._end()

    def _time_validation(self) -> None:
        """Counts a validation as done; by now the checkpoint after it is written."""
        if self._validation_began is not None:
            self.left.done("validations", 1, time.monotonic() - self._validation_began)
            self._validation_began = None

    def _end(self) -> None:
        for stage in (self._validation, self._training):
            if stage is not None:
                stage.end()

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
        self.left.done("updates", trainer.global_step - self._updates, elapsed)
        self._updates = trainer.global_step
        self._scores = f"nll/word {nll / words:.3f}, {rate:,.0f} words/s, "
        if self._training is not None:
            self._training.note(f"{self._scores}{self.left}")


def work_ahead(trainer: pl.Trainer) -> dict[str, float]:
    """The updates and validations that a trainer has still to make."""
    made, every = trainer.global_step, trainer.val_check_interval
    every = int(every) // trainer.accumulate_grad_batches
    validations = trainer.max_steps // every - made // every
    return {"updates": trainer.max_steps - made, "validations": validations}
