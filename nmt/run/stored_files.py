"""What an evaluation reads and writes: nothing that only the checkpoint, maybe a stranger's, names."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from nmt.config import Config, EvaluateConfig, TextConfig
from nmt.config.keys import is_within
from nmt.config.overrides import typed_paths
from nmt.data.sources.open import digest_of, named_files, text_sections
from nmt.models.checkpoint import Checkpoint
from nmt.utils.errors import InputError

log = logging.getLogger(__name__)

# What an evaluation never takes from a checkpoint, which may be a stranger's: whose code runs, where it writes, and
# what it tells W&B and Lightning's Trainer.
EVALUATED_HERE = ("trust", "data.cache", "logger", "trainer.lightning")


def evaluated_sections(
    config: Config, sets: Sequence[str], training: bool = False
) -> dict[str, TextConfig]:
    """The texts that an evaluation reads, by the key of their section.

    Args:
        config: of the evaluation.
        sets: the test sets named; none: all.
        training: whether it reads the training text whatever the configuration says.
    """
    sections = text_sections(config.data)
    if training or config.evaluation.alignment.statistical_aligners:
        return sections
    names = [f"data.test.{name}" for name in sets or config.data.test]
    return {name: sections[name] for name in names if name in sections}


def refuse_stored_files(
    checkpoint: Checkpoint,
    config: Config,
    sets: Sequence[str],
    typed: Sequence[str],
    command: type[Config] = EvaluateConfig,
    training: bool = False,
) -> None:
    """Refuses files that only a stored configuration names, unless their content is known to it.

    Whoever made a checkpoint may name any file in it, but knows the content of their own alone.

    Args:
        checkpoint: which names files.
        config: its configuration with what was typed.
        sets: as in `evaluated_sections`.
        typed: overrides of the command line.
        command: schema of the command.
        training: as in `evaluated_sections`.

    Raises:
        InputError: naming the key to type.
    """
    paths = typed_paths(typed, command)
    for section, text in evaluated_sections(config, sets, training).items():
        known = checkpoint.text_files.get(section, {})
        for key, path in named_files(text, config.data, section).items():
            if is_within(key, paths) or (section.startswith("data.test.") and "data.root" in paths):
                continue
            if not path.is_file() or digest_of(path) != known.get(key):
                raise InputError(
                    f"{key}: the checkpoint names {path}, which is not the file it was tested on; "
                    f"to read that file, type {key}={path}"
                )
        if text.hub and Path(text.hub).exists() and not is_within(f"{section}.hub", paths):
            raise InputError(
                f"{section}.hub={text.hub}: the checkpoint names a folder of this machine, which is "
                f"not read; if it is what you want, type {section}.hub={text.hub}"
            )


def say_what_is_read(
    members: Sequence[Checkpoint],
    config: Config,
    sets: Sequence[str],
    folder: Path,
    training: bool = False,
) -> None:
    """Logs what an evaluation of a model, or of an ensemble, will read, and where it writes."""
    for member in members:
        log.info("reading %s", member.path)
    for section, text in evaluated_sections(config, sets, training).items():
        files = named_files(text, config.data, section)
        remote = " ".join([*(text.sacrebleu or ()), *([text.hub] if text.hub else ())])
        what = ", ".join(map(str, files.values())) or remote or "the built-in grammar"
        log.info("reading %s: %s", section, what)
    log.info("writing to %s, prepared text to %s", folder, config.data.cache)
