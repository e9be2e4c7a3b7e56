"""What the terminal shows of a comparison."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from nmt.report.comparison import compare_sets
from nmt.report.finding import find_runs
from nmt.report.terminal import terminal_table


def test_a_line_a_run_with_bleu_on_each_set_and_by_length(sweep: Path) -> None:
    found = find_runs([sweep])
    comparisons = compare_sets(found.runs, resamples=10)
    table = terminal_table(found.runs, comparisons, found.unfinished)
    said = "BLEU on each test set and, by number of words, on newstest; minutes of training"
    assert table.title == said
    head, *lines = table.text().splitlines()
    assert head.split()[:6] == ["folder", "newstest", "mine", "1-10", "11-20", "21-30"]
    assert head.split()[-2:] == ["minutes", "run"]
    assert [line.split()[0] for line in lines] == ["0", "1", "2", "3", "4"]
    for line, run in zip(lines, found.runs, strict=False):
        whole = run.results["test"]["newstest"]
        figures = line.removesuffix(run.label).split()
        assert figures[1] == f"{whole['bleu']['all']['score']:.2f}"
        assert figures[3] == f"{whole['by_length'][0]['score']:.2f}"
        assert figures[-1] == f"{60 * run.results['train']['hours']:.1f}"
        assert len(line) - len(run.label) < 100
    assert set(lines[4].split()[1:-2]) == {"–"}
    assert lines[4].endswith("–  not finished")


def test_buckets_are_left_out_where_there_is_no_room(sweep: Path) -> None:
    runs = find_runs([sweep]).runs[:1]
    (one, _) = compare_sets(runs, resamples=10)
    many = [replace(one, name=f"a-test-set-{number}") for number in range(5)]
    table = terminal_table(runs, many)
    assert [column.title for column in table.columns[1:-2]] == [each.name for each in many]
    assert "words" not in table.title


def test_without_test_sets_there_are_the_runs(sweep: Path) -> None:
    table = terminal_table(find_runs([sweep]).runs, [])
    assert table.text().splitlines()[0].split() == ["folder", "minutes", "run"]
