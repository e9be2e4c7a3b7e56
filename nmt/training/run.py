"""Creates a `Run` with its configuration, checkpoint, folder and loggers."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import lightning_fabric
import pytorch_lightning as pl
from hydra.core.hydra_config import HydraConfig
from pytorch_lightning.loggers import Logger

from nmt.config.changes import (
    apply_overrides,
    refuse_changes,
    refuse_other_kind,
    refuse_outside,
)
from nmt.config.code import user_code
from nmt.config.commands import EvaluateConfig, TrainConfig
from nmt.config.schema import Config, to_containers
from nmt.data.vocabulary import Vocabularies
from nmt.evaluation import results
from nmt.evaluation.scores import choose_scores
from nmt.inference.load import read_members
from nmt.models.checkpoint import Checkpoint
from nmt.training.loggers import make_loggers
from nmt.utils.devices import set_threads
from nmt.utils.environment import git_commit, output_folder, rank
from nmt.utils.errors import InputError
from nmt.utils.text import as_list

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunFolder:
    """The folder that a run writes to.

    Attributes:
        last: the checkpoint to resume from.
        best: the best checkpoint, if a score has selected one.
        results: results.json, which exists only after the run has finished.
    """

    path: Path
    last: Path
    best: Path
    results: Path

    @classmethod
    def of_this_command(cls) -> RunFolder:
        """Returns the folder that Hydra created for this command."""
        path = output_folder()
        kept = path / "checkpoints"
        return cls(path, kept / "last.ckpt", kept / "best.ckpt", path / results.FILE)

    @property
    def tested(self) -> Path:
        """The checkpoint to test: the best one, or the last one without a best one."""
        return self.best if self.best.is_file() else self.last

    def refuse_used(self) -> None:
        """Raises InputError on rank 0 if the folder already contains a run."""
        used = [path for path in (self.results, self.last, self.best) if path.exists()]
        if used and rank() == 0:
            raise InputError(
                f"hydra.run.dir={self.path}: already contains a run ({used[0].name}). To resume "
                "a training, add resume=auto; otherwise choose another hydra.run.dir."
            )


@dataclass
class Run:
    """A run, with its configuration, folder, checkpoints and loggers.

    Attributes:
        config: the validated configuration; `config.threads` is the number of threads in use.
        folder: the folder that the run writes to.
        overrides: Hydra overrides. Those of a resumed run include its original overrides.
        checkpoint: the checkpoint to resume or evaluate; None for a new training run.
        others: the checkpoints of the other members, if an ensemble is evaluated.
        initial: the checkpoint from which a new training run takes weights and vocabularies, or None.
        loggers: the loggers that log the scores.
        trainer: Lightning's Trainer, or None before it is built.
        commit: the commit of the code when the run was started or resumed; None if unknown.
    """

    config: Config
    folder: RunFolder
    overrides: Sequence[str]
    checkpoint: Checkpoint | None = None
    others: Sequence[Checkpoint] = ()
    initial: Checkpoint | None = None
    loggers: Sequence[Logger] = ()
    trainer: pl.Trainer | None = None
    commit: str | None = field(default_factory=git_commit)

    @property
    def members(self) -> list[Checkpoint]:
        """The checkpoints that are evaluated as one model."""
        return [self.checkpoint, *self.others] if self.checkpoint else []

    def __post_init__(self) -> None:
        config = self.config
        trainer = self.config.trainer
        choose_scores(config.evaluation.scores)  # fail early if a score is unknown
        # On a CPU, the processes of a run share the cores, and devices=auto starts one process.
        processes = trainer["devices"] if isinstance(trainer["devices"], int) else 1
        config.threads = set_threads(
            config.threads, trainer["accelerator"], config.model.hidden, processes
        )
        if not trainer.get("fast_dev_run"):
            self.loggers = make_loggers(config, self.folder.path)

    @property
    def vocabularies(self) -> Vocabularies | None:
        """The vocabularies of the initial checkpoint; None: they are learnt from the text."""
        if not isinstance(self.config, TrainConfig) or self.config.initial_checkpoint is None:
            return None
        source = self.initial or self.checkpoint
        return source.vocabularies if source else None

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of the text that the checkpoint was trained on; None for a new training run."""
        return self.checkpoint.about["fingerprint"] if self.checkpoint else None


def make_training_run(composed: TrainConfig) -> Run:
    """Creates the run of a new or resumed training.

    Raises:
        InputError: if the checkpoint does not exist or conflicts with the overrides, or if the folder
            of a new run already contains a run.
    """
    quieten()
    folder = RunFolder.of_this_command()
    overrides = HydraConfig.get().overrides.task
    path = resume_path(composed, folder)
    source = path or composed.initial_checkpoint
    if source is None:
        return Run(composed, folder, overrides)
    [checkpoint] = read_members([source], [*composed.trust, *user_code(composed)])
    if path is None:
        refuse_other_kind(composed, checkpoint.config)
        log.info("starting from the weights of %s at update %d", checkpoint.path, checkpoint.update)
        return Run(composed, folder, overrides, initial=checkpoint)
    config, remaining = apply_overrides(
        checkpoint.config, checkpoint.about["overrides"], composed, overrides
    )
    refuse_outside(config, composed, folder.path, overrides)
    # With resume=auto, the user repeats the original command, so compare all its settings with the checkpoint.
    if composed.resume == "auto":
        refuse_changes(to_containers(checkpoint.config), to_containers(composed), resumed=True)
    last = config.trainer["max_steps"]
    if (
        composed.resume is None
        and 0 < last <= checkpoint.update
        and not config.trainer.get("fast_dev_run")
    ):
        raise InputError(
            f"ckpt_path={path}: its training ended at update {checkpoint.update} of {last}; type "
            f"trainer.max_steps=N to continue it, or nmt.evaluate checkpoint={path} to test it"
        )
    log.info("resuming from %s at update %d", path, checkpoint.update)
    log.info("original overrides: %s", " ".join(checkpoint.about["overrides"]) or "none")
    return Run(config, folder, remaining, checkpoint)


def resume_path(composed: TrainConfig, folder: RunFolder) -> Path | None:
    """Returns the path of the checkpoint to resume from, or None for a new run.

    Raises:
        InputError: if `resume` names a folder that is not `folder` or has no checkpoint, or if the folder
            of a new run already contains a run.
    """
    resume = composed.resume
    if resume not in (None, "auto") and Path(resume).resolve() != folder.path.resolve():
        raise InputError(
            f"resume={resume}: a run resumes in its own folder; leave out hydra.run.dir"
        )
    # If a run is killed in its first validation, it may have best.ckpt without last.ckpt.
    kept = [path for path in (folder.last, folder.best) if path.is_file()]
    if resume is not None and kept:
        return kept[0]
    if resume not in (None, "auto"):
        raise InputError(f"resume={resume}: there is no checkpoint {folder.last}")
    folder.refuse_used()
    return None if composed.ckpt_path is None else Path(composed.ckpt_path)


def make_evaluation_run(composed: EvaluateConfig) -> Run:
    """Creates the run that evaluates one checkpoint, or several checkpoints as an ensemble.

    Raises:
        InputError: if a checkpoint cannot be read, or the folder already contains a run.
    """
    quieten()
    folder = RunFolder.of_this_command()
    overrides = HydraConfig.get().overrides.task
    folder.refuse_used()
    checkpoint, *others = read_members(as_list(composed.checkpoint), composed.trust)
    config, _ = apply_overrides(
        checkpoint.config, checkpoint.about["overrides"], composed, overrides
    )
    if others and composed.name is None:
        config.name = f"{config.name}, {1 + len(others)} models"
    return Run(config, folder, overrides, checkpoint, others)


def is_asked_for(record: logging.LogRecord) -> bool:
    """Whether a log record comes from any callback, or from code outside Lightning."""
    file = Path(record.pathname)
    lightning = {*map(Path, [*pl.__path__, *lightning_fabric.__path__])}
    return file.parent.name == "callbacks" or lightning.isdisjoint(file.parents)


def quieten() -> None:
    """Hides Lightning's info messages, some harmless warnings, and info messages of ranks other than 0.

    Messages of profilers, callbacks and user code are still shown.
    """
    if rank():
        logging.getLogger("nmt").setLevel(logging.WARNING)
    for name in ("lightning_fabric", "pytorch_lightning.accelerators", "pytorch_lightning.trainer"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("pytorch_lightning.utilities.rank_zero").addFilter(is_asked_for)
    for message in (
        ".*does not have many workers.*",
        ".*GPU available but not used.*",
        ".*compute.* method of metric.*was called before the.*update.*",
        ".*directory.*exists and is not empty.*",
        ".*Trying to infer the `batch_size` from an ambiguous collection.*",
        ".*The `srun` command is available.*",
        ".*recommended to use `self.log.*sync_dist=True.*",
        ".*`isinstance\\(treespec, LeafSpec\\)` is deprecated.*",
    ):
        warnings.filterwarnings("ignore", message)
