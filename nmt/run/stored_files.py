"""Files that an evaluation reads: none that only a checkpoint names, unless its content is known to it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from nmt.config import Config, DataConfig, TextConfig
from nmt.config.keys import is_within
from nmt.data.sources.open import digest_of, named_files, text_sections
from nmt.models.checkpoint import Checkpoint
from nmt.utils.errors import InputError

log = logging.getLogger(__name__)

# Keys that an evaluation never takes from a checkpoint, which may come from a stranger: trusted code, folders to
# write to, the logger, arguments of Lightning's Trainer.
EVALUATED_HERE = ("trust", "data.cache", "logger", "trainer.lightning")


def evaluated_sections(
    config: Config, sets: Sequence[str], training: bool
) -> dict[str, TextConfig]:
    """The texts that an evaluation reads, by the key of their section.

    Args:
        config: of the evaluation.
        sets: the test sets named; none: all.
        training: whether it reads the training text whatever the configuration says.
    """
    sections = text_sections(config.data)
    if config.data.selection == "none":
        del sections["data.in_domain"]
    if training or config.evaluation.alignment.statistical_aligners:
        return sections
    names = [f"data.test.{name}" for name in sets or config.data.test]
    return {name: sections[name] for name in names if name in sections}


def refuse_stored_files(
    checkpoint: Checkpoint,
    data: DataConfig,
    sections: Mapping[str, TextConfig],
    typed: Sequence[str],
) -> None:
    """Refuses files that only a stored configuration names, unless their content is known to it.

    Whoever made a checkpoint may name any file in it, but knows the content of their own alone.

    Args:
        checkpoint: which names files.
        data: its text, with what was typed.
        sections: of `evaluated_sections`.
        typed: configuration paths that the command line sets (`overrides.typed_paths`).

    Raises:
        InputError: naming the key to type.
    """
    for section, text in sections.items():
        known = checkpoint.text_files.get(section, {})
        for key, path in named_files(text, data, section).items():
            if is_within(key, typed) or (section.startswith("data.test.") and "data.root" in typed):
                continue
            if not path.is_file() or digest_of(path) != known.get(key):
                raise InputError(
                    f"{key}: the checkpoint names {path}, which is not the file it was tested on; "
                    f"to read that file, type {key}={path}"
                )
        if text.hub and Path(text.hub).exists() and not is_within(f"{section}.hub", typed):
            raise InputError(
                f"{section}.hub={text.hub}: the checkpoint names a folder of this machine, which is "
                f"not read; if it is what you want, type {section}.hub={text.hub}"
            )


def say_what_is_read(
    members: Sequence[Checkpoint],
    data: DataConfig,
    sections: Mapping[str, TextConfig],
    folder: Path,
) -> None:
    """Logs what an evaluation of a model, or of an ensemble, will read, and where it writes."""
    for member in members:
        log.info("reading %s", member.path)
    for section, text in sections.items():
        files = named_files(text, data, section)
        remote = " ".join([*(text.sacrebleu or ()), *([text.hub] if text.hub else ())])
        what = ", ".join(map(str, files.values())) or remote or "the built-in grammar"
        log.info("reading %s: %s", section, what)
    log.info("writing to %s, prepared text to %s", folder, data.cache)
