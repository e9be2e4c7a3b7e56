"""Trains the model of a run: creates the callbacks and the Trainer, trains, and returns the outcome."""

from __future__ import annotations

import dataclasses
import logging
import re
import shutil
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import ModelCheckpoint
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch.optim.lr_scheduler import ReduceLROnPlateau

from nmt.config.changes import differences, effect_of, resume_command
from nmt.config.code import user_code
from nmt.config.commands import INITIAL_CHECKPOINT, TrainConfig
from nmt.config.keys import LENGTH
from nmt.config.schema import to_containers
from nmt.data.module import TranslationData
from nmt.data.preparation import Prepared
from nmt.fused import backend_of
from nmt.inference.model import Model
from nmt.inference.training_pairs import learn_dictionary, sampled_nll
from nmt.models import build_model
from nmt.models.checkpoint import complete_checkpoint, read_checkpoint
from nmt.training.callbacks import (
    CheckMonitors,
    Heatmaps,
    RenameResults,
    SampleTranslation,
    Seeds,
)
from nmt.training.outcome import describe_initial
from nmt.training.ranks import on_every_rank
from nmt.training.run import Run
from nmt.training.trainer import make_callbacks, make_trainer, target_of
from nmt.training.training_log import TrainingRecord
from nmt.utils.devices import name_of, peak_memory
from nmt.utils.errors import InputError, RunError, first_line
from nmt.utils.files import write_atomically

log = logging.getLogger(__name__)

FAILED_GPU = re.compile(  # GPU errors other than lack of memory or an unsupported GPU
    r"CUDA error(?!: out of memory|: no kernel image)|Triton Error \[CUDA\]"
    r"|CUBLAS_STATUS_(?!ALLOC_FAILED)|NCCL error"
)


class Training:
    """Trains the model of a run.

    The constructor creates the callbacks and the Trainer, and raises InputError for wrong settings.

    Args:
        run: the run to train. The constructor sets `run.trainer`.

    Attributes:
        record: the callback that records validations, time and speed.
    """

    def __init__(self, run: Run) -> None:
        config, folder = run.config, run.folder
        self.run = run
        self.record = TrainingRecord()
        first = [
            RenameResults(folder.results),
            Seeds(config.seed),
            SampleTranslation(config.search.max_ratio),  # before averaged weights are swapped back
            Heatmaps(config.evaluation.edges or ()),
        ]
        last = [
            self.record,
            CheckMonitors(config.callbacks),
        ]
        callbacks = [*first, *make_callbacks(config.callbacks, folder.path), *last]
        # A large text takes long to prepare, so check first that the configured classes exist.
        target_of("model", vars(config.model))
        for name in ("encoder", "unit", "attention", "scoring"):
            settings = getattr(config.model, name) or {}
            if settings.get("_target_"):
                target_of(f"model.{name}", settings)
        target_of("optimizer", vars(config.optimizer))
        if target_of("optimizer.schedule", config.optimizer.schedule) is ReduceLROnPlateau:
            raise InputError(
                "optimizer.schedule: ReduceLROnPlateau needs a score; choose another schedule"
            )
        self.trainer = make_trainer(config.trainer, folder.path, callbacks, run.loggers)
        run.trainer = self.trainer

    def fit(self, text: Prepared) -> None:
        """Trains until `max_steps`, `max_epochs` or early stopping."""
        run = self.run
        trainer = self.trainer
        config = self.run.config
        self.text = text
        pl.seed_everything(config.seed, verbose=False)
        self.model = build_model(config, *map(len, text.vocabularies))
        self.model.description = {
            "overrides": list(run.overrides),
            "initial": describe_initial(run),
        }
        if run.initial is not None:
            self.model.load_state_dict(run.initial.weights)
        self.data = TranslationData(text, config)
        if not config.trainer.get("fast_dev_run"):
            trust = user_code(config)
            command = resume_command(config, run.folder.path, trust)
            log.info("to resume the run after a stop, type: %s", command)
        path = run.checkpoint.path if run.checkpoint else None
        stored = run.checkpoint.config if run.checkpoint else config
        changed = differences(to_containers(stored), to_containers(config))
        is_extended = any(effect_of(TrainConfig, key) == LENGTH for key in changed)
        is_copied = path not in (None, run.folder.last, run.folder.best)
        self.record.continues = is_extended or is_copied
        if run.checkpoint and config.trainer.get("fast_dev_run"):
            # For fast_dev_run, Lightning's `max_steps` excludes the updates before the checkpoint. Add them.
            trainer.fit_loop.epoch_loop.max_steps += run.checkpoint.update
            trainer.fit_loop.max_epochs = -1
        try:
            # `weights_only` only restricts unpickling. Lightning still restores the optimizer.
            trainer.fit(self.model, self.data, ckpt_path=path, weights_only=True)
        except MisconfigurationException as error:  # e.g. a monitored metric is missing
            raise InputError(first_line(error)) from error
        except RuntimeError as error:
            if FAILED_GPU.search(str(error)):
                raise RunError(self._gpu_failure(error)) from error
            raise
        self._name_best()

    def _name_best(self) -> None:
        """Names the best of several kept checkpoints best.ckpt (`callbacks.best.save_top_k`)."""
        for each in self.trainer.checkpoint_callbacks:
            if not isinstance(each, ModelCheckpoint) or each.filename != "best-{step}":
                continue
            if each.best_model_path and self.trainer.is_global_zero:
                with open(each.best_model_path, "rb") as best:
                    write_atomically(self.run.folder.best, partial(shutil.copyfileobj, best))
        self.trainer.strategy.barrier()  # no rank may read best.ckpt before

    def _gpu_failure(self, error: BaseException) -> str:
        """Returns the error message for a GPU that this process cannot use any more."""
        begun = self.run.folder.last.is_file()
        again = f"resume={self.run.folder.path}" if begun else "the same command"
        return (
            f"the GPU has failed ({first_line(error)}); type {again}; if it fails again, add "
            "model.kernels=false model.graphs=false"
        )

    def finish(self) -> tuple[Model, dict[str, Any]]:
        """Returns the trained model and its outcome.

        The model has the weights of best.ckpt, or of last.ckpt if there is no best.ckpt. The outcome has the entries
        `train`, `valid`, `history` and `initial_checkpoint` of results.json. If `search.replace_unk=dictionary`, the
        dictionary is learnt here.
        """
        config, text = self.run.config, self.text
        checkpoint = read_checkpoint(self.run.folder.tested, user_code(config))
        self.model.load_state_dict(checkpoint.weights)
        model = Model(self.model.network, *text.vocabularies, config)
        dictionary = None
        if config.search.replace_unk == "dictionary":
            dictionary = on_every_rank(
                self.trainer, model.network, lambda: learn_dictionary(model, text.train)
            )
        history = self.record.history
        valid = next((entry for entry in history if entry["update"] == checkpoint.update), {})
        outcome = {"train": self.summary(), "valid": valid, "history": history}
        outcome[INITIAL_CHECKPOINT] = self.model.description["initial"]
        return dataclasses.replace(model, dictionary=dictionary), outcome

    def complete(self, model: Model, outcome: Mapping[str, Any]) -> dict[str, Any]:
        """Adds the NLL of a sample of training pairs to the outcome, and stores the outcome in the tested checkpoint.

        Returns the complete outcome. The NLL comes last, since only a table shows it.
        """
        complete = dict(outcome)
        if pairs := self.run.config.evaluation.train_sample:
            nll = on_every_rank(
                self.trainer, model.network, lambda: sampled_nll(model, self.text.train, pairs)
            )
            complete["train"] = {**outcome["train"], "nll_per_sentence": nll}
        self.trainer.strategy.barrier()  # all ranks must have read the file before rank 0 changes it
        if self.trainer.is_global_zero:
            complete_checkpoint(self.run.folder.tested, complete, model.dictionary)
        return complete

    def best_score(self) -> float | None:
        """Returns the monitored score of the best checkpoint, or None before the first validation."""
        for each in self.trainer.checkpoint_callbacks:
            if isinstance(each, ModelCheckpoint) and each.best_model_score is not None:
                return float(each.best_model_score)
        return None

    def summary(self) -> dict[str, Any]:
        """Returns updates, epochs, time, device and speed of the training."""
        updates = self.trainer.global_step
        device = self.trainer.strategy.root_device
        return {
            "updates": updates,
            "epochs": self.data.schedule.epoch(updates),
            "hours": self.record.hours,
            "stopped_early": self.record.stopped_early,
            "device": name_of(device),
            "devices": self.trainer.world_size,
            "precision": str(self.trainer.precision),
            **self.record.rates(),
            "peak_memory": peak_memory(device),
            **(self._way() if device.type == "cuda" else {}),
        }

    def _way(self) -> dict[str, bool]:
        """Returns whether updates used CUDA graphs, and whether the last updates used GPU kernels."""
        return {**self.model.way._asdict(), "kernels": backend_of(self.model.network).kernels}
