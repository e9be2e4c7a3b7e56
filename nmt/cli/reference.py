"""The reference of all keys and options, written from the schema and from `conf/`.

python -m nmt.cli.reference > docs/configuration.md
"""

from __future__ import annotations

import dataclasses
import textwrap
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from omegaconf import MISSING, OmegaConf

from nmt.cli.composition import conf_folder, register_configs
from nmt.config import TextConfig, TrainConfig
from nmt.config.keys import bounds, entries, inherited, type_name
from nmt.config.schema import SCHEMAS

HEAD = """\
# Configuration

Written by `python -m nmt.cli.reference`; what stands here is what the programs check.

A key is set by typing `key=value` after a command, a group of keys by `group=option`:

    python -m nmt.train +experiment=rnnsearch30 regime=tiny scoring=dot optimizer.lr=5e-4

What is typed wins over the experiment, the experiment over the regime, the regime over the other
groups. `python -m nmt.train --cfg job` prints what a command line comes to, `--help` what can be
chosen. A misspelt key, a value of the wrong type or one out of its bounds ends the program with
exit code 2 and one or two lines that name it.

- Groups marked with a plus, and new entries of a dictionary, are typed with one:
  `+experiment=rnnsearch50`, `+data.test.mine.source=FILE`, `+external.moses.test=FILE`.
- A value with `=`, a comma or a bracket in it is quoted twice, once for the shell and once for the
  program: `'name="a=b"'`.
- `null` takes a value away where the type allows it.
"""
FROM_CHECKPOINT = (
    "Besides these, `trust` and what is in {} can be typed; the rest comes from the checkpoint."
)
NOTES = {
    "compare": "It has these keys alone.",
    "baseline": "Besides these, `name`, `experiment`, `regime`, `seed`, `trainer.progress`, "
    "`report.figures` and the keys of `data`, `tokenizer`, `logger` and `evaluation` (but for its "
    "`alignment` and samples) have an effect; the others of a training run have none.",
}


def reference(conf: Path) -> str:
    """The whole page, in Markdown; `conf` is the folder of the options."""
    parts = [HEAD, "## Groups\n", _table("group | option | what it is", groups(conf))]
    with initialize_config_dir(str(conf), version_base="1.3"):
        defaults = OmegaConf.to_container(compose("train"))
    sections: dict[str, list[str]] = {}
    for path, entry, kind in entries(TrainConfig):
        section = path.partition(".")[0] if "." in path else ""
        default: Any = defaults
        for name in path.split("."):
            default = default[name]
        sections.setdefault(section, []).append(_row(path, kind, default, entry.metadata))
    parts.append(
        "## Keys\n\nThe default is what holds when nothing is typed; `${key}` stands for another "
        "key's value.\n"
    )
    meanings = {entry.name: entry.metadata["meaning"] for entry in dataclasses.fields(TrainConfig)}
    for section, rows in sections.items():
        parts.append(f"### {section}: {meanings[section]}\n" if section else "### The run\n")
        if section == "data":
            names = ", ".join(f"`{entry.name}`" for entry in dataclasses.fields(TextConfig))
            parts.append(_wrapped(f"Each `data.test.NAME` has the keys of `data.valid`: {names}."))
        parts.append(_table("key | type | default | accepted | meaning", rows))
    parts.append("## Keys of single commands\n")
    for command, schema in SCHEMAS.items():
        listed = [f"`{name}`" for name in getattr(schema, "overridable", ())]
        note = FROM_CHECKPOINT.format(", ".join(listed)) if listed else NOTES.get(command)
        if note is None:
            continue
        own = [
            _row(path, kind, _default(entry), entry.metadata)
            for path, entry, kind in entries(schema)
            if path.partition(".")[0] not in inherited(schema)
        ]
        table = _table("key | type | default | accepted | meaning", own)
        parts += [f"### nmt.{command}\n", _wrapped(note), table]
    return "\n".join(parts).rstrip() + "\n"


def groups(conf: Path) -> Iterator[str]:
    """A table row for each option of each group: what the first comment of its file says."""
    chosen = yaml.safe_load((conf / "base.yaml").read_text())["defaults"]
    defaults = {group: option for entry in chosen for group, option in entry.items()}
    for folder in sorted(path for path in conf.iterdir() if path.is_dir() and path.name != "hydra"):
        plus = "" if folder.name in defaults else "+"
        for number, file in enumerate(sorted(folder.glob("*.yaml"))):
            name = f"`{plus}{folder.name}`" if number == 0 else ""
            option = f"`{file.stem}`"
            if defaults.get(folder.name) in (file.stem, [file.stem]):
                option += " (default)"
            yield f"{name} | {option} | {_said(file)}"


def _row(path: str, kind: Any, default: Any, metadata: Mapping[str, Any]) -> str:
    shown = f"`{_yaml(default)}`" if default != MISSING else "must be given"
    meaning = metadata["meaning"].replace("<", "\\<").replace("|", "\\|")
    return f"`{path}` | {type_name(kind)} | {shown} | {bounds(metadata)} | {meaning}"


def _default(entry: dataclasses.Field[Any]) -> Any:
    factory = entry.default_factory
    return entry.default if factory is dataclasses.MISSING else factory()


def _yaml(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10**6)
    return text.removesuffix("...\n").strip()


def _said(file: Path) -> str:
    """The comments at the head of an option's file, but for the command that runs it."""
    lines = []
    for line in file.read_text().splitlines():
        if not line.startswith("# "):
            break
        if not line.startswith(("# @package", "# python")):
            lines.append(line[2:])
    return " ".join(lines).replace("|", "\\|")


def _wrapped(text: str) -> str:
    """A paragraph of lines of at most 120 characters."""
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False) + "\n"


def _table(head: str, rows: typing.Iterable[str]) -> str:
    rule = "|".join(["---"] * (head.count("|") + 1))
    return "\n".join([f"| {head} |", f"|{rule}|", *(f"| {row} |" for row in rows), ""])


if __name__ == "__main__":
    register_configs()
    print(reference(conf_folder()), end="")
