"""Errors of Hydra and OmegaConf reworded in two lines: the key, the problem, the remedy."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import get_origin

import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException, OverrideParseException
from omegaconf.errors import OmegaConfBaseException

from nmt.cli.composition import conf_folder
from nmt.config.keys import bounds, entries, type_name
from nmt.config.overrides import GROUPS, NAMES
from nmt.config.validation import NOT_LIGHTNINGS

COMPOSING = (HydraException, OmegaConfBaseException, yaml.YAMLError)  # what is explained
CHOICES = (*GROUPS, *NAMES)
NOT_A_NAME = "Config group override must be a string or a list"
# Errors of Hydra's own that have no class, by how they begin
UNCLASSED = (NOT_A_NAME, "The --resolve flag", "Only one of --run", "Expecting one subcommand")
# Names that users of Lightning and of other toolkits type, and the keys that stand for them
ELSEWHERE = {
    **NOT_LIGHTNINGS,
    **dict.fromkeys(("ckpt_path", "resume_from_checkpoint"), "type resume=RUN_FOLDER"),
    **dict.fromkeys(
        ("checkpoint", "finetune_from_model", "load_model", "train_from"),
        "type initial_checkpoint=RUN_FOLDER to start from its weights, "
        "or resume=RUN_FOLDER to go on with its training",
    ),
    "early_stopping": "type trainer.patience",
    "learning_rate": "type optimizer.lr",
}
NOISE = ("object_type=", "full_key:", "reference_type=", "See https://")


def explain(error: BaseException, schema: type, typed: Sequence[str]) -> str:
    """The message for a command whose configuration could not be composed.

    Args:
        error: one of `COMPOSING`, or one whose text begins as one of `UNCLASSED`.
        schema: dataclass of the command's keys.
        typed: the command line's arguments.
    """
    if isinstance(error, yaml.MarkedYAMLError) and (mark := error.problem_mark):
        return f"{mark.name}:{mark.line + 1}: {error.problem}"
    lines = [line for text in _chain(error) for line in text.splitlines()]
    lines = [line.strip() for line in lines if line.strip() and not line.strip().startswith(NOISE)]
    lines = lines or [type(error).__name__]
    if isinstance(error, OverrideParseException):
        return _grammar(error.override, lines)
    if str(error).startswith(NOT_A_NAME):
        return _not_a_name(typed)
    for at, line in enumerate(lines):
        if line.startswith("Available options"):
            until = next(
                (n for n in range(at, len(lines)) if lines[n].startswith("Config search")), None
            )
            what = re.sub(r"^In '.*': Could not find '(.*)/(.*)'", r"\1=\2: no such", lines[at - 1])
            return f"{what}; available: {', '.join(lines[at + 1 : until])}"
    unlisted = re.search(r"Could not load '(.*)/(.*)'", lines[0])
    if unlisted:  # of several names that are chosen of a group
        group, name = unlisted.groups()
        there = ", ".join(sorted(file.stem for file in (conf_folder() / group).glob("*.yaml")))
        return f"{group}={name}: no such; available: {there}"
    missing = re.search(r"[Mm]issing mandatory value: (\S+)", lines[0])
    if missing:
        meaning = {name: entry.metadata["meaning"] for name, entry, _ in entries(schema)}
        return f"{missing[1]}: must be given ({meaning.get(missing[1], 'no default')})"
    twice = re.match(r"Multiple values for (\w+)\.", lines[0])
    if twice:
        return f"+{twice[1]}: this group is chosen already; type {twice[1]}=… without the plus"
    several = re.match(r"Ambiguous value for argument '(.*)'", lines[0])
    if several:
        return f"{several[1]}: more than one value; give one, or sweep over them with -m"
    unknown = re.match(r"Could not override '([^']+)'", lines[0])
    if unknown:
        return _unknown(unknown[1], schema, lines)
    wrong = re.match(r"Error merging override (.*)", lines[0])
    if wrong:
        return _wrong_type(wrong[1], schema, lines)
    return _at_its_key(error, schema, lines)


def _chain(error: BaseException | None) -> Iterator[str]:
    while error is not None:
        yield str(error)
        error = error.__cause__


def _grammar(override: str, lines: Sequence[str]) -> str:
    override = override.replace("\n", "\\n").replace("\r", "\\r")
    key, equals, value = override.partition("=")
    if not equals:
        return f"{override}: not of the form key=value ({lines[-1]})"
    wrong = f"{override}: cannot be read ({lines[0]})"
    if not re.search(r"[][{}()=,:'\" \\]", value):
        return wrong
    items = re.fullmatch(r"\[([^][{}'\"\\]+)\]", value)
    if items:  # a list: each of its items is a value
        quoted = "[" + ",".join(f'"{item.strip()}"' for item in items[1].split(",")) + "]"
    else:
        quoted = '"' + value.replace('"', '\\"') + '"'
    return f"{wrong}\nspecial characters of a value take two pairs of quotes: '{key}={quoted}'"


def _not_a_name(typed: Sequence[str]) -> str:
    typed = [word for word in typed if "=" in word and not word.startswith("-")]
    for override in OverridesParser.create().parse_overrides(typed):
        if override.key_or_group in ("", *CHOICES) and not isinstance(override.value(), str | list):
            typed = [override.input_line or ""]
    return f"{' '.join(typed)}: not the name of one of a group's options, such as model=rnnsearch"


def _unknown(path: str, schema: type, lines: Sequence[str]) -> str:
    if path in ("stress", "experiment"):
        return f"{path}: this group has no default; type +{path}=…"
    if re.match(r"data\.test\.|external\.", path):
        return f"{path}: no such entry; to add one, type +{path}=…"
    hints = {name: hint for name, _, hint in entries(schema)}
    if get_origin(hints.get(path)) is dict:  # `optimizer.options={momentum:0.9}`
        inner = re.search(r"Key '([^']+)' is not in struct", "\n".join(lines))
        new = f"{path}.{inner[1] if inner else 'NAME'}"
        return f"{new}: no such entry; to add one, type +{new}=…, and to remove one, ~{path}.NAME"
    names = list(dict.fromkeys([*hints, *CHOICES]))
    section, _, last = path.rpartition(".")
    same = [name for name in names if name.rpartition(".")[2] == last]
    if section in ("", "trainer") and last in ELSEWHERE and not same:
        return f"{path}: no such key; {ELSEWHERE[last]}"
    if path.startswith(("trainer.lightning.", "callbacks.", "optimizer.options.")):
        return f"{path}: no such entry; to add one, type +{path}=…"
    near = difflib.get_close_matches(path, names, n=3, cutoff=0.6)
    near += [name for name in same if name not in near]
    hint = f"did you mean {' or '.join(near[:3])}?" if near else "see docs/configuration.md"
    if path.startswith("trainer."):
        hint += f" (an argument of Lightning's Trainer is typed +trainer.lightning.{last}=…)"
    return f"{path}: no such key; {hint}"


def _wrong_type(override: str, schema: type, lines: Sequence[str]) -> str:
    path = override.partition("=")[0].lstrip("+~")
    if path in ELSEWHERE:
        return f"{override}: a section of keys; {ELSEWHERE[path]}"
    problem = lines[1] if len(lines) > 1 else "of the wrong type"
    return f"{override}: {problem}{_takes(path, schema)}"


def _takes(path: str, schema: type) -> str:
    """A line on the type, bounds and meaning of a key; empty where the schema does not know it."""
    for name, entry, hint in entries(schema):
        if name == path:
            accepted = f", {bounds(entry.metadata)}" if bounds(entry.metadata) else ""
            meaning = entry.metadata["meaning"]
            return f"\n{path} takes: {type_name(hint)}{accepted} ({meaning})"
    return ""


def _at_its_key(error: BaseException, schema: type, lines: Sequence[str]) -> str:
    """An error of OmegaConf with the key that it is about, and the file where one was merged."""
    file = re.match(r"In '(.*)': \w+ raised while composing config:", lines[0])
    said = re.search(r"full_key: (\S+)", "\n".join(_chain(error)))
    if not said:
        return "\n".join(dict.fromkeys(lines[:2]))
    key, reason = said[1], str(error.__cause__ or "")
    if lines[0].startswith("Error in call to target") and reason:  # a launcher's or a sweeper's
        return reason if reason.startswith(key) else f"{key}: {reason}"
    where = f"{file[1]}: " if file else ""
    problem = lines[1 if file and len(lines) > 1 else 0]
    return f"{where}{key}: {problem}{_takes(key.partition('[')[0], schema)}"
