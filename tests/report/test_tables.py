import csv
import io
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from nmt.evaluation.bleu import bleu_scores
from nmt.report import comparison as compared
from nmt.report.comparison import SetComparison
from nmt.report.page.document import html_table
from nmt.report.run_tables import differences_table, paper_table, training_table
from nmt.report.runs import FinishedRun
from nmt.report.table import MOST_ROWS, Column, MeanAndDeviation, Table, show
from nmt.report.tables import (
    correlation_of_alignment,
    lengths_table,
    scores_table,
    seeds_table,
    significance_table,
    unknown_words_table,
    write_tables,
)


def test_cells_are_shown_with_interval_thin_spaces_or_a_dash() -> None:
    column = Column("x", "X", 1)
    assert show((26.75, 25.9, 27.51), column) == "26.8 [25.9, 27.5]"
    assert show((26.75, None, None), column) == "26.8"
    assert show(846_000, column) == "846\u202f000"
    assert show(None, column) == "–"


def test_markup_and_bars_are_harmless_in_markdown() -> None:
    table = Table("t", "T", [Column("a", "A", text=True)], [{"a": "<b>x|y</b>\nz"}])
    assert table.markdown().splitlines()[-1] == "| &lt;b>x\\|y&lt;/b> z |"


def test_a_table_for_the_terminal_stands_in_columns() -> None:
    columns = [Column("a", "A", text=True), Column("b", "Figure", 1), Column("c", "C", text=True)]
    table = Table("t", "T", columns, [{"a": "long", "b": 12.34}, {"b": -5.0, "c": "end"}])
    assert table.text() == "A     Figure  C\nlong    12.3  –\n–       −5.0  end"


def test_what_would_steer_a_terminal_is_written_out_in_every_kind_of_table() -> None:
    column = Column("a", "A\x07", text=True)
    table = Table("t", "T\x1b[2J", [column], [{"a": "\x1b]0;x\x07\u202eé"}], ["N\x9b."])
    written = {
        "text": table.text(),
        "md": table.markdown(),
        "tex": table.latex(),
        "csv": table.csv(),
    }
    written["html"] = html_table(table)
    for text in written.values():
        assert not set(text) & set("\x1b\x07\x9b\u202e")
    assert written["csv"] == "a\n\\x1b]0;x\\x07\\u202eé\n"
    assert "| \\\\x1b]0;x\\\\x07\\\\u202eé |" in written["md"]
    assert "\\x1b]0;x\\x07\\u202eé</th>" in written["html"]


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("@SUM(1,1)", "'@SUM(1,1)"),
        ("+1+cmd", "'+1+cmd"),
        ("-2+3", "'-2+3"),
        ("\t=1", "'\t=1"),
        ("=1\n2", "'=1\n2"),
        ("\r=1", "\\r=1"),
        *((same, same) for same in ("-1", "+.5e-3", "-", "–", "\N{MINUS SIGN}3", "a=1", "")),
        (-0.5, "-0.5"),
    ],
)
def test_no_cell_of_csv_is_computed_by_a_spreadsheet(cell, written) -> None:
    columns = [Column("n", "N"), Column("a", "A", text=True)]
    _, row = csv.reader(io.StringIO(Table("t", "T", columns, [{"n": 1, "a": cell}]).csv()))
    assert row == ["1", written]
    if isinstance(cell, str):  # a run's name heads a column
        header, _ = csv.reader(io.StringIO(Table("t", "T", [Column(cell, "A")], [{}]).csv()))
        assert header == [written]


def test_deviations_have_a_column_in_csv() -> None:
    columns = [Column("group", "Group", text=True), Column("all", "BLEU", 1)]
    table = Table(
        "t",
        "T",
        columns,
        [{"group": "a", "all": MeanAndDeviation(20.25, 1.5)}, {"group": "b", "all": 3.0}],
    )
    assert "| a | 20.2 ± 1.5 |" in table.markdown()
    assert table.csv().splitlines() == ["group,all,all_sd", "a,20.25,1.5", "b,3.0,"]


def test_csv_keeps_full_precision_and_splits_intervals() -> None:
    columns = [Column("run", "Run", text=True), Column("all", "BLEU")]
    rows = [{"run": "a,b", "all": (26.754321, 25.0, 28.0)}, {"run": "c", "all": None}]
    read = list(csv.DictReader(io.StringIO(Table("t", "T", columns, rows).csv())))
    assert read[0] == {"run": "a,b", "all": "26.754321", "all_low": "25.0", "all_high": "28.0"}
    assert read[1] == {"run": "c", "all": "", "all_low": "", "all_high": ""}


def test_a_minus_is_no_hyphen_and_nothing_is_minus_zero() -> None:
    column = Column("x", "X", 2)
    assert show(-1.5, column) == "\N{MINUS SIGN}1.50"
    assert show((-1.5, -2.25, 0.5), column) == "\N{MINUS SIGN}1.50 [\N{MINUS SIGN}2.25, 0.50]"
    assert show(MeanAndDeviation(-0.25, 0.1), column) == "\N{MINUS SIGN}0.25 ± 0.10"
    assert show(-3, column) == "\N{MINUS SIGN}3"
    assert show(-0.001, column) == "0.00"
    assert show("RNNsearch-50", Column("run", "Run", text=True)) == "RNNsearch-50"
    rows = [{"x": -0.001}]
    assert Table("t", "T", [column], rows).csv() == "x\n-0.001\n"  # for programs, as it is


def test_published_figures_stand_apart_from_measured_ones(comparison: SetComparison) -> None:
    measured, published = scores_table(comparison), paper_table()
    assert {column.key for column in measured.columns} == {"run", *comparison.shown_scores()}
    assert "not measured here" in published.title
    assert "newstest2014" in published.title


def test_scores_are_those_of_the_runs(comparison: SetComparison) -> None:
    table = scores_table(comparison)
    by_run = {row["run"]: row for row in table.rows}
    search = by_run["RNNsearch-50 seed 1"]
    assert search["bleu"][1] < search["bleu"][0] < search["bleu"][2]
    assert search["alignment_error_rate"] == (0.11, 0.1, 0.13)
    assert by_run["RNNencdec-50 seed 1"]["alignment_error_rate"] is None
    notes = " ".join(table.notes)
    assert "100 sentences" in notes
    assert "tok:13a" in notes
    assert "beam size 12" in notes


@pytest.mark.parametrize(("pairs", "few"), [(29, True), (30, False)])
def test_intervals_of_few_sentences_are_said_to_be_too_narrow(
    comparison: SetComparison, pairs: int, few: bool
) -> None:
    results = {label: {**each, "pairs": pairs} for label, each in comparison.results.items()}
    notes = scores_table(replace(comparison, results=results)).notes
    said = f"{pairs} sentences: intervals of fewer than 30 sentences are too narrow."
    assert (said in notes) == few


def test_seeds_are_summed_up_by_mean_and_deviation(comparison: SetComparison) -> None:
    table = seeds_table(comparison)
    rows = {row["group"]: row for row in table.rows}
    assert list(rows) == ["RNNencdec-50", "RNNsearch-50"]
    for name, row in rows.items():
        runs = [comparison.results[f"{name} seed {seed}"] for seed in (1, 2)]
        first, second = (one["bleu"]["all"]["score"] for one in runs)
        assert row["runs"] == 2
        assert abs(row["bleu"].mean - (first + second) / 2) < 1e-9
        assert abs(row["bleu"].deviation - abs(first - second) / 2**0.5) < 1e-9
        bucket = [one["by_length"][-1]["score"] for one in runs]
        assert abs(row[table.columns[-1].key].mean - sum(bucket) / 2) < 1e-9
    assert rows["RNNencdec-50"]["alignment_error_rate"] is None


def test_without_a_second_seed_there_is_no_table_of_seeds(runs: list[FinishedRun]) -> None:
    assert seeds_table(compared.compare_set(runs[::2], "mine", resamples=0)).rows == []


def test_training_is_told_as_in_table_2(runs: list[FinishedRun]) -> None:
    row = training_table(runs).rows[3]
    assert row["run"] == "RNNsearch-50 seed 2"
    assert (row["updates"], row["epochs"], row["hours"]) == (4000, 6.4, 0.33)
    assert (row["train_nll"], row["valid_nll"], row["words"]) == (31.3, 36.2, 6210.4)
    assert row["memory"] == 0.812


def test_what_a_run_started_from_has_a_column_where_one_did() -> None:
    trained = {"train": {"updates": 5}, "test": {}}
    alone = FinishedRun("a", {**trained, "config": {"initial_checkpoint": None}})
    started = {"config": {"initial_checkpoint": "runs/a"}}
    further = FinishedRun(
        "b", {**trained, **started, "initial_checkpoint": {"configuration": "a 1f2e3d4c"}}
    )
    assert "Started from" not in training_table([alone]).markdown()
    table = training_table([alone, further])
    assert table.columns[-1].title == "Started from"
    assert [row["initial"] for row in table.rows] == [None, "a 1f2e3d4c"]
    assert table.notes[1] == "What trained the weights that a run started from is not counted."


def test_lengths_have_a_column_a_bucket_and_the_fall(comparison: SetComparison) -> None:
    table = lengths_table(comparison, ["bleu"])
    titles = [column.title for column in table.columns]
    assert titles[1:5] == ["Best bucket", "Fall, best to last", "1-10", "11-20"]
    falls = {row["run"]: row["drop"] for row in table.rows}
    assert falls["RNNencdec-50 seed 1"] > falls["RNNsearch-50 seed 1"] + 10


def test_lengths_have_a_row_a_score_in_its_own_digits(comparison: SetComparison) -> None:
    table = lengths_table(comparison)
    by_length = {key for key, about in comparison.known.items() if about["by_length"]}
    assert {row["score"] for row in table.rows} == by_length | {"bleu_no_unk"}
    [row] = [
        row
        for row in table.rows
        if (row["run"], row["score"]) == ("RNNsearch-50 seed 1", "alignment_error_rate")
    ]
    assert row["11-20"] == (0.08 + 11 / 400, 0.07, 0.3)
    assert "drop" not in row
    title = comparison.known["alignment_error_rate"]["title"]
    lines = table.markdown().splitlines()
    [line] = [line for line in lines if line.startswith(f"| RNNsearch-50 seed 1 | {title} |")]
    assert "| 0.107 [0.070, 0.300] |" in line
    runs = {row["run"] for row in table.rows if row["score"] == "attention_entropy"}
    assert runs == {"RNNsearch-50 seed 1", "RNNsearch-50 seed 2"}


def test_bleu_by_unknown_words_is_of_each_runs_own_shortlists(comparison: SetComparison) -> None:
    table = unknown_words_table(comparison)
    assert [column.title for column in table.columns] == ["Run", "0", "1", "2", "3", "4+"]
    assert [row["run"] for row in table.rows] == [run.label for run in comparison.runs]
    run = comparison.runs[0]
    records = run.translations(comparison.name)
    three = [row["bleu_stats"] for row in records if sum(row["unknown_words"]) == 3]
    shown = table.rows[0]["3"]
    assert shown[0] == pytest.approx(float(bleu_scores(np.array(three).sum(0))), abs=1e-9)
    assert shown[1] <= shown[0] <= shown[2]


def test_significance_has_a_row_a_score_pair_and_bucket(comparison: SetComparison) -> None:
    read = list(csv.DictReader(io.StringIO(significance_table(comparison).csv())))
    assert len(read) == sum(map(len, comparison.significance.values()))
    [row] = [row for row in read if row["score"] == "recall" and row["bucket"] == "all"]
    tested = comparison.significance["recall"][0]
    assert float(row["delta_low"]) == tested["low"]
    assert (row["a"], row["b"]) == ("RNNsearch-50 seed 1", "RNNsearch-50 seed 2")


def test_only_differing_keys_are_listed(runs: list[FinishedRun]) -> None:
    rows = {row["key"]: row for row in differences_table(runs).rows}
    assert "data.languages" not in rows
    assert rows["seed"]["RNNsearch-50 seed 2"] == "2"
    assert rows["model.scoring._target_"]["RNNencdec-50 seed 1"] is None


def test_a_run_of_any_name_leaves_the_keys_where_they_are(runs: list[FinishedRun]) -> None:
    named = [replace(runs[0], label="key"), replace(runs[2], label="_key")]
    table = differences_table(named)
    header, *rows = csv.reader(io.StringIO(table.csv()))
    assert header == ["__key", "key", "_key"]
    assert "model.title" in {row[0] for row in rows}
    assert "model.title" in html_table(table)


def test_long_tables_are_left_to_their_csv() -> None:
    rows = [{"run": f"r{n}", "x": n} for n in range(MOST_ROWS + 1)]
    table = Table("t", "T", [Column("run", "Run", text=True), Column("x", "X")], rows, ["Note."])
    assert table.markdown() == "### T\n\n1,001 rows: see t.csv.\n\nNote.\n"
    assert len(table.csv().splitlines()) == 1002
    page = html_table(table)
    assert "T: 1,001 rows: see t.csv." in page
    assert "<table" not in page
    assert "| r3 | 3 |" in replace(table, rows=rows[1:]).markdown()


def test_files_are_written(runs: list[FinishedRun], tmp_path: Path) -> None:
    few = runs[::2]
    comparisons = [
        compared.compare_set(few, name, resamples=20) for name in compared.scored_sets(few)
    ]
    paths = write_tables(few, comparisons, tmp_path / "tables")
    names = {path.name for path in paths}
    assert {"tables.md", "scores_newstest.csv", "by_length_mine.csv", "training.csv"} <= names
    assert {"significance_newstest.csv", "differences.csv", "published.csv"} <= names
    text = (tmp_path / "tables" / "tables.md").read_text()
    assert "### Scores by length on mine" in text
    assert text.count("### Differences on") == 2


def test_tables_of_an_earlier_comparison_go_and_other_files_stay(
    runs: list[FinishedRun], tmp_path: Path
) -> None:
    comparisons = [compared.compare_set(runs, name, resamples=20) for name in ("newstest", "mine")]
    before = write_tables(runs, comparisons, tmp_path)
    assert {"seeds_mine.csv", "significance_mine.csv"} <= {path.name for path in before}
    (tmp_path / "notes.csv").write_text("mine\n")
    after = write_tables(runs[:1], [compared.compare_set(runs[:1], "newstest")], tmp_path)
    assert set(tmp_path.iterdir()) == {*after, tmp_path / "notes.csv"}
    assert len(after) < len(before)


def test_alignment_and_bleu_over_runs():
    """r of four pairs by hand, its interval by Fisher's z; nothing of three runs."""
    rates, bleu = [0.1, 0.2, 0.3, 0.6], [30.0, 31.0, 20.0, 10.0]
    results = {
        str(n): {
            "bleu": {"all": {"score": score}},
            "alignment": {"alignment_error_rate": {"score": rate}},
        }
        for n, (rate, score) in enumerate(zip(rates, bleu, strict=True))
    }
    runs, (r, low, high) = correlation_of_alignment(SimpleNamespace(results=results))
    assert runs == 4
    assert r == pytest.approx(np.corrcoef(rates, bleu)[0, 1])
    assert np.arctanh(high) - np.arctanh(low) == pytest.approx(2 * 1.959964, abs=1e-5)
    del results["0"]
    assert correlation_of_alignment(SimpleNamespace(results=results)) is None
