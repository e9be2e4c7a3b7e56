"""The updates of a training run: its model, callbacks and Trainer, and their outcome."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from typing import Any

import pytorch_lightning as pl
import torch

from nmt.config import Config, TrainConfig
from nmt.config.schema import scoring_of
from nmt.data.module import TranslationData
from nmt.data.prepare import Prepared
from nmt.data.sources.open import file_digests
from nmt.inference.test_loop import mean_nll
from nmt.inference.trained import TrainedModel, make_codec
from nmt.inference.unknown_words import learn_dictionary, pairs_of_rare_words
from nmt.models import build_model
from nmt.models.checkpoint import complete_checkpoint, description, read_checkpoint
from nmt.run.early_checks import own_code
from nmt.run.finish import Outcome
from nmt.run.folder import RunFolder
from nmt.run.run import Run
from nmt.run.sources import initial_source
from nmt.run.test import training_batches, training_sample
from nmt.training.callbacks import make_callbacks, misfit, stop_by_patience
from nmt.training.checkpoints import Checkpoints, Seeds
from nmt.training.lightning import is_of_restoring, on_every_rank
from nmt.training.progress import Progress
from nmt.training.trainer import make_trainer
from nmt.training.validation import Validation
from nmt.training.wandb_logger import ResumableWandbLogger
from nmt.utils.devices import name_of, peak_memory, resolve_precision
from nmt.utils.environment import rank
from nmt.utils.errors import InputError, RunError
from nmt.utils.progress import Stage, counted, timed

log = logging.getLogger(__name__)


class Training:
    """A model and what trains it.

    Attributes:
        model: freshly initialised, or with the weights that it starts from, until `fit`.
        trainer: Lightning's.
        checkpoints: the callback that knows the validations.
        named: the callbacks that the configuration names.
    """

    def __init__(self, run: Run, text: Prepared) -> None:
        config, stop = run.config, run.stop
        assert isinstance(config, TrainConfig)
        assert stop is not None
        self.run = run
        self.text = text
        vocabularies = text.source_vocabulary, text.target_vocabulary
        self.codec = make_codec(config, *vocabularies)
        pl.seed_everything(config.seed, verbose=False)
        self.model = build_model(config, *map(len, vocabularies))
        self.model.description = description(
            config,
            *vocabularies,
            text.fingerprint,
            text_files=file_digests(config.data),
            wandb=run.logger.identity() if isinstance(run.logger, ResumableWandbLogger) else None,
            typed=run.typed,
            initial=initial_source(run),
        )
        if run.initial is not None:
            self.model.load_state_dict(run.initial.weights)
        self.progress = Progress(
            show=config.trainer.progress,
            every=config.trainer.log_every,
            left=run.left,
            validated=len(text.valid),
        )
        run.left.expect({"training sample": sum(self._samples().values())})
        self.checkpoints = Checkpoints(run.folder.checkpoints, config, stop)
        self.named = make_callbacks(config)
        callbacks = training_callbacks(config, text, self.progress, self.named, self.checkpoints)
        if not run.is_trial:
            callbacks.insert(0, SetResultsAside(run.folder))
        self.trainer = run.trainer = make_trainer(config, run.folder.path, callbacks, run.logger)
        self.data = TranslationData(text, config)

    def fit(self) -> None:
        """Makes the remaining updates; signals take effect between two of them."""
        run = self.run
        assert run.stop is not None
        log.info(headline(run.config, self.model, self.trainer))
        path = run.checkpoint.path if run.checkpoint else None
        begun = run.checkpoint.update if run.checkpoint else 0
        with run.stop.deferring():
            try:
                self.trainer.fit(self.model, self.data, ckpt_path=path, weights_only=True)
            except Exception as error:
                known = isinstance(
                    error, InputError | RunError | MemoryError | torch.OutOfMemoryError
                )
                machines = isinstance(error, OSError) or self.trainer.world_size > 1
                # of an error after an update it is not the configuration that is wrong
                early = self.trainer.global_step <= begun and not (known or machines)
                if early and (said := misfit(error, run.config, self.named)):
                    raise said from error
                if path is None or known or not is_of_restoring(error):
                    raise
                reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
                raise InputError(
                    f"resume: {path}: its training state cannot be restored ({reason})"
                ) from error
        if not rank() and not run.is_trial:
            run.folder.set_results_aside()  # of a finished run, for which no update was left

    def say_tried(self) -> None:
        """Logs the end of a trial (`fast_dev_run`), which keeps nothing."""
        trainer = self.trainer
        log.info(
            "trial run (trainer.lightning.fast_dev_run=%s): training and validation work, updates "
            "made: %d; no checkpoint, no log of scores and no results.json were kept",
            self.run.config.trainer.lightning["fast_dev_run"], trainer.global_step,
        )  # fmt: skip

    def finish(self) -> tuple[TrainedModel, Outcome]:
        """The model of the best checkpoint, and the outcome of the training.

        The outcome, and the dictionary learnt from the attention, are added to the checkpoint.
        """
        config = self.run.config
        if self.trainer.is_global_zero:
            self.checkpoints.replace_damaged_best()
        self.trainer.strategy.barrier()
        path = self.run.folder.checkpoints.best
        self.model.load_state_dict(read_checkpoint(path, own_code(config)).weights)
        self.trainer.strategy.barrier()  # what follows is added to the file that all have read now
        trained = TrainedModel(self.model.network, self.codec, config)
        train = self.summary() | {"nll_per_sentence": self._train_nll(trained)}
        dictionary = self._dictionary(trained)
        if self.trainer.is_global_zero:
            complete_checkpoint(path, train, dictionary)
        progress = self.checkpoints.progress
        outcome = Outcome(train, progress.best or {}, progress.history)
        return dataclasses.replace(trained, dictionary=dictionary), outcome

    def summary(self) -> dict[str, Any]:
        """Updates, epochs, time, device and speed of the training."""
        updates, device = self.trainer.global_step, self.trainer.strategy.root_device
        return {
            "updates": updates,
            "epochs": self.data.schedule.epoch(updates),
            "hours": self.checkpoints.hours(),
            "device": name_of(device),
            "devices": self.trainer.world_size,
            "precision": str(self.trainer.precision),
            **self.progress.rates(),
            "peak_memory": peak_memory(device),
        }

    def _train_nll(self, trained: TrainedModel) -> float | None:
        """NLL of a fixed sample of the training pairs; None where none is asked for."""
        wanted = self._samples()["nll"]
        if not wanted:
            return None
        train = self.text.train
        name = "likelihood of a sample of the training pairs"
        with timed(name), self._stage(name, wanted) as stage:
            return on_every_rank(
                self.trainer,
                trained.model,
                lambda: mean_nll(
                    trained,
                    training_batches(trained.config, train, training_sample(train, wanted)),
                    lambda pairs: stage.advance(pairs * self.trainer.world_size),
                ),
            )

    def _dictionary(self, trained: TrainedModel) -> dict[str, str] | None:
        """The dictionary for `search.replace_unk`; None where none can be learnt.

        It is learnt whatever `search.replace_unk` says, so that the checkpoint serves both ways.
        """
        wanted = self._samples()["dictionary"]
        if not wanted:
            return None
        name, train = "dictionary of unknown words", self.text.train
        rows = pairs_of_rare_words(train, training_sample(train, wanted))
        self.run.left.expect({"training sample": len(rows)})
        with timed(name), self._stage(name, len(rows)) as stage:
            dictionary = on_every_rank(
                self.trainer,
                trained.model,
                lambda: learn_dictionary(
                    trained,
                    train,
                    training_batches(trained.config, train, rows),
                    lambda pairs: stage.advance(pairs * self.trainer.world_size),
                ),
            )
        words, learnt = counted(len(dictionary), "source word"), counted(len(rows), "pair")
        log.info("dictionary from attention: %s of %s", words, learnt)
        return dictionary

    def _samples(self) -> dict[str, int]:
        """Numbers of training pairs in the samples for `nll` and `dictionary`."""
        options, most = self.run.config.evaluation, len(self.text.train)
        # subwords leave no word unknown
        learns = self.model.network.attends and self.codec.source.kind == "words"
        return {
            "nll": min(options.train_sample, most),
            "dictionary": min(options.dictionary_sample, most) if learns else 0,
        }

    def _stage(self, title: str, pairs: int) -> Stage:
        """The progress of work on a sample of training pairs."""
        shown, left = self.run.config.trainer.progress, self.run.left
        return Stage(title, pairs, "sentence", shown=shown, left=left, kind="training sample")


class SetResultsAside(pl.Callback):
    """Renames results.json when updates begin, for the run is then unfinished; all checks have passed."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.is_global_zero:
            self.folder.set_results_aside()


def training_callbacks(
    config: TrainConfig,
    text: Prepared,
    progress: Progress,
    named: Sequence[pl.Callback],
    checkpoints: Checkpoints,
) -> list[pl.Callback]:
    """The Trainer's callbacks, in their order; `named` are those that the configuration names."""
    patience = stop_by_patience(config.trainer)
    return [
        *(Seeds(config.seed), Validation(text, config), progress),
        *([patience] if patience else []),
        *named,
        checkpoints,
    ]  # last: it stores the state of the others


def headline(config: Config, model: pl.LightningModule, trainer: pl.Trainer) -> str:
    """A line on the model, the updates and the device of a training."""
    options = config.trainer
    parameters = sum(parameter.numel() for parameter in model.parameters())
    size = f"{parameters / 1e6:.1f} M" if parameters >= 1e6 else f"{parameters:,}"
    devices = f"{trainer.world_size} x " if trainer.world_size > 1 else ""
    scoring = (scoring_of(config.model) or "none").rpartition(".")[2]
    by_tokens = config.data.batch_by == "tokens"
    batch = (
        f"at most {counted(config.data.batch_tokens, 'token')}"
        if by_tokens
        else counted(config.data.batch_size, "sentence")
    )
    return (
        f"training {config.name} ({size} parameters, scoring {scoring}, "
        f"{config.model.recurrence} recurrence) for {counted(trainer.max_steps, 'update')} of {batch} on "
        f"{devices}{name_of(trainer.strategy.root_device)}, "
        f"precision {resolve_precision(options.precision, options.accelerator)}"
    )
