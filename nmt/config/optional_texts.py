"""Test sets that are scored by whoever has their files, and left out where they are missing."""

from __future__ import annotations

import functools
import logging
from pathlib import Path

from omegaconf import DictConfig

from nmt.config.data import DataConfig, TextConfig
from nmt.utils.errors import InputError

log = logging.getLogger(__name__)

ENDINGS = ("", ".gz", ".xz", ".zst")  # that a file of a text may have


def check_optional(data: DataConfig | DictConfig) -> None:
    """Refuses a section where another text than a test set is said to be optional.

    Raises:
        InputError: naming the key.
    """
    for name in ("train", "valid", "in_domain"):
        if getattr(data, name).optional:
            raise InputError(f"data.{name}.optional=true: only a test set can be left out")


def leave_out_absent(data: DataConfig) -> None:
    """Takes the optional test sets out of a section whose files are missing; a line names each."""
    for name, text in list(data.test.items()):
        absent = missing_file(text, data) if text.optional else None
        if absent is not None:
            del data.test[name]
            _say(name, absent, data.root)


def missing_file(text: TextConfig, data: DataConfig) -> str | None:
    """The first file of a text that is not there, by its name in `data.root`; None: all are, or it has none."""
    named = [name for side in ("source", "target", "alignment") if (name := getattr(text, side))]
    named += [f"{name}.{language}" for name in text.files or () for language in data.languages]
    spelt = {
        name: [f"{name}{ending}" for ending in (ENDINGS if text.files else ENDINGS[:1])]
        for name in named
    }
    root = Path(data.root or ".").expanduser()
    for name, files in spelt.items():
        if not any((root / Path(file).expanduser()).is_file() for file in files):
            return name
    return None


@functools.cache
def _say(name: str, file: str, root: str | None) -> None:
    where = root or "this folder"
    log.info("data.test.%s is left out: %s is not in %s (data.root)", name, file, where)
