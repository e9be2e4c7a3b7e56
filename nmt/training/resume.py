"""Going on with a run: its checkpoint, and its configuration with what is typed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from nmt.config.keys import is_within
from nmt.config.overrides import GROUPS, apply_typed, refuse_changes
from nmt.config.validation import validate
from nmt.data.prepare import Prepared
from nmt.models.checkpoint import Checkpoint, read_checkpoint
from nmt.training.early_checks import own_code, refuse_untrusted_scores
from nmt.training.folder import RunFolder
from nmt.training.run import Run
from nmt.utils.commands import override_key
from nmt.utils.errors import InputError

log = logging.getLogger(__name__)


def checkpoint_to_go_on_from(
    composed: DictConfig, folder: RunFolder
) -> tuple[Checkpoint | None, DictConfig]:
    """The checkpoint of `resume` or `ckpt_path`, if any, and the configuration to train with.

    Raises:
        InputError: where there is none in a folder that was named, where the folder of a new run
            holds another, or where a typed value changes what a resumed run learns.
    """
    resume = composed.resume
    if resume not in (None, "auto") and Path(resume).resolve() != folder.path.resolve():
        raise InputError(
            f"resume={resume}: a run is resumed in its own folder; leave out hydra.run.dir"
        )
    if resume is not None:
        # after a kill between the first two writes there is only the best one
        for path in (folder.last, folder.best):
            if path.is_file():
                return _stored(path, composed, changeable=False)
    if resume not in (None, "auto"):
        raise InputError(f"resume={resume}: no checkpoint {folder.last}")
    folder.refuse_used()
    if composed.ckpt_path is not None:
        return _stored(Path(composed.ckpt_path), composed, changeable=True)
    return None, composed


def _stored(path: Path, composed: DictConfig, changeable: bool) -> tuple[Checkpoint, DictConfig]:
    """A checkpoint, and its configuration with what was typed."""
    trusted = [*composed.trust, *own_code(composed)]
    checkpoint = read_checkpoint(path, trusted)
    typed = HydraConfig.get().overrides.task
    if composed.resume == "auto":  # the line that the run was started with, typed once more
        validate(composed)  # its texts get their types, as those of the checkpoint have
        refuse_changes(checkpoint.config, composed)
    config = apply_typed(checkpoint.config, composed, typed)
    refuse_untrusted_scores(config, typed, trusted)
    validate(config)
    if not changeable:
        refuse_changes(checkpoint.config, config)
    log.info("going on from %s, update %d", path, checkpoint.update)
    log.info("settings kept from its start: %s", " ".join(checkpoint.typed) or "the defaults")
    return checkpoint, config


def typed_from_start(checkpoint: Checkpoint | None) -> list[str]:
    """The overrides of a run: those of its start, replaced by those typed now; without `resume`."""
    now = [word for word in HydraConfig.get().overrides.task if override_key(word) != "resume"]
    keys = [override_key(word) for word in now]
    again = [path for key in keys for path in GROUPS.get(key, [key])]
    before = () if checkpoint is None else checkpoint.typed
    return [*(word for word in before if not _is_replaced(override_key(word), keys, again)), *now]


def _is_replaced(key: str, keys: Sequence[str], paths: Sequence[str]) -> bool:
    """Whether a key has another value by `keys`, or by the `paths` of their groups."""
    return key in keys or is_within(key, paths)


def refuse_other_text(run: Run, text: Prepared) -> None:
    """Refuses to go on with other text than the run was started with; raises InputError."""
    if run.checkpoint is not None and run.checkpoint.fingerprint != text.fingerprint:
        raise InputError(
            f"the training or development text is not the one the run was started with "
            f"(fingerprint {text.fingerprint}, was {run.checkpoint.fingerprint}); restore it, or "
            "start a new run"
        )
