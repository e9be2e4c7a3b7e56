"""A run from its start: configuration, checkpoint, folder, text and loggers."""

from __future__ import annotations

import contextlib
import logging
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytorch_lightning as pl
from hydra.core.hydra_config import HydraConfig
from pytorch_lightning.loggers import Logger

from nmt.config import Config, EvaluateConfig, TrainConfig
from nmt.config.loading import (
    apply_overrides,
    merge_overrides,
    own_code,
    refuse_changes,
    refuse_other_kind,
)
from nmt.config.schema import to_containers
from nmt.data.prepare import Prepared, prepare
from nmt.evaluation import results
from nmt.evaluation.scores import choose_scores
from nmt.inference.load import read_members
from nmt.models.checkpoint import Checkpoint
from nmt.training.loggers import make_loggers
from nmt.training.signals import Stop
from nmt.utils.devices import resolve_threads, use_threads
from nmt.utils.environment import git_commit, output_folder, rank
from nmt.utils.errors import InputError
from nmt.utils.text import as_list

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunFolder:
    """The folder that a run writes into.

    Attributes:
        last: the checkpoint that a run is resumed from.
        best: the checkpoint that is tested.
        results: results.json; where it exists the run is finished.
    """

    path: Path
    last: Path
    best: Path
    results: Path

    @classmethod
    def of_this_command(cls) -> RunFolder:
        """The folder that Hydra has made for the running command."""
        path = output_folder()
        kept = path / "checkpoints"
        return cls(path, kept / "last.ckpt", kept / "best.ckpt", path / results.FILE)

    def refuse_used(self) -> None:
        """Refuses to write over another run's results or checkpoints; raises InputError."""
        used = [path for path in (self.results, self.last, self.best) if path.exists()]
        if used and rank() == 0:
            raise InputError(
                f"hydra.run.dir={self.path}: holds a run already ({used[0].name}); resume=auto goes "
                "on with it, another hydra.run.dir starts a new one"
            )


@dataclass
class Run:
    """The state that the steps of a run share.

    Attributes:
        config: checked, with a number of threads.
        folder: the folder that the run writes into.
        overrides: Hydra overrides. A resumed run also keeps its original ones.
        checkpoint: the checkpoint that is resumed or evaluated; None for a new training.
        others: the other members of an ensemble that is evaluated.
        initial: the checkpoint that a new training takes weights and vocabularies from, if any.
        loggers: Lightning's loggers, which get the scores.
        trainer: Lightning's Trainer; None until it is built.
        text: the prepared text of a training; None before, and for an evaluation.
        commit: of the code when the run was started or resumed; None if it is not known.
    """

    config: Config
    folder: RunFolder
    overrides: Sequence[str]
    checkpoint: Checkpoint | None = None
    others: Sequence[Checkpoint] = ()
    initial: Checkpoint | None = None
    loggers: Sequence[Logger] = ()
    trainer: pl.Trainer | None = None
    text: Prepared | None = None
    commit: str | None = field(default_factory=git_commit)

    @property
    def members(self) -> list[Checkpoint]:
        """The checkpoints that are evaluated as one model."""
        return [self.checkpoint, *self.others] if self.checkpoint else []

    def __post_init__(self) -> None:
        config, trainer = self.config, self.config.trainer
        choose_scores(config.evaluation.scores)  # a wrong name would be noticed after hours
        processes = trainer["devices"] if isinstance(trainer["devices"], int) else 1
        config.threads = resolve_threads(
            config.threads, trainer["accelerator"], config.model.hidden, processes
        )
        use_threads(config.threads)
        if not trainer.get("fast_dev_run"):
            self.loggers = make_loggers(config, self.folder.path)

    def prepare_text(self) -> Prepared:
        """The text of the run, prepared now or before.

        Raises:
            InputError: as `prepare`, and where the text of a resumed run has changed.
        """
        config, vocabularies = self.config, None
        if isinstance(config, TrainConfig) and config.initial_checkpoint is not None:
            source = self.initial or self.checkpoint
            vocabularies = source.vocabularies if source else None
        text = prepare(config.data, config.tokenizer, vocabularies)
        log.info("prepared text:\n%s", text.summary())
        self.text = text
        if self.checkpoint is not None and self.checkpoint.fingerprint != text.fingerprint:
            raise InputError(
                "the training or development text is not the one the run was started with "
                f"(fingerprint {text.fingerprint}, was {self.checkpoint.fingerprint}); restore it, "
                "or start a new run"
            )
        return text

    @contextlib.contextmanager
    def logging_run(self) -> Iterator[None]:
        """Logs the configuration, and closes W&B's run at the end. The run now changes its folder."""
        exit_code = 1
        try:
            for each in self.loggers:
                each.log_hyperparams(to_containers(self.config))
            yield
            exit_code = 0
        finally:
            if "wandb" in sys.modules and rank() == 0:
                import wandb

                with contextlib.suppress(Exception):  # no network must not fail a finished run
                    wandb.finish(exit_code=exit_code)


def make_training_run(composed: TrainConfig, stop: Stop) -> Run:
    """Starts or resumes a training, which `stop` may end.

    Raises:
        InputError: if the checkpoint does not exist or does not go with what is typed, or if the
            folder of a new run holds another run.
    """
    quieten()
    folder, overrides = RunFolder.of_this_command(), HydraConfig.get().overrides.task
    path = resume_path(composed, folder)
    source = path or composed.initial_checkpoint
    stop.trust = own_code(composed)
    if source is None:
        return Run(composed, folder, overrides)
    [checkpoint] = read_members([source], [*composed.trust, *stop.trust])
    if path is None:
        refuse_other_kind(composed, checkpoint.config)
        log.info("starting from the weights of %s, update %d", checkpoint.path, checkpoint.update)
        return Run(composed, folder, overrides, initial=checkpoint)
    config = apply_overrides(checkpoint.config, composed, overrides)
    stop.trust = own_code(config)
    if composed.resume is not None:  # `auto`: the line of the start is typed once more
        refuse_changes(checkpoint.config, composed if composed.resume == "auto" else config)
    log.info("going on from %s, update %d", path, checkpoint.update)
    log.info("settings kept from its start: %s", " ".join(checkpoint.overrides) or "the defaults")
    return Run(config, folder, merge_overrides(checkpoint.overrides, overrides), checkpoint)


def resume_path(composed: TrainConfig, folder: RunFolder) -> Path | None:
    """The checkpoint of `resume` or `ckpt_path`; None for a new training. Raises InputError."""
    resume = composed.resume
    if resume not in (None, "auto") and Path(resume).resolve() != folder.path.resolve():
        raise InputError(
            f"resume={resume}: a run is resumed in its own folder; leave out hydra.run.dir"
        )
    # after a kill between the first two writes there is only the best one
    kept = [path for path in (folder.last, folder.best) if path.is_file()]
    if resume is not None and kept:
        return kept[0]
    if resume not in (None, "auto"):
        raise InputError(f"resume={resume}: no checkpoint {folder.last}")
    folder.refuse_used()
    return None if composed.ckpt_path is None else Path(composed.ckpt_path)


def make_evaluation_run(composed: EvaluateConfig) -> Run:
    """Starts an evaluation of a checkpoint, or of several as one model, in a new folder.

    Raises:
        InputError: if a checkpoint cannot be read, or the folder holds a run.
    """
    quieten()
    folder, overrides = RunFolder.of_this_command(), HydraConfig.get().overrides.task
    folder.refuse_used()
    checkpoint, *others = read_members(as_list(composed.checkpoint), composed.trust)
    config = apply_overrides(checkpoint.config, composed, overrides)
    if others and composed.name is None:
        config.name = f"{config.name}, {1 + len(others)} models"
    return Run(config, folder, overrides, checkpoint, others)


def make_baseline_run(composed: Config) -> Run:
    """Starts the run of a phrase-based system; raises InputError if its folder holds a run."""
    quieten()
    folder = RunFolder.of_this_command()
    folder.refuse_used()
    return Run(composed, folder, HydraConfig.get().overrides.task)


def quieten() -> None:
    """Silences Lightning's warnings about intended settings, and ranks that repeat the first."""
    if rank():
        logging.getLogger("nmt").setLevel(logging.WARNING)
    for name in ("pytorch_lightning", "lightning_fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for message in (
        ".*does not have many workers.*",
        ".*GPU available but not used.*",
        ".*compute.* method of metric.*was called before the.*update.*",
        ".*Checkpoint directory.*exists and is not empty.*",
        ".*Experiment logs directory.*exists and is not empty.*",
        ".*Trying to infer the `batch_size` from an ambiguous collection.*",
        ".*The `srun` command is available.*",
        ".*recommended to use `self.log.*sync_dist=True.*",
        ".*`isinstance\\(treespec, LeafSpec\\)` is deprecated.*",
    ):
        warnings.filterwarnings("ignore", message)
