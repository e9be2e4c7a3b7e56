"""Checkpoints as W&B artifacts: logged by a training, downloaded by other commands.

The artifacts of a run have Lightning's name for them, `model-<run id>`, and this program's own file
names. Lightning's `log_model` serves its own checkpoint callback only, and is refused offline.

Offline nothing is copied: W&B notes where a file lies, and `wandb sync` uploads it from there. A
second name of the file (a hard link) stays when a resumed run replaces it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.report.wandb.panels import warn_on_error
from nmt.utils.errors import InputError
from nmt.utils.wandb_key import WITHOUT_KEY, has_key

log = logging.getLogger(__name__)

TYPE = "model"
PREFIX = "wandb:"
OFFLINE = ("offline", "dryrun", "disabled")  # values of WANDB_MODE


@dataclass(frozen=True)
class Reference:
    """A version of an artifact: `entity/project/name:alias`, where the alias may be `v0`, too."""

    entity: str
    project: str
    name: str
    alias: str

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Reads `wandb:entity/project/name:alias`. Raises InputError."""
        found = re.fullmatch(
            r"wandb:([\w.-]+)/([^/\\#?%:\s]+)/([\w.-]+):([^/\\:\s]+)", text, re.ASCII
        )
        if found is None or ".." in found.groups():
            raise InputError(
                f"checkpoint={text}: must be wandb:ENTITY/PROJECT/NAME:ALIAS, such as "
                "wandb:my-team/nmt/model-1a2b3c4d:best"
            )
        return cls(*found.groups())

    def __str__(self) -> str:
        return f"{self.entity}/{self.project}/{self.name}:{self.alias}"


def is_reference(named: object) -> bool:
    """Whether what a person names as a checkpoint is an artifact and no file."""
    return isinstance(named, str) and named.startswith(PREFIX)


def check_references(named: Iterable[object]) -> None:
    """Refuses artifacts that are misspelt or cannot be downloaded here, before anything is done.

    Raises:
        InputError: naming the checkpoint, where W&B is set to offline or has no key.
    """
    for text in filter(is_reference, named):
        Reference.parse(str(text))
        mode = os.environ.get("WANDB_MODE", "").lower()
        if mode in OFFLINE:
            raise InputError(
                f"checkpoint={text}: WANDB_MODE={mode}: W&B is asked only online; unset it, or "
                "name a file"
            )
        if not has_key():
            raise InputError(f"checkpoint={text}: {WITHOUT_KEY}, or name a file")


def download(text: str) -> Path:
    """The checkpoint of `wandb:entity/project/name:alias`, in W&B's cache on this machine.

    It is a file like any other that a stranger may have made: whoever reads it has to check it.

    Raises:
        InputError: as `check_references`; where W&B does not have it or does not answer; and where
            the artifact does not hold one checkpoint.
    """
    check_references([text])
    reference = Reference.parse(text)
    import wandb
    from wandb.env import get_cache_dir

    os.environ.setdefault("WANDB_SILENT", "true")
    try:
        artifact = wandb.Api().artifact(str(reference))
        entries = [
            entry
            for entry in artifact.manifest.entries.values()
            if entry.path.endswith(".ckpt")
            and Path(entry.path).name == entry.path
            and not entry.ref
        ]
        if len(entries) == 1:
            folder = get_cache_dir() / "nmt" / reference.entity / reference.project
            folder = folder / reference.name / str(artifact.version)
            folder.mkdir(parents=True, exist_ok=True)
            log.info("downloading %s (%.0f MB)", reference, (entries[0].size or 0) / 1e6)
            return Path(entries[0].download(root=str(folder), skip_cache=True))
    except Exception as error:  # the network, the key, the rights, the name, the disk
        reason = " ".join((str(error).strip() or type(error).__name__).split())[:200]
        raise InputError(f"checkpoint={text}: not downloaded from W&B: {reason}") from error
    raise InputError(
        f"checkpoint={text}: holds {len(artifact.manifest.entries)} file(s), of which one must be "
        "a checkpoint (.ckpt), as nmt.train logs it"
    )


def artifact_name(run_id: str) -> str:
    """The name that the checkpoints of a W&B run have."""
    return f"{TYPE}-{run_id}"


def log_checkpoint(run: Any, file: Path, metadata: Mapping[str, Any]) -> None:
    """Logs a checkpoint as a version of the run's artifact; its alias is the name of the file.

    Args:
        run: the W&B run (`WandbLogger.experiment`).
        file: such as `checkpoints/best.ckpt`.
        metadata: what W&B shows of it.
    """
    with warn_on_error(f"logging {file.name}"):
        import wandb

        kept = _kept(file, metadata["update"]) if run.offline else file
        artifact = wandb.Artifact(artifact_name(run.id), type=TYPE, metadata=dict(metadata))
        artifact.add_file(str(kept.resolve()), name=file.name, policy="immutable", skip_cache=True)
        run.log_artifact(artifact, aliases=[file.stem])


def _kept(file: Path, update: int) -> Path:
    """A second name for a file that a resumed run would replace; the file where there can be none."""
    link = file.parent.parent / "wandb" / "checkpoints" / f"{file.stem}-{update}{file.suffix}"
    with contextlib.suppress(OSError):
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.hardlink_to(file)
        return link
    return file
