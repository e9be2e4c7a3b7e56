"""Claims and rules are hashed before the first run, and a later change is said."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.config import StudyClaim, StudyRuns, StudySection
from nmt.studies.registration import (
    FILE,
    changed_claims,
    content_hash,
    register_claims,
    registrations_of,
)
from nmt.utils.errors import InputError
from tests.helpers.hostile import Attack, as_json, attacks, outcomes


def section(**claims: dict) -> StudySection:
    claim = {"claim": "a", "source": "b", "runs": ["one"], "statistic": "slope", "rule": "above"}
    return StudySection(
        runs={"one": StudyRuns(overrides=["size=tiny"]), "other": StudyRuns(minutes=5)},
        claims={name: StudyClaim(**{**claim, "margin": 0.0, **of}) for name, of in claims.items()},
    )


def test_claims_are_written_once(tmp_path: Path):
    first = register_claims(section(a={}), tmp_path, 0, "mine")
    written = (tmp_path / FILE).read_bytes()
    assert register_claims(section(a={}), tmp_path, 5, "mine") == first
    assert (tmp_path / FILE).read_bytes() == written
    assert len(first) == 1
    assert first[0].runs == 0
    assert len(first[0].sha256) == 64


def test_keys_that_came_later_count_where_they_say_something(tmp_path: Path):
    """The hash of a study that says nothing of them is the one it had before there were such keys."""

    def registered(study: StudySection) -> dict:
        (tmp_path / FILE).unlink(missing_ok=True)
        return register_claims(study, tmp_path, 0, "mine")[0].content

    plain = registered(section(a={}))
    assert set(plain["runs"]["one"]) == {"overrides", "seeds", "sweep", "sweep_seed"}
    assert "longer_than" not in plain["claims"]["a"]
    assert registered(section(a={"longer_than": 20}))["claims"]["a"]["longer_than"] == 20
    evaluated = section(a={})
    evaluated.runs["one"] = StudyRuns(command="evaluate", of="other", title="t")
    said = registered(evaluated)["runs"]["one"]
    assert (said["command"], said["of"]) == ("evaluate", "other")
    assert not {"title", "together"} & set(said)


def test_the_hash_is_of_what_verdicts_depend_on(tmp_path: Path):
    def digest(changed: StudySection) -> str:
        (tmp_path / FILE).unlink(missing_ok=True)
        return register_claims(changed, tmp_path, 0, "mine")[0].sha256

    before = digest(section(a={}))
    same = section(a={})
    same.take, same.only, same.runs["other"].minutes = ["x"], ["a"], 7.0
    assert digest(same) == before
    seeds, overrides, resamples = section(a={}), section(a={}), section(a={})
    seeds.seeds, resamples.resamples = [1], 500
    overrides.runs["one"].overrides.append("size.hidden=2")
    others = [seeds, overrides, resamples, section(a={"margin": 0.5}), section(a={"rule": "below"})]
    assert len({before, *map(digest, others)}) == 6


def test_claims_that_change_without_runs_are_new_ones(tmp_path: Path):
    register_claims(section(a={}), tmp_path, 0, "mine")
    (only,) = register_claims(section(a={"margin": 1.0}), tmp_path, 0, "mine")
    assert only.content["claims"]["a"]["margin"] == 1.0


def test_claims_that_change_after_runs_are_said(tmp_path: Path):
    register_claims(section(a={}, b={}, c={"runs": ["other"]}), tmp_path, 0, "mine")
    changed = section(a={"margin": 1.0}, c={"runs": ["other"]}, d={})
    found = register_claims(changed, tmp_path, 3, "mine")
    assert [each.runs for each in found] == [0, 3]
    assert changed_claims(found) == ["d: added", "b: removed", "a: changed"]
    assert register_claims(changed, tmp_path, 9, "mine") == found
    changed.runs["other"].overrides.append("size=paper")  # what claim c is about
    assert changed_claims(register_claims(changed, tmp_path, 9, "mine"))[2:] == [
        "a: changed",
        "c: changed",
    ]


@pytest.mark.parametrize("damage", ["margin", "truncated"])
def test_a_file_that_was_changed_is_refused(tmp_path: Path, damage: str):
    register_claims(section(a={}), tmp_path, 0, "mine")
    file = tmp_path / FILE
    content = json.loads(file.read_text())
    content[0]["content"]["claims"]["a"]["margin"] = 0.5
    file.write_text(json.dumps(content) if damage == "margin" else file.read_text()[:50])
    with pytest.raises(InputError, match=r"claims\.json: damaged"):
        register_claims(section(a={}), tmp_path, 0, "mine")


def test_the_folder_of_another_study_is_refused(tmp_path: Path):
    known = register_claims(section(a={}), tmp_path, 0, "mine")
    written = (tmp_path / FILE).read_bytes()
    assert register_claims(section(a={}), tmp_path, 1, "mine") == known
    said = (
        r"^hydra\.run\.dir=.*: its claims\.json is of the study 'mine', not of other; name another"
    )
    with pytest.raises(InputError, match=said):
        register_claims(section(b={}), tmp_path, 1, "other")
    assert (tmp_path / FILE).read_bytes() == written


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_file_in_its_place_is_refused(tmp_path: Path, make: Callable[[Path], None]):
    make(tmp_path / FILE)
    with pytest.raises(InputError, match=r"claims\.json: is not a file; move it away$"):
        registrations_of("mine", tmp_path)


def test_a_hostile_file_is_refused_in_a_line(tmp_path: Path):
    """Every field made wrong in every way, its hash the right one as far as it has any."""
    register_claims(section(a={}), tmp_path, 0, "mine")
    file = tmp_path / FILE
    content = json.loads(file.read_text())

    def write(attack: Attack) -> None:
        changed = attack.of(content)
        with contextlib.suppress(TypeError, ValueError, KeyError, IndexError, RecursionError):
            changed[0]["sha256"] = content_hash(changed[0]["content"])
        file.write_bytes(as_json(changed))

    def use() -> None:
        changed_claims(register_claims(section(a={}, b={}), tmp_path, 1, "mine"))

    tried = attacks(content)
    found = outcomes(tried, write, use, FILE)
    assert not found["raised"]
    assert len(found["refused"]) > 100
    assert len(tried) > 300
