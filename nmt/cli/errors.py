"""Sets exit codes, and rewrites errors of Hydra and OmegaConf as short messages with a remedy."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import os
import re
import sys
import traceback
from collections.abc import Iterator

import yaml
from hydra.errors import HydraException, OverrideParseException
from omegaconf.errors import OmegaConfBaseException

from nmt.cli.composition import conf_folder
from nmt.config.changes import OF_TRAINING
from nmt.config.commands import TrainConfig
from nmt.config.keys import described, entries
from nmt.config.schema import TRAINER
from nmt.utils.environment import rank
from nmt.utils.errors import InputError, RunError, causes, lack_of_space

COMPOSING = (HydraException, OmegaConfBaseException, yaml.YAMLError, ValueError, OSError)
NOISE = ("object_type=", "reference_type=", "full_key:", "See https://", "To append to your")
# Keys that users know from other projects, and the advice to print for each key
HABITS = {
    "train": "to test without training, type nmt.evaluate checkpoint=RUN",
    "test": "a run is tested at its end (~data.test.NAME, evaluation.…), nmt.evaluate tests it again",
    "ckpt_path": "type checkpoint=FILE",
    "beam": "type search.beam_size=NUMBER",
    "paths": "type hydra.run.dir=FOLDER for the run, data.root=FOLDER for its text",
    "print_config": "add --cfg job to print the configuration",
    "extras": "add --cfg job to print the configuration; tags=[…] are W&B's",
    "hydra/launcher": "more with uv sync --extra sweeps",
    "hydra/sweeper": "more with uv sync --extra optuna",
}


@contextlib.contextmanager
def exiting() -> Iterator[None]:
    """Ends the process with a message and an exit code if the block raises.

    Exit codes: 0 for success, 1 for a failure, and 2 for invalid input. A signal N kills the process, which
    shells report as 128 + N.
    """
    try:
        yield
    except InputError as refusal:
        _end(2, refusal)
    except RunError as failure:
        _end(1, failure)
    except BrokenPipeError:  # the pipe is closed, as in `nmt translate … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception as error:
        if lack := lack_of_space(error):
            _end(1, lack)
        traceback.print_exc()
        sys.exit(1)


def _end(code: int, message: object) -> None:
    if rank() == 0 or code == 1:
        print(f"nmt: {message}", file=sys.stderr)
    sys.exit(code)


@contextlib.contextmanager
def explaining(schema: type) -> Iterator[None]:
    """Converts Hydra's errors about keys of `schema` to InputErrors."""
    try:
        yield
    except COMPOSING as error:
        raise InputError(explain(error, schema)) from error


def explain(error: BaseException, schema: type) -> str:
    """Describes in one or two lines why a configuration could not be composed."""
    chain = list(causes(error))
    # OmegaConf wraps the InputError of a resolver in its own exception
    if refusal := next((each for each in chain if isinstance(each, InputError)), None):
        return str(refusal)
    text = "\n".join(str(each) or type(each).__name__ for each in chain)
    full_key = re.search(r"full_key: (\S+)", text)
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith(NOISE)]
    text = "\n".join(lines)
    if isinstance(error, OverrideParseException):
        key, equals, value = error.override.partition("=")
        if not equals and "checkpoint" in {entry.name for entry in dataclasses.fields(schema)}:
            return f"{key}: type checkpoint={key}"
        if key.startswith("+systems."):
            name = key.removeprefix("+systems.")
            return f"{key}: Hydra cannot read this name; type 'systems={{{name}: {value}}}'"
        brackets = value[:1] + value[-1:] if value[:1] + value[-1:] in ("[]", "{}") else ""
        items = value[1:-1].split(",") if brackets else [value]
        parts = [item.rpartition(":") if brackets == "{}" else ("", "", item) for item in items]
        quoted = ",".join(
            name + colon + '"' + item.replace('"', r"\"") + '"' for name, colon, item in parts
        )
        quoted = brackets[:1] + quoted + brackets[1:]
        return f"{error.override}: {lines[0]}\nquote special characters twice: '{key}={quoted}'"
    if ambiguous := re.match(r"Ambiguous value for argument '([^=]+)=(.*)'", text):
        key, values = ambiguous.groups()
        return (
            f"{key}={values}: for a sweep, put -m before the overrides; a list is {key}=[{values}]"
        )
    if option := re.search(r"Could not (?:find|load) '([^']*)/([^'/]*)'", text):
        listed = re.search(r"Available options in .*:\n((?:.+\n)*?)Config search", f"{text}\n")
        known = f"; available: {', '.join(listed[1].split())}" if listed else ""
        more = f"; {HABITS[option[1]]}" if option[1] in HABITS else ""
        return f"{option[1]}={option[2]}: no such option{known}{more}"
    if missing := re.search(r"issing mandatory value: (\S+)", text):
        return f"{missing[1]}: must be given{_meaning(missing[1], schema)}"
    if unknown := re.match(r"Could not override '([^']+)'", text):
        return f"{unknown[1]}: no such key; {_suggestion(unknown[1], schema)}"
    if wrong := re.match(r"Error merging override ([^=\n]*)(.*)", lines[0]):
        path = wrong[1].lstrip("+~")
        problem = lines[1] if len(lines) > 1 else "wrong type"
        problem = re.sub(
            r"Invalid value assigned: \w+ is not a ListConfig, list or tuple.",
            "must be a list, [a,b]",
            problem,
        )
        return f"{path}{wrong[2]}: {problem}{_meaning(path, schema)}"
    where = f"{full_key[1]}: " if full_key and full_key[1] not in lines[0] else ""
    return where + "\n".join(dict.fromkeys(lines[:2]))


def _suggestion(path: str, schema: type) -> str:
    """Suggests what to type instead of an unknown key."""
    training = [name for name, _ in entries(TrainConfig)]
    training += [folder.name for folder in conf_folder().iterdir() if folder.is_dir()]
    training += [f"trainer.{name}" for name in TRAINER]
    own = {entry.name for entry in dataclasses.fields(schema)}
    section = path.partition(".")[0]
    if section in HABITS:
        return HABITS[section]
    if path in training and section not in own:
        return OF_TRAINING
    names = [name for name, _ in entries(schema)]
    if "trainer" in own:
        names += training
    last = path.rpartition(".")[2]
    near = difflib.get_close_matches(path, names, n=2)
    near += [name for name in names if name.rpartition(".")[2] == last and name not in near]
    if near:
        return f"did you mean {' or '.join(dict.fromkeys(near[:3]))}?"
    return f"--help lists keys and groups; to add an entry to a dictionary, type +{path}=…"


def _meaning(path: str, schema: type) -> str:
    """Returns a line with the type, bounds and meaning of a key, or an empty string for an unknown key."""
    entry = dict(entries(schema)).get(path)
    return f"\n{path} takes: {described(entry)} ({entry.metadata['meaning']})" if entry else ""
