"""The parts of a training run that its command puts together: start, resume, callbacks, end."""

from __future__ import annotations

import logging
import math
import warnings
from pathlib import Path

import pytorch_lightning as pl
import torch
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from nmt.config.overrides import FROZEN, apply_typed, refuse_changes
from nmt.config.schema import Config, TrainConfig, scoring_of
from nmt.config.validation import validate
from nmt.data.prepare import Prepared
from nmt.data.vocabulary import SPECIAL
from nmt.evaluation import results
from nmt.evaluation.statistical_aligners import check_installed
from nmt.models import Translator, build
from nmt.models.checkpoint import Stored, read_checkpoint
from nmt.training.checkpoints import Checkpoints, Seeds, find_checkpoint, repair_checkpoints
from nmt.training.loggers import check_logger
from nmt.training.progress import Progress
from nmt.training.signals import Stop
from nmt.training.validation import Validation
from nmt.utils.devices import check_accelerator, resolve_precision
from nmt.utils.environment import rank
from nmt.utils.errors import InputError

log = logging.getLogger(__name__)


def check_early(config: Config) -> None:
    """Refuses at the start what would be found missing after hours of work.

    Raises:
        InputError: for an extra, a device, a key of W&B, or a class that is not there.
    """
    if config.evaluation.alignment.statistical_aligners:
        check_installed()
    check_logger(config.logger)
    check_accelerator(config.trainer.accelerator)
    with torch.device("meta"):
        build(config, len(SPECIAL), len(SPECIAL))


def refuse_used_folder(folder: Path) -> None:
    """Refuses to write over another run's results or checkpoints."""
    used = [path for path in [folder / results.FILE, *left_in(folder)] if path.exists()]
    if used and rank() == 0:
        raise InputError(
            f"hydra.run.dir={folder}: holds a run already ({used[0].name}); take another"
        )


def left_in(folder: Path) -> list[Path]:
    """The checkpoints that a run has left in its folder, whole or not."""
    return sorted((folder / "checkpoints").glob("*.ckpt"))


def own_code(config: DictConfig | Config) -> list[str]:
    """Modules of the model and the scoring: whoever typed or trained a configuration trusts them."""
    targets = [config.model._target_, scoring_of(config.model)]
    return [str(target).rpartition(".")[0] for target in targets if target]


def resume(composed: DictConfig, folder: Path) -> tuple[Stored | None, DictConfig]:
    """The checkpoint to go on from, if any, and the configuration to go on with.

    Raises:
        InputError: when there is none in a folder that was named, when the folder of a new run holds
            another, or a typed value changes the result.
    """
    asked = composed.resume
    named = asked not in (None, "auto")
    if named and Path(asked).resolve() != folder.resolve():
        raise InputError(
            f"resume={asked}: a run is gone on with in its own folder; leave out hydra.run.dir"
        )
    if asked is None and left_in(folder):
        raise InputError(
            f"{folder}: holds the checkpoints of a run; resume=auto goes on with it, "
            "another hydra.run.dir starts anew"
        )
    path = None if asked is None else find_checkpoint(folder)
    if path is not None:
        return resume_from(path, composed, folder)
    if named:
        raise InputError(f"resume={asked}: no checkpoint in {folder / 'checkpoints'}")
    refuse_used_folder(folder)
    return None, composed


def resume_from(path: Path, composed: DictConfig, folder: Path) -> tuple[Stored, DictConfig]:
    """A checkpoint, and its configuration with what was typed; raises InputError as `resume`."""
    stored = read_checkpoint(path, [*composed.trust, *own_code(composed)])
    typed = HydraConfig.get().overrides.task
    config = apply_typed(stored.config, composed, typed, keep=FROZEN)
    validate(config)
    refuse_changes(stored.config, config)
    check_updates(stored, config)
    log.info("going on with %s, update %d", path, stored.update)
    if rank() == 0:
        repair_checkpoints(path, stored.update, stored.progress.get("best"))
        if config.trainer.max_steps > stored.update:
            (folder / results.FILE).unlink(missing_ok=True)  # until then the run is not finished
    return stored, config


def check_updates(stored: Stored, config: DictConfig) -> None:
    """Refuses fewer updates than were made; warns where more of them bend the learning rate."""
    planned, asked = stored.config.trainer.max_steps, config.trainer.max_steps
    if asked < stored.update:
        raise InputError(
            f"trainer.max_steps={asked}: the run has made {stored.update} updates already"
        )
    optimizer = config.optimizer
    begun = stored.update > max(optimizer.decay_from * planned, optimizer.warmup)
    if optimizer.schedule == "linear" and asked != planned and begun:
        log.warning(
            "trainer.max_steps=%d: the learning rate was falling to 0 at update %d and now falls to "
            "0 at %d; the result is not that of a run planned so", asked, planned, asked
        )  # fmt: skip


def refuse_other_data(stored: Stored | None, fingerprint: str) -> None:
    """Refuses to go on with a run on other text than it was started with."""
    if stored is not None and stored.fingerprint != fingerprint:
        raise InputError(
            f"resume: the training or development text is not the one the run was started with "
            f"(fingerprint {fingerprint}, was {stored.fingerprint}); restore it, or start a new run"
        )


class TrainingCallbacks:
    """What watches the updates of a run, in the order in which it hears of them."""

    def __init__(self, config: TrainConfig, prepared: Prepared, folder: Path, stop: Stop) -> None:
        options = config.trainer
        self.validation = Validation(prepared, config)
        self.progress = Progress(options.max_steps, show=options.progress, every=options.log_every)
        self.checkpoints = Checkpoints(folder, config, stop)
        self.callbacks: list[pl.Callback] = [Seeds(config.seed), self.validation, self.progress]
        if options.patience:
            by_bleu = options.monitor == "bleu"
            self.callbacks.append(
                pl.callbacks.EarlyStopping(
                    monitor="valid/bleu" if by_bleu else "valid/nll_per_word",
                    mode="max" if by_bleu else "min",
                    patience=options.patience,
                    check_finite=False,  # an earlier and clearer error is raised for it
                )
            )
        self.callbacks.append(self.checkpoints)  # last: it stores what the others have heard


def headline(config: Config, model: Translator, trainer: pl.Trainer) -> str:
    """What is about to be trained, on what, in a line."""
    parameters = sum(math.prod(parameter.shape) for parameter in model.parameters())
    devices = f"{trainer.world_size} x " if trainer.world_size > 1 else ""
    scoring = (scoring_of(config.model) or "none").rpartition(".")[2]
    return (
        f"training {config.name} ({parameters / 1e6:.1f} M parameters, scoring {scoring}, "
        f"{config.model.recurrence} recurrence) for {config.trainer.max_steps} updates of "
        f"{batch_in_words(config)} on {devices}{trainer.strategy.root_device.type}, "
        f"precision {resolve_precision(config.trainer.precision, config.trainer.accelerator)}"
    )


def batch_in_words(config: Config) -> str:
    """What an update is made of."""
    data = config.data
    if data.batch_by == "tokens":
        return f"at most {data.batch_tokens} tokens"
    return f"{data.batch_size} sentences"


def silence_warnings() -> None:
    """Silences what Lightning says of choices that are meant here."""
    logging.getLogger("pytorch_lightning").setLevel(logging.WARNING)
    for message in (
        ".*does not have many workers.*",
        ".*GPU available but not used.*",
        ".*compute.* method of metric.*was called before the.*update.*",
        ".*Checkpoint directory.*exists and is not empty.*",
        ".*Experiment logs directory.*exists and is not empty.*",
        ".*Trying to infer the `batch_size` from an ambiguous collection.*",
        ".*resuming from a checkpoint that ended before the epoch ended.*",
        ".*`isinstance\\(treespec, LeafSpec\\)` is deprecated.*",
    ):
        warnings.filterwarnings("ignore", message)
