"""Lists the groups, options and keys of a command for `--help`."""

from __future__ import annotations

import dataclasses
import textwrap

import yaml
from hydra.core.global_hydra import GlobalHydra

from nmt.cli.composition import conf_folder
from nmt.config.commands import SCHEMAS

PLUS = ("experiment", "stress")  # groups without a default


def choices(command: str) -> str:
    """Returns the groups with their options, and the keys of a command, as lines of `--help`."""
    loader = GlobalHydra.instance().config_loader()
    groups = [
        f"  {name}: {', '.join(loader.get_group_options(name))}" for name in groups_of(command)
    ]
    lines = ["Choose with group=option:", "", *groups, "", "Set with key=value:", ""]
    for entry in dataclasses.fields(SCHEMAS[command]):
        dots = ".…" if dataclasses.is_dataclass(entry.default_factory) else ""
        text = f"  {entry.name}{dots}: {entry.metadata['meaning']}"
        lines += textwrap.wrap(text, 110, subsequent_indent="    ")
    return "\n".join(lines).replace("$", "$$")  # the help is a string.Template


def groups_of(command: str) -> list[str]:
    """Returns the groups of a command: all in its defaults, and optional ones for its keys."""
    groups, files = set(), [command]
    while files:
        for each in yaml.safe_load((conf_folder() / f"{files.pop()}.yaml").read_text())["defaults"]:
            if isinstance(each, dict):
                groups |= {name for name in each if (conf_folder() / name).is_dir()}
            elif (conf_folder() / f"{each}.yaml").is_file():
                files.append(each)
    fields = {entry.name for entry in dataclasses.fields(SCHEMAS[command])}
    return sorted(groups | fields.intersection(PLUS))
