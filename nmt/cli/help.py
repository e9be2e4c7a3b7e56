"""The part of `--help` that lists what a command takes: groups with their options, and its own keys."""

from __future__ import annotations

import textwrap

from hydra.core.global_hydra import GlobalHydra

from nmt.config.keys import entries, inherited, is_within
from nmt.config.overrides import GROUPS
from nmt.config.schema import SCHEMAS, BaselineConfig, Config

ALL = ("experiment", "regime", *GROUPS)
SECTIONS = {path.partition(".")[0] for path, _ in entries(Config) if "." in path}


def choices(command: str) -> str:
    """Groups and keys of a command, as `--help` prints them."""
    schema = SCHEMAS[command]
    loader = GlobalHydra.instance().config_loader()
    lines = ["Choose with group=option:", ""] if taken_groups(command) else []
    lines += [
        f"  {name}: {', '.join(loader.get_group_options(name))}" for name in taken_groups(command)
    ]
    lines += ["", "Set with key=value:", ""]
    shared = inherited(schema) if issubclass(schema, Config) else set()
    for path, entry in entries(schema):
        if path.partition(".")[0] not in shared:
            lines += textwrap.wrap(
                f"  {path}: {entry.metadata['meaning']}", 110, subsequent_indent="    "
            )
    sections = (taken(command) or sorted(shared)) if shared else ()
    if sections:
        names = [f"{name}.…" if name in SECTIONS else name for name in sections]
        lines += textwrap.wrap(
            f"  and of a training run: {', '.join(names)}", 110, subsequent_indent="    "
        )
    return "\n".join(lines).strip().replace("$", "$$")  # of string.Template


def taken(command: str) -> tuple[str, ...]:
    """The keys and sections of a training run that a command takes; empty: all."""
    schema = SCHEMAS[command]
    if issubclass(schema, BaselineConfig):
        return schema.sections
    return schema.overridable if issubclass(schema, Config) else ()


def taken_groups(command: str) -> list[str]:
    """The groups that a command takes."""
    if not issubclass(SCHEMAS[command], Config):
        return ["claims"]  # of nmt.compare
    return [
        name
        for name in sorted(ALL)
        if not taken(command)
        or any(is_within(path, taken(command)) for path in GROUPS.get(name, [name]))
    ]
