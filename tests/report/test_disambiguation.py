import logging
from dataclasses import replace
from pathlib import Path

import pytest

from nmt.report import comparison
from nmt.report.disambiguation import disambiguate_test_sets
from nmt.report.finding import find_runs
from nmt.report.page import build_page
from nmt.report.page.sentences import alignment_rows, translation_rows
from nmt.report.runs import FinishedRun
from nmt.report.tables import scores_table
from tests.helpers.run_folders import make_run


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> list[FinishedRun]:
    """Two runs whose `newstest` is one text, and between them one whose `newstest` is another."""
    folder = tmp_path_factory.mktemp("mixed")
    make_run(folder / "0", model="RNNencdec", pairs=60, kept=6)
    odd = make_run(folder / "1", max_length=30, pairs=60, kept=6, sets=("mine", "newstest"))
    for kind in ("translations", "alignments"):
        (odd / kind / "mine.jsonl").unlink()
    make_run(folder / "2", pairs=60, kept=6)
    return find_runs([folder]).runs


def test_a_name_stands_for_one_text(
    mixed: list[FinishedRun], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        runs = disambiguate_test_sets(mixed)
    assert [run.sets for run in runs] == [["newstest"], ["mine", "newstest-2"], ["newstest"]]
    said = "newstest-2 is the test set newstest of RNNsearch-30: its sentences are not those"
    assert said in caplog.text
    assert runs[1].translations("newstest-2") == mixed[1].translations("newstest")
    assert runs[1].alignments("newstest-2") == mixed[1].alignments("newstest")
    measured = mixed[1].results["test"]["newstest"]
    assert runs[1].results["test"]["newstest-2"] == measured


def test_other_texts_are_neither_paired_nor_shown_as_one(
    mixed: list[FinishedRun], tmp_path: Path
) -> None:
    runs = disambiguate_test_sets(mixed)
    assert comparison.scored_sets(runs) == ["newstest", "mine", "newstest-2"]
    first = comparison.compare_set(runs, "newstest", resamples=20)
    assert {(row["a"], row["b"]) for row in first.significance["bleu"]} == {
        ("RNNencdec-50", "RNNsearch-50")
    }
    assert translation_rows(runs, "newstest")["systems"] == ["RNNencdec-50", "RNNsearch-50"]
    assert all("RNNsearch-30" not in row["by"] for row in alignment_rows(runs, "newstest"))
    second = comparison.compare_set(runs, "newstest-2", resamples=20)
    assert second.significance == {}
    assert any("RNNsearch-30" in note for note in scores_table(second).notes)
    assert not any("RNNsearch-30" in note for note in scores_table(first).notes)
    page = build_page(runs, tmp_path / "page.html", resamples=0).read_text()
    assert "newstest-2 is the test set newstest of RNNsearch-30" in page


def test_another_tokenisation_is_the_same_text(mixed: list[FinishedRun]) -> None:
    rows = [dict(row) for row in mixed[2].translations("newstest")]
    for row in rows:
        row["source"] = [*"".join(row["source"]), "…"]
        row["reference"] = ["«", *row["reference"]]
    other = replace(mixed[2], lines={("translations", "newstest"): rows})
    assert disambiguate_test_sets([mixed[0], other]) == [mixed[0], other]


def test_what_was_not_kept_has_the_first_text_and_a_part_of_a_text_is_another(
    mixed: list[FinishedRun],
) -> None:
    part = mixed[2].translations("newstest")[10:20]
    runs = [
        replace(mixed[2], label="lost", lines={("translations", "newstest"): []}),
        mixed[0],
        replace(mixed[2], label="part", lines={("translations", "newstest"): part}),
        mixed[2],
    ]
    names = [run.sets for run in disambiguate_test_sets(runs)]
    assert names == [["newstest"], ["newstest"], ["newstest-2"], ["newstest"]]


def test_another_source_of_the_same_reference_is_another_text(mixed: list[FinishedRun]) -> None:
    rows = [{**row, "source": row["source"][::-1]} for row in mixed[2].translations("newstest")]
    other = replace(mixed[2], lines={("translations", "newstest"): rows})
    taken = replace(mixed[0], results={"test": {**mixed[0].results["test"], "newstest-2": {}}})
    assert disambiguate_test_sets([taken, other])[1].sets == ["newstest-3"]
