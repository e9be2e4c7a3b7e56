"""Runs that are kept without their text: the same scores, and not a word of what was translated."""

from __future__ import annotations

import doctest
import io
import json
import lzma
import shutil
import tarfile

import numpy as np
import pytest

from benchmarks.records import kept_runs
from benchmarks.records.kept_runs import (
    CLAIMS,
    PACKED,
    keep_runs,
    packed,
    refuse_places,
    strings,
    unpack_runs,
    without_text,
)
from benchmarks.records.tables import RECORDS
from nmt.evaluation.scores import REGISTERED, Score
from nmt.report.disambiguation import disambiguate_test_sets
from nmt.report.finding import read_run
from nmt.studies.existing import find_existing
from nmt.studies.plan import plan_of
from nmt.studies.planned import identity
from tests.helpers.run_folders import make_run
from tests.studies.conftest import composed

FIRST = [{"sha256": "a", "runs": 0, "study": "a", "content": {}}]


class Exact(Score):
    """The share of sentences that are right as a whole; of long ones only."""

    key, title = "exact", "Exact matches"

    def statistics(self, record):
        if record["length"] < 12:
            return None
        return [record["hypothesis"] == record["reference"], True]

    def combine(self, sums):
        return sums[..., 0] / sums[..., 1]


def of_study(folder, runs=(), score="bleu"):
    """study.json and claims.json, as far as they are read."""
    claims = [{"name": "c", "claim": {"score": score}}]
    entries = [{"folder": str(run)} for run in runs] + [{"folder": None}]
    (folder / "study.json").write_text(json.dumps({"claims": claims, "runs": entries}))
    (folder / CLAIMS).write_text(json.dumps(FIRST))


def test_the_runs_on_record_are_found_by_their_study(tmp_path):
    """A digest that changes with the keys of this version would have evaluations made anew."""
    texts, folder = tmp_path / "texts", tmp_path / "study"
    (texts / "gold").mkdir(parents=True)
    for name in ("hansards-dev", "alibi"):  # without them the study has no such test sets
        for ending in ("en", "fr", "align"):
            (texts / f"gold/{name}.{ending}").touch()
    unpack_runs(RECORDS / "runs/europarl", folder)
    with composed("+study=europarl", root=str(texts), accept="configuration") as config:
        found = find_existing(plan_of(config), folder)
    assert [run.folder_name for run in found.missing()] == []


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "study"
    runs = [
        make_run(folder / f"runs/a-seed{seed}", seed=seed, pairs=40, model=model)
        for seed, model in ((1, "RNNsearch"), (2, "RNNencdec"))
    ]
    for run in runs:
        results = json.loads((run / "results.json").read_text())
        results["config"] = {  # of a text from files, and of a run that was made somewhere
            "name": "x", "seed": 1, "trainer": {"max_steps": 2},
            "data": {"root": str(folder), "train": {"source": f"{folder}/t.en", "target": f"{folder}/t.fr"}},
            "logger": {"entity": "somebody"},
        }  # fmt: skip
        results["overrides"] = [f"data.root={folder}", "seed=1"]
        (run / "results.json").write_text(json.dumps(results))
        (run / "checkpoints").mkdir()
        (run / "checkpoints/best.ckpt.sha256").write_text(f"{'b' * 64}  best.ckpt\n")
    of_study(folder, [*runs, folder.parent / "taken"])
    return folder


@pytest.fixture(scope="module")
def again(study, tmp_path_factory):
    """The study's folder as it is unpacked elsewhere."""
    kept = tmp_path_factory.mktemp("kept") / "a"
    assert [path.name for path in keep_runs(study, kept)] == ["a-seed1.tar.xz", "a-seed2.tar.xz"]
    folder = tmp_path_factory.mktemp("again") / "study"
    folder.mkdir()
    assert [run.name for run in unpack_runs(kept, folder)] == ["a-seed1", "a-seed2"]
    assert unpack_runs(kept, folder) == []
    assert sorted(path.name for path in folder.iterdir()) == [CLAIMS, "runs"]
    return folder


def test_every_score_is_that_of_the_run(study, again):
    for seed in (1, 2):
        whole, bare = (read_run(folder / f"runs/a-seed{seed}") for folder in (study, again))
        rows = [run.translations("newstest") for run in (whole, bare)]
        measured = kept_runs.measured_by(whole)
        assert {score.key for score in measured} > {
            "bleu",
            "bleu_no_unk",
            "repeated_ngrams",
            "chrf",
        }
        for score in measured:
            np.testing.assert_array_equal(*(score.table(each) for each in rows), err_msg=score.key)
        for one, other in zip(*rows, strict=True):
            assert [one.get(key) for key in kept_runs.NUMBERS] == [
                other.get(key) for key in kept_runs.NUMBERS
            ]
        assert bare.model == whole.model == "b" * 64
        assert bare.overrides == ["seed=1"]
        assert identity(bare.config) == identity(whole.config)
        assert bare.results["test"] == whole.results["test"]


def test_a_score_that_was_not_kept_is_not_made_up(study, again):
    exact = Exact()
    rows = [read_run(folder / "runs/a-seed1").translations("newstest") for folder in (study, again)]
    assert not np.isnan(exact.table(rows[0])).all()
    assert np.isnan(exact.table(rows[1])).all()
    kept = [json.loads(json.dumps(without_text(row, [exact]))) for row in rows[0]]
    np.testing.assert_array_equal(exact.table(kept), exact.table(rows[0]))
    assert np.isnan(exact.table(kept)).any()


def test_statistics_that_are_no_numbers_are_left_out(study):
    class Wrong(Exact):
        def statistics(self, record):
            return [float("nan"), 1.0]

    row = read_run(study / "runs/a-seed1").translations("newstest")[0]
    assert without_text(row, [Wrong()])["statistics"] == {}


def test_the_scores_of_the_claims_are_kept(study, tmp_path):
    copied = shutil.copytree(study, tmp_path / "study")
    of_study(copied, [copied / "runs/a-seed1"], score="ter")
    assert REGISTERED["ter"].slow
    keep_runs(copied, tmp_path / "kept")
    (run,) = unpack_runs(tmp_path / "kept", tmp_path)
    assert not np.isnan(REGISTERED["ter"].table(read_run(run).translations("newstest"))).any()


def test_no_word_and_no_place_is_kept(study, again):
    whole, bare = (read_run(folder / "runs/a-seed1") for folder in (study, again))
    assert all(row["source"] and row["detokenised"] for row in whole.translations("newstest"))
    assert not list(strings(bare.translations("newstest")))
    assert str(study) not in "".join(
        file.read_text() for file in (again / "runs").rglob("*") if file.is_file()
    )
    assert "somebody" not in list(strings(bare.results))


@pytest.mark.parametrize(
    "text", ["/a", "a=/b", "[~/c]", "x ../d", "file://e", "'/f'", "data.test.a.files=[/g/h]"]
)
def test_a_place_is_not_kept(text):
    with pytest.raises(SystemExit, match="it names a place"):
        refuse_places({"a": ["b", {"c": text}]}, "run")
    refuse_places({"/a": ["wmt/wmt14", "1/2", "a.b/c", None, 3]}, "run")


def test_a_run_gives_the_same_bytes(study):
    run = study / "runs/a-seed1"
    assert packed(read_run(run)) == packed(read_run(run))


def test_runs_are_of_one_text_where_its_words_are_the_same(study, again, tmp_path):
    other = make_run(tmp_path / "other", pairs=39)
    runs = [read_run(folder / "runs/a-seed1") for folder in (study, again)]
    alone = disambiguate_test_sets([*runs, read_run(other)])
    assert [run.sets for run in alone] == [["newstest"], ["newstest"], ["newstest-2"]]
    of_study(tmp_path, [tmp_path / "runs/b"])
    shutil.copytree(other, tmp_path / "runs/b")
    keep_runs(tmp_path, tmp_path / "kept")
    (bare,) = unpack_runs(tmp_path / "kept", tmp_path / "again")
    apart = disambiguate_test_sets([runs[1], read_run(bare)])
    assert [run.sets for run in apart] == [["newstest"], ["newstest-2"]]


def test_what_a_study_has_is_left_as_it_is(study, tmp_path):
    keep_runs(study, tmp_path / "kept")
    mine = shutil.copytree(study, tmp_path / "mine")
    (mine / CLAIMS).write_text(json.dumps([*FIRST, {"sha256": "b"}]))
    shutil.rmtree(mine / "runs/a-seed2")
    assert [run.name for run in unpack_runs(tmp_path / "kept", mine)] == ["a-seed2"]
    assert read_run(mine / "runs/a-seed1").translations("newstest")[0]["source"]
    assert len(json.loads((mine / CLAIMS).read_text())) == 2
    assert unpack_runs(tmp_path / "none", mine) == []


def test_claims_that_do_not_go_on_from_the_kept_ones(study, tmp_path):
    keep_runs(study, tmp_path / "kept")
    mine = shutil.copytree(study, tmp_path / "mine")
    (mine / CLAIMS).write_text(json.dumps([{"sha256": "b"}]))
    before = (tmp_path / "kept" / CLAIMS).read_text()
    with pytest.raises(SystemExit, match="holds other claims"):
        unpack_runs(tmp_path / "kept", mine)
    with pytest.raises(SystemExit, match="does not go on from the claims"):
        keep_runs(mine, tmp_path / "kept")
    assert (tmp_path / "kept" / CLAIMS).read_text() == before


def test_the_runs_kept_are_those_of_the_study(study, tmp_path):
    """A run made again is kept anew, and one that the study no longer has is not."""
    mine, kept = shutil.copytree(study, tmp_path / "mine"), tmp_path / "kept"
    runs = [mine / f"runs/a-seed{seed}" for seed in (1, 2)]
    of_study(mine, runs)
    first, second = keep_runs(mine, kept)
    before = first.read_bytes(), second.stat().st_mtime_ns
    results = json.loads((runs[0] / "results.json").read_text())
    (runs[0] / "results.json").write_text(json.dumps({**results, "title": "made again"}))
    keep_runs(mine, kept)
    assert first.read_bytes() != before[0]
    assert second.stat().st_mtime_ns == before[1]
    of_study(mine, runs[:1])
    assert keep_runs(mine, kept) == [first]
    assert not second.exists()


def test_a_damaged_archive_leaves_nothing(study, tmp_path):
    keep_runs(study, tmp_path / "kept")
    damaged = tmp_path / "kept" / f"a-seed1{PACKED}"
    whole = damaged.read_bytes()
    (tmp_path / "again").mkdir()
    for content in (whole[: len(whole) // 2], b"", lzma.compress(b"no archive")):
        damaged.write_bytes(content)
        with pytest.raises(SystemExit, match=r"a-seed1.tar.xz: damaged"):
            unpack_runs(tmp_path / "kept", tmp_path / "again")
        assert list((tmp_path / "again/runs").iterdir()) == []
    damaged.write_bytes(whole)
    assert len(unpack_runs(tmp_path / "kept", tmp_path / "again")) == 2


@pytest.mark.parametrize("file", sorted(RECORDS.glob(f"runs/*/*{PACKED}")), ids=lambda f: f.name)
def test_what_the_project_keeps_has_neither_text_nor_places(file):
    with tarfile.open(fileobj=io.BytesIO(file.read_bytes())) as archive:
        for entry in archive.getmembers():
            text = archive.extractfile(entry).read().decode()
            assert "\n/" not in text
            if entry.name.endswith(".jsonl"):
                assert not any(list(strings(json.loads(line))) for line in text.splitlines())
            elif entry.name.endswith(".json"):
                refuse_places(json.loads(text), entry.name)
    refuse_places(json.loads((file.parent / CLAIMS).read_text()), CLAIMS)


def test_doctests():
    assert doctest.testmod(kept_runs).failed == 0
