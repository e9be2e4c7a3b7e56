"""`checkpoint=wandb:ENTITY/PROJECT/NAME:ALIAS`: checkpoints that WandbLogger(log_model=true) logged."""

from __future__ import annotations

import re
from pathlib import Path

from nmt.utils.errors import InputError, first_line
from nmt.utils.wandb_key import WITHOUT_KEY, has_key

REFERENCE = re.compile(r"wandb:([\w.-]+/[^/\\#?%:\s]+/[\w.-]+):[^/\\:\s]+", re.ASCII)


def download(text: str) -> Path:
    """Downloads the one checkpoint of an artifact into W&B's cache.

    Raises:
        InputError: for a misspelt name, without a key, and where W&B does not give one file.
    """
    match = REFERENCE.fullmatch(text)
    if not match or "/.." in text:
        raise InputError(f"checkpoint={text}: must be wandb:ENTITY/PROJECT/NAME:ALIAS")
    if not has_key():
        raise InputError(f"checkpoint={text}: {WITHOUT_KEY}, or name a file")
    import wandb
    from wandb.env import get_cache_dir

    try:
        artifact = wandb.Api().artifact(text.removeprefix("wandb:"))
        names = artifact.manifest.entries
        [entry] = [names[name] for name in names if re.fullmatch(r"[\w=.-]+\.ckpt", name)]
        folder = get_cache_dir() / "nmt" / match[1] / str(artifact.version)
        folder.mkdir(parents=True, exist_ok=True)
        return Path(entry.download(root=str(folder), skip_cache=True))
    except Exception as error:  # the network, the key, the rights, the name, the number of files
        raise InputError(f"checkpoint={text}: not downloaded: {first_line(error)}") from error
