"""Resuming a run: its checkpoint and configuration, and checks that it stays the same run."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from nmt.config.keys import is_within
from nmt.config.overrides import FROZEN, GROUPS, apply_typed, refuse_changes
from nmt.config.validation import validate
from nmt.data.prepare import Prepared
from nmt.models.checkpoint import Checkpoint, read_checkpoint
from nmt.run.early_checks import own_code, refuse_untrusted_scores
from nmt.run.folder import RunFolder
from nmt.run.run import Run
from nmt.utils.commands import override_key
from nmt.utils.environment import rank
from nmt.utils.errors import InputError

log = logging.getLogger(__name__)


def resumed_checkpoint(
    composed: DictConfig, folder: RunFolder
) -> tuple[Checkpoint | None, DictConfig]:
    """The checkpoint to resume from, if any, and the configuration to train with.

    Raises:
        InputError: when there is none in a folder that was named, when the folder of a new run
            holds another, or a typed value changes the result.
    """
    asked = composed.resume
    if asked is not None and composed.trainer.lightning.get("fast_dev_run"):
        raise InputError(
            f"resume={asked}: trainer.lightning.fast_dev_run makes a trial, of which nothing is kept; "
            "leave out one of the two"
        )
    named = asked not in (None, "auto")
    if named and Path(asked).resolve() != folder.path.resolve():
        raise InputError(
            f"resume={asked}: a run is resumed in its own folder; leave out hydra.run.dir"
        )
    if asked is None and folder.checkpoints.found():
        raise InputError(
            f"{folder.path}: holds the checkpoints of a run; resume=auto resumes it, "
            "another hydra.run.dir starts a new one"
        )
    path = None if asked is None else folder.checkpoints.newest()
    if path is not None:
        return _resume_from(path, composed)
    if named:
        raise InputError(f"resume={asked}: no checkpoint in {folder.checkpoints.path}")
    folder.refuse_used()
    return None, composed


def _resume_from(path: Path, composed: DictConfig) -> tuple[Checkpoint, DictConfig]:
    """A checkpoint, and its configuration with what was typed; raises InputError as `resumed_checkpoint`."""
    trusted = [*composed.trust, *own_code(composed)]
    checkpoint = read_checkpoint(path, trusted, resumed=True)
    typed = HydraConfig.get().overrides.task
    if composed.resume == "auto":  # the line that the run was started with, typed once more
        refuse_changes(checkpoint.config, composed)
    config = apply_typed(checkpoint.config, composed, typed)
    refuse_untrusted_scores(config, typed, trusted)
    validate(config)
    refuse_changes(checkpoint.config, config)
    _check_updates(checkpoint, config)
    log.info("resuming from %s, update %d", path, checkpoint.update)
    log.info("settings kept from its start: %s", " ".join(checkpoint.typed) or "the defaults")
    return checkpoint, config


def _check_updates(checkpoint: Checkpoint, config: DictConfig) -> None:
    """Refuses fewer updates than were made, or more after early stopping; warns if a decay that has begun changes."""
    planned, asked = checkpoint.config.trainer.max_steps, config.trainer.max_steps
    if asked < checkpoint.update:
        raise InputError(
            f"trainer.max_steps={asked}: the run has made {checkpoint.update} updates already"
        )
    if asked != planned and checkpoint.progress.stopped_early:
        raise InputError(
            f"trainer.max_steps={asked}: the run has stopped early, at update {checkpoint.update}; "
            "start a new run"
        )
    optimizer = config.optimizer
    begun = checkpoint.update > max(optimizer.decay_from * planned, optimizer.warmup)
    linear = optimizer.schedule._target_ == "nmt.models.optimizer.linear"
    if linear and asked != planned and begun:
        log.warning(
            "trainer.max_steps=%d: the learning rate was falling to 0 at update %d and now falls to "
            "0 at %d; the result differs from that of a run started with this value", asked, planned, asked
        )  # fmt: skip


def typed_from_start(checkpoint: Checkpoint | None) -> list[str]:
    """The overrides of a run: those of its start, replaced by those typed now; without `resume`."""
    now = [word for word in HydraConfig.get().overrides.task if override_key(word) != "resume"]
    keys = [override_key(word) for word in now]
    again = [path for key in keys for path in GROUPS.get(key, [key])]
    before = () if checkpoint is None else checkpoint.typed
    return [*(word for word in before if not _is_replaced(override_key(word), keys, again)), *now]


def _is_replaced(key: str, keys: Sequence[str], paths: Sequence[str]) -> bool:
    """Whether a key has another value by `keys`, or by the `paths` of their groups, which FROZEN resist."""
    return key in keys or (key not in FROZEN and is_within(key, paths))


def refuse_other_text(run: Run, text: Prepared) -> None:
    """Refuses to resume a run on other text than it was started with; raises InputError."""
    if run.checkpoint is not None and run.checkpoint.fingerprint != text.fingerprint:
        raise InputError(
            f"resume: the training or development text is not the one the run was started with "
            f"(fingerprint {text.fingerprint}, was {run.checkpoint.fingerprint}); restore it, or "
            "start a new run"
        )


def reopen(run: Run) -> None:
    """Repairs what a killed process left in the folder of a run that is resumed."""
    if run.checkpoint is not None and not rank():
        run.folder.checkpoints.repair(run.checkpoint)
