"""nmt.study as it is typed."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest

from nmt.studies.registration import content_hash
from tests.helpers.processes import start


def test_the_plan_is_shown_and_nothing_is_trained(program):
    ended = program("study", "+study=tiny", "study.plan_only=true")
    assert ended.code == 0, ended.err
    assert "study tiny: 2 claims in " in ended.err
    assert "rnnsearch50  0 found, 2 to make, 12 s each, as the study says" in ended.err
    assert "to make: 4 runs, about 48 s" in ended.err
    left = {path.name for path in (program.folder / "studies/tiny").iterdir()}
    assert left == {".hydra", "study.log"}


def test_the_verdicts_are_shown_a_line_a_claim(program):
    typed = ("+study=tiny", "study.missing=leave")
    ended = program("study", *typed)
    assert ended.code == 0, ended.err
    head, *claims = ended.err.splitlines()[-3:]
    assert head.split() == ["claim", "verdict", "figure", "rule", "sentences", "seeds"]
    assert claims[0].split() == ["attention-wins", "undecided", "–", "above", "0", "–", "–"]
    ended = program("study", *typed, "study.only=[no-magic]")
    assert ended.err.splitlines()[-2].startswith("claim ")
    assert ended.err.splitlines()[-1].startswith("no-magic  undecided  ")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ((), "nmt: study: none is chosen; type +study=NAME, such as +study=bahdanau\n"),
        (("study=tiny",), "nmt: study: this group has no default; type +study=…\n"),
        (("+study=large",), "nmt: study=large: no such; available: bahdanau, europarl, multi30k, own, scoring, tiny\n"),
        (("+study=tiny", "study.only=[x]"), "nmt: study.only=[x]: no such claim; there are attention"),
        (("+study=tiny", "study.take=[no]"), "nmt: study.take: nothing matches no; name run fol"),
        (
            ("+study=tiny", "study.plan_only=true", 'study.overrides=["regime=tiny","evaluation.attention=uniform"]'),
            "nmt: study.runs.rnnencdec50: evaluation.attention=uniform: a training is tested with the attention",
        ),
        (("-m", "+study=tiny"), "nmt: -m: nmt.study cannot be swept; run it once for each value\n"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path, typed, said):
    ended = start("nmt.study", *typed, cwd=tmp_path).wait()
    assert ended.code == 2
    assert ended.err.startswith(said), ended.err
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_folder_of_another_study_is_refused_before_anything_is_planned(tmp_path):
    (tmp_path / "here").mkdir()
    content = {"overrides": [], "seeds": [], "resamples": 100, "confidence": 0.9}
    content |= {"claims": {}, "runs": {}}
    stored = {"sha256": content_hash(content), "runs": 4, "content": content, "study": "scoring"}
    (tmp_path / "here/claims.json").write_text(json.dumps([stored]))
    ended = start("nmt.study", "+study=tiny", "hydra.run.dir=here", cwd=tmp_path).wait()
    assert ended.code == 2
    said = "its claims.json is of the study 'scoring', not of tiny; name another folder"
    assert ended.err == f"nmt: hydra.run.dir={tmp_path}/here: {said}\n"
    assert [path.name for path in (tmp_path / "here").iterdir()] == ["claims.json"]


def test_a_study_that_is_no_yaml(tmp_path):
    file = tmp_path / "mine" / "study" / "wrong.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("claims:\n  a: {margin: 0}\n  a: {margin: 1}\n")
    ended = start("nmt.study", "--config-dir", "mine", "+study=wrong", cwd=tmp_path).wait()
    assert ended.code == 2
    said = "found duplicate key a"
    assert ended.err == f"nmt: {file}:3: {said}\n"


TYPED = (
    *("+study=tiny", "hydra.run.dir=here"),
    "+study.runs.both={command: evaluate, of: rnnsearch50, together: true}",
)
MOMENTS = 5


@pytest.mark.slow
def test_a_study_that_is_killed_goes_on_and_ends_the_same(tmp_path):
    """At five moments of the time that it takes unhurt: once the sweep too, else the study alone."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    began = time.monotonic()
    ended = study(whole)
    assert ended.code == 0, ended.err
    seconds = time.monotonic() - began
    text = (whole / "here/study.md").read_text()
    assert "1 refuted" in text
    draw = random.Random(18)
    for moment in range(MOMENTS):
        process = begin(killed)
        time.sleep(draw.uniform(0.05, 0.95) * seconds / 2)
        for pid in [*process.pids, *(children(process.pids[0]) if moment % 2 else ())]:
            kill(pid)
        process.wait()
    (killed / "here/.study.json.x.partial").touch()  # as a kill while it is written leaves it
    ended = study(killed)
    assert ended.code == 0, ended.err
    assert (killed / "here/study.md").read_text() == text
    assert not list(killed.rglob("*.partial"))
    before = {path: path.stat().st_mtime for path in (killed / "here/runs").glob("*/results.json")}
    assert len(before) == 5
    shutil.rmtree(killed / "data")  # nothing is trained, though the text must be made anew
    assert study(killed).code == 0
    assert (killed / "here/study.md").read_text() == text
    assert before == {path: path.stat().st_mtime for path in before}
    elsewhere = study(killed, "hydra.run.dir=there", "study.take=[here/runs]", "~study.runs.both")
    assert elsewhere.code == 0
    assert "4 runs taken from elsewhere" in (killed / "there/study.md").read_text()
    assert not (killed / "there/runs").exists()


def begin(folder: Path, *typed: str):
    return start("nmt.study", *TYPED, *typed, cwd=folder, timeout=900)


def study(folder: Path, *typed: str):
    return begin(folder, *typed).wait()


def children(pid: int) -> list[int]:
    """All processes below one."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found += [child, *children(child)]
    return found


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
