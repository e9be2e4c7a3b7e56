"""Runs that are kept without their text: the same scores, and not a word of what was translated."""

from __future__ import annotations

import doctest
import json
import shutil
import tarfile

import numpy as np
import pytest

from benchmarks.records import kept_runs
from benchmarks.records.kept_runs import CLAIMS, PACKED, keep_runs, packed, unpack_runs
from benchmarks.records.tables import RECORDS
from nmt.report.disambiguation import disambiguate_test_sets
from nmt.report.finding import read_run
from tests.helpers.run_folders import make_run

PLACES = ("/tmp", "/root", "/home", "/work", "=/")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "study"
    for seed in (1, 2):
        run = make_run(folder / f"runs/a-seed{seed}", seed=seed, pairs=40)
        results = json.loads((run / "results.json").read_text())
        results["config"]["data"]["root"] = str(folder)
        results["overrides"] = [f"data.root={folder}", "seed=1"]
        (run / "results.json").write_text(json.dumps(results))
        (run / "checkpoints").mkdir()
        (run / "checkpoints/best.ckpt.sha256").write_text(f"{seed:064}  best.ckpt\n")
    (folder / CLAIMS).write_text("[]")
    return folder


@pytest.fixture(scope="module")
def again(study, tmp_path_factory):
    """The study's folder as it is unpacked elsewhere."""
    kept = tmp_path_factory.mktemp("kept") / "a"
    assert len(keep_runs(study, kept)) == 2
    folder = tmp_path_factory.mktemp("again") / "study"
    assert [run.name for run in unpack_runs(kept, folder)] == ["a-seed1", "a-seed2"]
    assert not keep_runs(folder, kept)
    assert not unpack_runs(kept, folder)
    return folder


def test_every_score_is_that_of_the_run(study, again):
    for seed in (1, 2):
        whole, bare = (read_run(folder / f"runs/a-seed{seed}") for folder in (study, again))
        for score in kept_runs.measured_by(whole):
            tables = [score.table(run.translations("newstest")) for run in (whole, bare)]
            np.testing.assert_array_equal(*tables, err_msg=score.key)
        keys = ("id", "length", "no_unk", "unknown_words")
        for one, other in zip(
            *(run.translations("newstest") for run in (whole, bare)), strict=True
        ):
            assert [one.get(key) for key in keys] == [other.get(key) for key in keys]
        assert bare.model == whole.model == f"{seed:064}"
        assert bare.overrides == ("seed=1",)
        assert bare.group == whole.group
        assert bare.results["test"] == whole.results["test"]


def test_no_word_and_no_path_is_kept(study, again):
    whole, bare = (read_run(folder / "runs/a-seed1") for folder in (study, again))
    assert all(row["source"] and row["detokenised"] for row in whole.translations("newstest"))
    for row in bare.translations("newstest"):
        assert not strings(row), row
    for file in (again / "runs/a-seed1").rglob("*"):
        assert not file.is_file() or not any(place in file.read_text() for place in PLACES)


def strings(value):
    """The words in a record's values, at any depth."""
    if isinstance(value, dict):
        return [found for inner in value.values() for found in strings(inner)]
    if isinstance(value, list):
        return [found for inner in value for found in strings(inner)]
    return [value] if isinstance(value, str) and value else []


def test_a_run_gives_the_same_bytes(study):
    run = study / "runs/a-seed1"
    assert packed(read_run(run)) == packed(read_run(run))


def test_runs_with_and_without_text_are_of_one_text(study, again):
    runs = [read_run(folder / "runs/a-seed1") for folder in (study, again)]
    assert [run.sets for run in disambiguate_test_sets(runs)] == [["newstest"], ["newstest"]]


def test_what_a_study_has_is_left_as_it_is(study, tmp_path):
    keep_runs(study, tmp_path / "kept")
    mine = shutil.copytree(study, tmp_path / "mine")
    (mine / CLAIMS).write_text("[1]")
    shutil.rmtree(mine / "runs/a-seed2")
    assert [run.name for run in unpack_runs(tmp_path / "kept", mine)] == ["a-seed2"]
    assert read_run(mine / "runs/a-seed1").translations("newstest")[0]["source"]
    assert (mine / CLAIMS).read_text() == "[1]"
    assert unpack_runs(tmp_path / "none", mine) == []


@pytest.mark.parametrize("file", sorted(RECORDS.glob(f"runs/*/*{PACKED}")), ids=lambda f: f.name)
def test_what_the_project_keeps_has_neither_text_nor_paths(file):
    with tarfile.open(file) as archive:
        for entry in archive.getmembers():
            text = archive.extractfile(entry).read().decode()
            assert not any(place in text for place in PLACES)
            if entry.name.endswith(".jsonl"):
                rows = [json.loads(line) for line in text.splitlines()]
                assert all(not row["source"] and not row["hypothesis"] for row in rows)
                assert not any(
                    isinstance(value, str) and value for row in rows for value in row.values()
                )


def test_doctests():
    assert doctest.testmod(kept_runs).failed == 0
