"""Optional test sets: left out where their files are missing."""

from __future__ import annotations

import functools
import logging
from pathlib import Path

from nmt.config import DataConfig, TextConfig
from nmt.data.sources.open import local_files, named_files

log = logging.getLogger(__name__)


def leave_out_absent(data: DataConfig) -> None:
    """Takes the optional test sets out of a section whose files are missing; a line names each."""
    for name, text in list(data.test.items()):
        absent = missing_file(text, data) if text.optional else None
        if absent is not None:
            del data.test[name]
            _say(name, absent, data.root)


def missing_file(text: TextConfig, data: DataConfig) -> str | None:
    """The first file of a text that is not there, seen from data.root; None: all are, or it has none."""
    _, missing = local_files(text, data)
    if missing is not None:
        return missing
    root = Path(data.root or ".").expanduser()
    for path in named_files(text, data, "text").values():
        if not path.is_file():
            return str(path.relative_to(root) if path.is_relative_to(root) else path)
    return None


@functools.cache
def _say(name: str, file: str, root: str | None) -> None:
    where = root or "this folder"
    log.info("data.test.%s is left out: %s is not in %s (data.root)", name, file, where)
