"""Registers claims and rules with a hash before the first run."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from nmt.config import StudySection
from nmt.utils.errors import InputError
from nmt.utils.files import write_json
from nmt.utils.untrusted import Count, Number, check_against, read_json

FILE = "claims.json"
SHARED = ("overrides", "seeds", "resamples", "confidence")  # keys that decide every claim
UNREGISTERED = ("title", "minutes")
LATER = {  # and their defaults
    "command": "train",
    "of": None,
    "together": False,
    "reverse": None,
    "longer_than": 0,
}
HOLDS = "it holds the claims that runs were made for"


@dataclass(frozen=True)
class Registration:
    """Claims and rules as they stood when they were hashed.

    Attributes:
        sha256: of `content`.
        runs: that the study's folder held at that time, finished or begun.
        content: see `registered_content`.
        study: name of the study.
    """

    sha256: str
    runs: int
    content: dict[str, Any]
    study: str


@with_config(ConfigDict(extra="allow"))
class _Claim(TypedDict):
    runs: list[str]


@with_config(ConfigDict(extra="allow"))
class _Content(TypedDict):
    overrides: list[str]
    seeds: list[int]
    resamples: Count
    confidence: Number
    claims: dict[str, _Claim]
    runs: dict[str, dict[str, Any]]


@with_config(ConfigDict(extra="forbid"))
class _Stored(TypedDict):
    sha256: str
    runs: Count
    content: _Content
    study: str


REGISTRATIONS = TypeAdapter(Annotated[list[_Stored], Field(min_length=1)])


def registered_content(section: StudySection) -> dict[str, Any]:
    """Everything that the verdicts of a study depend on, as plain values: claims, rules, runs, resamples.

    Titles, costs and how the study is run are left out. So are keys that were added later, where they
    have their defaults: the hashes of earlier studies stay valid.
    """
    whole = dataclasses.asdict(section)
    return {
        **{key: whole[key] for key in SHARED},
        **{
            part: {name: _said(entry) for name, entry in whole[part].items()}
            for part in ("claims", "runs")
        },
    }


def _said(entry: dict[str, Any]) -> dict[str, Any]:
    """What a claim or a group says that is registered."""
    return {
        key: value
        for key, value in entry.items()
        if key not in UNREGISTERED and (key not in LATER or value != LATER[key])
    }


def content_hash(content: dict[str, Any]) -> str:
    """SHA-256 of a content, whatever the order of its keys."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def register_claims(
    section: StudySection, folder: Path, runs: int, study: str
) -> list[Registration]:
    """Writes claims and rules into a study's folder, unless they stand there already.

    Args:
        section: the study.
        folder: its folder.
        runs: that the folder holds, finished or begun.
        study: its name.

    Returns:
        The first registration and, where claims or rules were changed when there were runs, those
        that followed it; the last is the present one.

    Raises:
        InputError: as `registrations_of`.
    """
    content = registered_content(section)
    present = Registration(content_hash(content), runs, content, study)
    known = registrations_of(study, folder)
    if known and known[-1].sha256 == present.sha256:
        return known
    changed = [*known, present] if runs else [present]
    write_json(folder / FILE, [dataclasses.asdict(each) for each in changed])
    return changed


def changed_claims(registrations: list[Registration]) -> list[str]:
    """A line for each claim that was added, removed or changed since the first registration.

    A claim counts as changed, too, where its runs have changed.
    """
    first, last = registrations[0].content, registrations[-1].content
    before, now = _by_claim(first), _by_claim(last)
    said = [f"{name}: added" for name in now if name not in before]
    said += [f"{name}: removed" for name in before if name not in now]
    return said + [
        f"{name}: changed" for name in now if name in before and now[name] != before[name]
    ]


def _by_claim(content: dict[str, Any]) -> dict[str, Any]:
    """Each claim with all that decides it."""
    shared = [content[key] for key in SHARED]
    return {
        name: [claim, [content["runs"].get(group) for group in claim["runs"]], shared]
        for name, claim in content["claims"].items()
    }


def registrations_of(study: str, folder: Path) -> list[Registration]:
    """The registrations in a study's folder, the first one first; none in a new folder.

    Raises:
        InputError: where a file cannot be read, or the folder is another study's.
    """
    path = folder / FILE
    if not path.exists():
        return []
    if not path.is_file():  # a pipe, for one, would be read for ever
        raise InputError(f"{path}: is not a file; move it away")
    try:
        stored = read_json(path.read_bytes(), str(path))
        check_against(stored, REGISTRATIONS, str(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except InputError as refused:
        raise InputError(f"{refused}; {HOLDS}") from refused
    found = [Registration(**each) for each in stored]
    if any(content_hash(each.content) != each.sha256 for each in found):
        raise InputError(f"{path}: damaged: its hash is not that of its content; {HOLDS}")
    there = found[-1].study
    if there != study:
        raise InputError(
            f"hydra.run.dir={folder}: its {FILE} is of the study {there!r:.40}, not of {study}; "
            "name another folder"
        )
    return found
