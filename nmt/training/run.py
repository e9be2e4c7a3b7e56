"""Creates a `Run` with its configuration, checkpoint, folder, text and loggers."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import lightning_fabric
import pytorch_lightning as pl
from hydra.core.hydra_config import HydraConfig
from pytorch_lightning.loggers import Logger

from nmt.config.code import user_code
from nmt.config.commands import EvaluateConfig, TrainConfig
from nmt.config.keys import WEIGHTS, effect_of, flatten, is_within
from nmt.config.overrides import apply_overrides, differences, refuse_changes
from nmt.config.schema import Config, to_containers
from nmt.data.preparation import Prepared, prepare
from nmt.evaluation import results
from nmt.evaluation.scores import choose_scores
from nmt.inference.load import read_members
from nmt.models.checkpoint import Checkpoint
from nmt.training.loggers import connect, make_loggers
from nmt.utils.devices import set_threads
from nmt.utils.environment import git_commit, output_folder, rank
from nmt.utils.errors import InputError
from nmt.utils.quoting import as_typed, command_line, override_key, quoted
from nmt.utils.text import as_list, without_home

log = logging.getLogger(__name__)

WRITTEN = ("dirpath", "save_dir", "dir", "default_root_dir")  # arguments for output folders
BELOW = ("filename", "name", "version", "sub_dir")  # arguments for paths inside these folders


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
    """A run, with its configuration, folder, checkpoints, text and loggers.

    Attributes:
        config: the validated configuration; `config.threads` is the number of threads in use.
        folder: the folder that the run writes to.
        overrides: Hydra overrides. Those of a resumed run include its original overrides.
        checkpoint: the checkpoint to resume or evaluate; None for a new training run.
        others: the checkpoints of the other members, if an ensemble is evaluated.
        initial: the checkpoint from which a new training run takes weights and vocabularies, or None.
        loggers: the loggers that log the scores.
        trainer: Lightning's Trainer, or None before it is built.
        text: the prepared text of a training run, which `prepare_text` sets. None for an evaluation.
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
    text: Prepared | None = None
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

    def prepare_text(self) -> Prepared:
        """Prepares the data, or loads it from the cache.

        Raises:
            InputError: if the text is invalid (see `prepare`), or if the checkpoint was trained on other text.
        """
        config = self.config
        vocabularies = None
        if isinstance(config, TrainConfig) and config.initial_checkpoint is not None:
            source = self.initial or self.checkpoint
            vocabularies = source.vocabularies if source else None
        text = prepare(config.data, config.tokenizer, vocabularies)
        log.info("prepared text:\n%s", text.summary())
        for doubt in text.doubts():
            log.warning("%s", doubt)
        self.text = text
        if self.checkpoint is not None and self.checkpoint.about["fingerprint"] != text.fingerprint:
            raise InputError(
                "the training or development text differs from the checkpoint's; restore the text, or "
                "start a new run"
            )
        return text

    @contextlib.contextmanager
    def logging_run(self) -> Iterator[None]:
        """Logs the configuration at the start, and closes W&B's run at the end."""
        exit_code = 1
        try:
            for each in self.loggers:
                connect(each)
                each.log_hyperparams(without_home(to_containers(self.config)))
            yield
            exit_code = 0
        finally:
            wandb = sys.modules.get("wandb")
            if wandb and rank() == 0:
                with contextlib.suppress(Exception):  # a network error must not fail a finished run
                    wandb.finish(exit_code=exit_code)


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


def resume_command(config: Config, folder: Path) -> str:
    """Returns the command that resumes a training run, and names its code and folders outside `folder`."""
    overrides = [f"resume={quoted(str(folder))}"]
    if trusted := user_code(config):
        overrides.append(f"trust=[{','.join(trusted)}]")
    overrides += [f"{key}={quoted(value)}" for key, value in outside(config, folder).items()]
    return as_typed(command_line("train", overrides))


def refuse_outside(
    config: TrainConfig, composed: TrainConfig, folder: Path, overrides: Sequence[str]
) -> None:
    """Refuses a folder outside the run's folder if the checkpoint names it and the user does not.

    The checkpoint may come from someone else, so it must not choose where files are written.

    Raises:
        InputError: if such a folder is neither set in `overrides` nor the same in `composed`.
    """
    typed = [override_key(word) for word in overrides]
    own = outside(composed, folder)
    for path, value in outside(config, folder).items():
        if value != own.get(path) and not is_within(path, typed):
            raise InputError(
                f"{path}={value}: the checkpoint names a folder outside the run's folder; "
                f"type {path}=FOLDER to choose one"
            )


def outside(config: Config, folder: Path) -> dict[str, str]:
    """Returns the settings of callbacks, loggers and Trainer that are paths outside the run's folder."""
    found = {}
    for section in ("callbacks", "logger", "trainer"):
        for path, value in flatten({section: getattr(config, section)}).items():
            name = path.rpartition(".")[2]
            if name in WRITTEN or (name in BELOW and isinstance(value, str)):
                place = Path(value or folder) if name in WRITTEN else folder / value
                if not place.resolve().is_relative_to(folder.resolve()):
                    found[path] = str(value)
    return found


def refuse_other_kind(config: TrainConfig, initial: TrainConfig) -> None:
    """Refuses initial weights whose model, vocabularies or languages differ from those of `config`.

    Raises:
        InputError: if there is such a difference. The message lists the keys and values that the weights need.
    """
    needed = [
        f"{path}={json.dumps(needs)}"
        for path, (needs, _) in differences(*map(to_containers, (initial, config))).items()
        if effect_of(TrainConfig, path) == WEIGHTS
    ]
    if needed:
        raise InputError(
            f"initial_checkpoint={config.initial_checkpoint}: its weights and vocabularies need "
            f"{' '.join(needed)}"
        )


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
