"""Lists the groups, options and keys of a command for `--help`."""

from __future__ import annotations

import dataclasses
import textwrap

from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig

from nmt.config.commands import SCHEMAS

PLUS = ("experiment", "stress")  # groups without a default


def choices(command: str) -> str:
    """Returns the groups with their options, and the keys of a command, as lines of `--help`."""
    loader = GlobalHydra.instance().config_loader()
    fields = {entry.name for entry in dataclasses.fields(SCHEMAS[command])}
    names = {name for name in HydraConfig.get().runtime.choices if not name.startswith("hydra/")}
    groups = [
        f"  {name}: {', '.join(loader.get_group_options(name))}"
        for name in sorted(names | fields.intersection(PLUS))
    ]
    lines = ["Choose with group=option:", "", *groups, "", "Set with key=value:", ""]
    for entry in dataclasses.fields(SCHEMAS[command]):
        dots = ".…" if dataclasses.is_dataclass(entry.default_factory) else ""
        text = f"  {entry.name}{dots}: {entry.metadata['meaning']}"
        lines += textwrap.wrap(text, 110, subsequent_indent="    ")
    return "\n".join(lines).replace("$", "$$")  # the help is a string.Template
