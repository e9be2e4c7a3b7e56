"""Tables of results: their numbers and their formats."""

from __future__ import annotations

import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nmt.report import result_tables
from nmt.report.comparison import Comparison, compare_finished
from nmt.report.result_tables import all_tables, headline, scores_by_length, write_tables
from nmt.report.runs import FinishedRun
from nmt.report.table import Cell, Table, number


def cell(table: Table, run: str, column: str) -> Cell:
    found = table.frame.set_index(table.frame.columns[0]).loc[run, column]
    assert isinstance(found, Cell)
    return found


def test_number_formats() -> None:
    values = [(1234567, 0), (-0.001, 2), (-1.5, 1), (None, 2)]
    texts = ["1\u202f234\u202f567", "0.00", "−1.5", "–"]
    assert [str(number(value, digits)) for value, digits in values] == texts


def test_scores_table_equals_the_frame(comparison: Comparison) -> None:
    frame = comparison.whole("newstest").query("key == 'bleu'").set_index("run")
    label = comparison.runs[2].label
    shown = cell(result_tables.scores_table(comparison, "newstest"), label, "BLEU, all")
    row = frame.loc[label]
    assert shown.value == row["value"]
    assert str(shown) == f"{row['value']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"
    values = frame.loc[frame.index.str.startswith("RNNsearch"), "value"].tolist()
    shown = cell(result_tables.seeds_table(comparison, "newstest"), "RNNsearch-50", "BLEU, all")
    assert str(shown) == f"{statistics.mean(values):.2f} ± {statistics.stdev(values):.2f}"


def test_lengths_table_is_sorted(comparison: Comparison) -> None:
    table = result_tables.lengths_table(comparison, "newstest", ["bleu"]).frame
    assert list(table)[:4] == ["Run", "1-10", "11-20", "21-30"]
    frame = comparison.by_length("newstest").query("key == 'bleu' and bucket == '11-20'")
    values = [each.value for each in table["11-20"]]
    assert values == frame.set_index("run")["value"][table["Run"]].tolist()


def test_headline_and_table_give_the_retention(comparison: Comparison) -> None:
    frame = comparison.retention.query("set == 'newstest' and name == 'RNNencdec-50'")
    kept = frame[frame["key"] == "bleu"].set_index("statistic")
    curve = comparison.curves.query("set == 'newstest' and key == 'bleu' and kind == 'score'")
    curve = curve[curve["name"] == "RNNencdec-50"].set_index("words")["value"]
    short, long = (curve.iloc[abs(curve.index - words).argmin()] for words in (10, 50))
    assert kept.loc["at 10 words", "value"] == pytest.approx(short)
    assert kept.loc["change", "value"] == pytest.approx(long - short, rel=0.1)
    retention = kept.loc["retention"]
    assert retention["value"] == pytest.approx(long / short, rel=0.1)
    assert retention["low"] < retention["value"] < retention["high"]
    lost = kept.loc["50% lost at", "value"]
    assert np.interp(lost, curve.index, curve) == pytest.approx(short / 2, rel=0.02)
    said = headline(comparison, "newstest")
    assert said.startswith("From 10 to 50 words, ")
    assert f"RNNencdec-50 keeps {100 * retention['value']:.0f}\xa0%" in said
    assert said.count("of its BLEU") == 1
    table = result_tables.retention_table(comparison, "newstest").frame
    row = table[table["Score"] == "BLEU, all"].set_index("Runs").loc["RNNencdec-50"]
    share = 100 * retention["value"]
    ends = f"[{100 * retention['low']:.0f}, {100 * retention['high']:.0f}]"
    assert row["Retention"] == (f"{share:.0f}\xa0%", ends, share)
    assert row["50% lost at"].value == lost
    assert headline(compare_finished([FinishedRun("bare", {})]), "newstest") == ""


def test_table_names_scores_without_excess_retention(comparison: Comparison) -> None:
    rows = comparison.retention
    lacking = (rows["key"] == "bleu_precisions") & (rows["statistic"] == "excess retention")
    assert lacking.any()
    table = result_tables.retention_table(replace(comparison, retention=rows[~lacking]), "newstest")
    title = comparison.about["bleu_precisions"]["title"]
    assert table.notes[-1].startswith(f"No excess retention of {title}: scores of detokenised text")
    whole = result_tables.retention_table(comparison, "newstest")
    assert not any(note.startswith("No excess retention") for note in whole.notes)


def test_tables_are_written_in_three_formats(comparison: Comparison, tmp_path: Path) -> None:
    write_tables(comparison, tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"differences.csv", "curves.csv", "retention.csv"} <= names
    assert len(pd.read_csv(tmp_path / "scores.csv")) == len(comparison.scores)
    text = (tmp_path / "tables.md").read_text()
    for table in all_tables(comparison):
        assert f"### {table.title}" in text
        assert f"{table.name}.tex" in names
    assert "28.45" in text  # BLEU from the paper


def test_cells_escape_text() -> None:
    hostile = "a|b & 5 % <b>\n\\input{x} \x1b[31m"
    frame = pd.DataFrame({"Run": [hostile], "x_1": [Cell("1.0", "[0.5, 2.0]")]})
    table = Table("t", "A % title\nof two lines", frame, [hostile])
    markdown = table.markdown()
    latex = table.latex()
    rows = [line for line in markdown.splitlines() if line.startswith("|")]
    assert len(rows) == 3
    assert "a\\|b" in rows[2]
    assert "<b>" not in markdown
    assert "\x1b" not in markdown + latex
    assert r"5 \% " in latex
    assert r"\textbackslash input\{x\}" in latex
    assert latex.splitlines()[0] == "% A % title of two lines"
    assert "\\begin{tabular}{lr}" in latex


def test_terminal_table_shows_the_set_with_the_fullest_buckets(
    comparison: Comparison, runs: list[FinishedRun]
) -> None:
    title, head, _, *rows = scores_by_length(comparison).splitlines()
    assert title == "BLEU by length on newstest:"
    assert head.split("|")[1:4] == [f" {'Run':19} ", "   all ", "  1-10 "]
    bleu = comparison.whole("newstest").query("key == 'bleu'")
    assert [row.split("|")[2].strip() for row in rows] == [f"{x:.2f}" for x in bleu["value"]]
    assert scores_by_length(compare_finished([FinishedRun("bare", {})])) == ""


def test_published_scores_are_those_of_the_paper() -> None:
    rows = result_tables.paper_table().frame.map(str).set_index("System")
    assert len(rows) == 6
    assert rows.loc["RNNsearch-50", ["BLEU all", "BLEU no UNK"]].tolist() == ["26.75", "34.16"]
    updates, device = rows.loc["RNNencdec-30", ["Updates", "Device"]]
    assert (updates, device) == ("846\u202f000", "TITAN Black")
    assert rows.loc["RNNsearch-50*", "Hours"] == "252"
    assert rows.loc["RNNencdec-50", "Dev. NLL"] == "43.6"
    assert rows.loc["Moses", ["BLEU all", "Updates"]].tolist() == ["33.30", "–"]


def test_training_and_settings_tables(runs: list[FinishedRun]) -> None:
    training = result_tables.training_table(runs)
    assert str(cell(training, runs[2].label, "Parameters")) == "2\u202f345\u202f678"
    settings = result_tables.settings_table(runs).frame.set_index("Key")
    assert settings.loc["seed"].tolist() == ["1", "2", "1", "2"]
    assert compare_finished([], resamples=0).sets == []
