"""`checkpoint=wandb:ENTITY/PROJECT/NAME:ALIAS`: checkpoints that WandbLogger(log_model=true) logged."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from nmt.utils.errors import InputError, first_line
from nmt.utils.wandb_key import WITHOUT_KEY, has_key

PREFIX = "wandb:"
_REFERENCE = re.compile(r"wandb:[\w.-]+/[^/\\#?%:\s]+/[\w.-]+:[^/\\:\s]+", re.ASCII)


def is_reference(named: object) -> bool:
    """Whether a checkpoint is named as an artifact and not as a file."""
    return isinstance(named, str) and named.startswith(PREFIX)


def check_references(named: Iterable[object]) -> None:
    """Raises InputError for misspelt artifacts, and for any of them without a key of W&B."""
    for text in filter(is_reference, named):
        if not _REFERENCE.fullmatch(str(text)) or "/.." in str(text):
            raise InputError(f"checkpoint={text}: must be wandb:ENTITY/PROJECT/NAME:ALIAS")
        if not has_key():
            raise InputError(f"checkpoint={text}: {WITHOUT_KEY}, or name a file")


def download(text: str) -> Path:
    """Downloads the one checkpoint of an artifact into W&B's cache; raises InputError."""
    check_references([text])
    import wandb
    from wandb.env import get_cache_dir

    name = text.removeprefix(PREFIX)
    try:
        artifact = wandb.Api().artifact(name)
        [entry] = [
            e for e in artifact.manifest.entries.values() if re.fullmatch(r"[\w=.-]+\.ckpt", e.path)
        ]
        folder = get_cache_dir() / "nmt" / name.partition(":")[0] / str(artifact.version)
        folder.mkdir(parents=True, exist_ok=True)
        return Path(entry.download(root=str(folder), skip_cache=True))
    except Exception as error:  # the network, the key, the rights, the name, the number of files
        raise InputError(f"checkpoint={text}: not downloaded: {first_line(error)}") from error
