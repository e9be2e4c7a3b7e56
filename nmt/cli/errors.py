"""Exit codes, and the errors of Hydra and OmegaConf in one or two lines: key, problem, remedy."""

from __future__ import annotations

import difflib
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator

import yaml
from hydra.errors import HydraException, OverrideParseException
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from nmt.config.keys import described, entries
from nmt.config.overrides import GROUPS
from nmt.config.training import TRAINER
from nmt.utils.environment import rank
from nmt.utils.errors import InputError, Interrupted, RunError

COMPOSING = (HydraException, OmegaConfBaseException, yaml.YAMLError)
EXTRAS = {"hydra/sweeper": "optuna", "hydra/launcher": "sweeps"}  # with plugins of Hydra
NOISE = ("object_type=", "reference_type=", "full_key:", "See https://", "To append to your")


def exit_code(application: Callable[[], object]) -> int:
    """Runs a program and returns its exit code, after printing the message of an error.

    0 done; 1 failed, with a traceback; 2 refused, with one or two lines; 128 + signal if stopped by one.
    """
    try:
        application()
    except InputError as refusal:
        return _say(refusal, 2)
    except RunError as failure:
        return _say(failure, 1)
    except Interrupted as stopped:
        # what started the other ranks takes a code above 0 for a crash, and kills the first one
        return _say(stopped, 0 if rank() else 128 + stopped.signal)
    except KeyboardInterrupt:
        return _say("stopped by Ctrl-C", 130)
    except BrokenPipeError:  # the reader has closed the pipe: `nmt translate … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def explain(error: BaseException, schema: type) -> str:
    """One or two lines on a configuration that could not be composed.

    Args:
        error: raised while composing.
        schema: dataclass of the command's keys.
    """
    if isinstance(error, yaml.MarkedYAMLError) and (mark := error.problem_mark):
        return f"{mark.name}:{mark.line + 1}: {error.problem}"
    if isinstance(error.__cause__, InputError):  # of a resolver
        return str(error.__cause__)
    lines = [line for text in _causes(error) for line in text.splitlines()]
    lines = [line.strip() for line in lines if line.strip() and not line.strip().startswith(NOISE)]
    if isinstance(error, OverrideParseException):
        key, _, value = error.override.partition("=")
        quoted = '"' + value.replace('"', r"\"") + '"'
        return f"{error.override}: {lines[0]}\nquote special characters twice: '{key}={quoted}'"
    text = "\n".join(lines)
    if option := re.search(r"Could not (?:find|load) '([^']*)/([^'/]*)'", text):
        listed = re.search(r"Available options in .*:\n((?:.+\n)*?)Config search", f"{text}\n")
        known = f"; available: {', '.join(listed[1].split())}" if listed else ""
        extra = EXTRAS.get(option[1])
        remedy = f"\nmore with: uv sync --extra {extra}, or pip install -e '.[{extra}]'"
        return f"{option[1]}={option[2]}: no such option{known}{remedy if extra else ''}"
    if isinstance(error, MissingMandatoryValue):
        path = text.rpartition(" ")[2]  # the last word of "Missing mandatory value: checkpoint"
        return f"{path}: must be given{_meaning(path, schema)}"
    if unknown := re.match(r"Could not override '([^']+)'", text):
        return f"{unknown[1]}: no such key; {_suggestion(unknown[1], schema)}"
    if wrong := re.match(r"Error merging override ([^=]*)(.*)", lines[0]):
        path = wrong[1].lstrip("+~")
        problem = lines[1] if len(lines) > 1 else "wrong type"
        return f"{path}{wrong[2]}: {problem}{_meaning(path, schema)}"
    full_key = re.search(r"full_key: (\S+)", "\n".join(_causes(error)))
    where = f"{full_key[1]}: " if full_key and full_key[1] not in lines[0] else ""
    return where + "\n".join(dict.fromkeys(lines[:2]))


def _causes(error: BaseException | None) -> Iterator[str]:
    while error is not None:
        yield str(error) or type(error).__name__
        error = error.__cause__


def _suggestion(path: str, schema: type) -> str:
    """What to type in place of an unknown key."""
    names = [*(name for name, _ in entries(schema)), *GROUPS, "experiment", "regime", "stress"]
    names = list(dict.fromkeys([*names, *(f"trainer.{name}" for name in TRAINER)]))
    last = path.rpartition(".")[2]
    near = difflib.get_close_matches(path, names, n=2)
    near += [name for name in names if name.rpartition(".")[2] == last and name not in near]
    if near:
        return f"did you mean {' or '.join(near[:3])}?"
    return f"--help lists keys and groups; to add an entry to a dictionary, type +{path}=…"


def _meaning(path: str, schema: type) -> str:
    """A second line with type, bounds and meaning of a key, if the schema has it."""
    for name, entry in entries(schema):
        if name == path:
            return f"\n{path} takes: {described(entry)} ({entry.metadata['meaning']})"
    return ""


def _say(message: object, code: int) -> int:
    if rank() == 0 or code == 1:
        print(f"nmt: {message}", file=sys.stderr)
    return code
