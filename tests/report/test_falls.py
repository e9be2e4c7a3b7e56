import copy
import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from nmt.evaluation.degradation import Group, curves, degradation_of, estimate
from nmt.evaluation.results_schema import DegradationOfScore
from nmt.evaluation.scores import REGISTERED
from nmt.report.comparison import SetComparison, compare_set
from nmt.report.fall_tables import falls_table, slope_differences_table
from nmt.report.finding import find_runs
from nmt.report.runs import FinishedRun
from nmt.report.tables import write_tables
from nmt.utils.untrusted import check_against
from tests.helpers.run_folders import make_run


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> list[FinishedRun]:
    """RNNencdec, which falls from the first word on, and RNNsearch, which falls beyond 30; 3 seeds."""
    folder = tmp_path_factory.mktemp("seeded")
    for model in ("RNNencdec", "RNNsearch"):
        for seed in (1, 2, 3):
            options = {"model": model, "seed": seed, "max_length": 30, "pairs": 450, "kept": 0}
            make_run(folder / f"{model}{seed}", **options)
    return find_runs([str(folder / "*")]).runs


@pytest.fixture(scope="module")
def seeds(seeded: list[FinishedRun]) -> SetComparison:
    return compare_set(seeded, "newstest", 200, [REGISTERED["bleu"]])


def test_groups_are_measured_as_the_sentences_of_all_runs_say(
    seeds: SetComparison, seeded: list[FinishedRun]
) -> None:
    records = {run.label: run.translations("newstest") for run in seeded}
    found = curves(records, [REGISTERED["bleu"]], resamples=200)["bleu"]
    groups = {
        name: Group([found[label] for label in labels], 30)
        for name, labels in seeds.falls.groups.items()
    }
    assert list(groups) == ["RNNencdec-30", "RNNsearch-30"]
    for name, group in groups.items():
        assert seeds.falls.of_groups["bleu"][name] == degradation_of(group)
    label = seeded[0].label
    assert seeds.results[label]["degradation"]["bleu"] == degradation_of(Group([found[label]], 30))
    rows = {row["range"]: row for row in seeds.falls.differences["bleu"]}
    a, b = groups.values()
    expected = estimate(a, "slope", "to_cap", against=b)
    assert rows["to_cap"]["slope"] == expected.report()
    assert rows["to_cap"]["slope"]["of"] == "seeds"


def test_tables_say_how_steep_and_whether_two_differ(seeds: SetComparison) -> None:
    table = falls_table(seeds)
    encdec, search = (row for row in table.rows if row["score"] == "bleu")
    assert encdec["to_cap"][2] < 0  # the interval's upper end
    assert encdec["sentence"].startswith("BLEU falls by ")
    assert " for each 10 words up to 30. BLEU " in encdec["sentence"]
    assert encdec["runs"] == 3
    differences = slope_differences_table(seeds)
    bleu = [row for row in differences.rows if row["score"] == "bleu"]
    assert [row["range"] for row in bleu] == ["all lengths", "up to the cap", "beyond the cap"]
    assert bleu[0]["p_difference"] < 0.01
    row = next(csv.DictReader(io.StringIO(table.csv())))
    assert (float(row["to_cap_high"]), row["score"]) == (encdec["to_cap"][2], "bleu")
    assert " | BLEU, all | " in table.markdown()  # people read titles
    tenth = seeds.falls.of_groups["bleu"]["RNNencdec-30"]["losses"]["tenth"]
    assert {key: row[f"tenth_{key}"] for key in ("low", "high", "status")} == {
        "low": str(tenth["low"]),
        "high": str(tenth["high"]),
        "status": "found",
    }
    assert row["tenth"] == str(tenth["score"])
    assert search["tenth"]


def test_tables_are_written_for_papers_too(seeds: SetComparison, tmp_path: Path) -> None:
    (tmp_path / "falls_of-before.tex").write_text("")
    written = {path.name for path in write_tables(seeds.runs, [seeds], tmp_path)}
    assert {"falls_newstest.csv", "falls_newstest.tex", "slope_differences_newstest.csv"} <= written
    assert not (tmp_path / "falls_of-before.tex").exists()
    lines = (tmp_path / "scores_newstest.tex").read_text().splitlines()
    begin = next(line for line in lines if line.startswith(r"\begin{tabular}"))
    body = [line for line in lines if line.endswith(r" \\")]
    columns = len(begin.removeprefix(r"\begin{tabular}{").removesuffix("}"))
    assert {line.count(" & ") + 1 for line in body} == {columns}
    assert len(body) == 1 + 6


def test_what_is_found_is_what_results_json_may_hold(seeds: SetComparison) -> None:
    adapter = TypeAdapter(dict[str, DegradationOfScore])
    for result in seeds.results.values():
        check_against(result["degradation"], adapter, "results.json")


def test_runs_without_sentences_have_no_falls(runs: list[FinishedRun]) -> None:
    bare = [FinishedRun(run.label, run.results) for run in runs]
    comparison = compare_set(bare, "newstest", 0)
    assert comparison.falls.of_groups == {}
    assert falls_table(comparison).rows == []


def test_what_results_json_says_of_the_same_sentences_is_not_measured_again(
    seeds: SetComparison, seeded: list[FinishedRun]
) -> None:
    label = seeded[0].label
    stored = {**seeds.results[label]["degradation"]["bleu"], "breakpoint": None}
    results = copy.deepcopy(seeded[0].results)
    test = results["test"]["newstest"]
    test["degradation"] = {"bleu": stored}
    pair = [replace(seeded[0], results=results), seeded[1]]
    bleu = [REGISTERED["bleu"]]
    assert compare_set(pair, "newstest", 100, bleu).falls.of_runs["bleu"][label] == stored
    test["bleu"]["all"]["score"] += 0.5  # of other sentences
    assert compare_set(pair, "newstest", 100, bleu).falls.of_runs["bleu"][label] != stored
