"""Lines and bars of work that goes on, and the time left of the whole command."""

from __future__ import annotations

import doctest
import logging
import time

import pytest

from nmt.utils import progress
from nmt.utils.progress import Stage, TimeLeft


@pytest.fixture
def lines(monkeypatch, caplog):
    """The lines that stages write, 50 ms apart."""
    monkeypatch.setattr(progress, "SILENCE", 0.05)
    caplog.set_level(logging.INFO)
    return lambda: caplog.messages


def test_examples() -> None:
    found = doctest.testmod(progress)
    assert found.attempted
    assert not found.failed


def test_nothing_is_guessed_of_what_was_not_timed() -> None:
    left = TimeLeft({"updates": 100, "validations": 2, "tests": 40, "figures": 3})
    everything = "updates, validations, tests and figures to do, not timed yet"
    assert str(left) == everything
    left.done("updates", 50, seconds=5)
    assert str(left) == "about 5 s of updates left; validations, tests and figures not timed yet"
    left.done("validations", 1, seconds=260)
    expected = "about 4 min of updates and validations left; tests and figures not timed yet"
    assert str(left) == expected
    left.expect({"updates": 0, "validations": 0})  # training has ended
    left.done("tests", 10, seconds=60)
    assert str(left) == "about 3 min of tests left; figures not timed yet"
    left.done("figures", 1, seconds=30)
    assert str(left) == "about 4 min left"  # 3 min of tests and 1 min of figures
    left.done("tests", 30, seconds=180)
    left.done("figures", 2, seconds=60)
    assert str(left) == "nearly done"


def test_one_long_step_is_not_silent(lines) -> None:
    with Stage("translating test", 3, "sentence") as stage:
        stage.advance(2)
        time.sleep(0.3)
    assert lines()[0] == "translating test: 2 of 3 sentences"
    assert len(lines()) >= 2
    ended = len(lines())
    time.sleep(0.15)
    assert len(lines()) == ended


def test_lines_count_work_whose_end_nobody_knows() -> None:
    stage = Stage("translating", unit="line", shown=False)
    stage._begun -= 30
    assert stage.line() == "translating: 30 s so far"
    stage.advance(1200)
    assert stage.line() == "translating: 1,200 lines, 30 s so far"


def test_what_waits_for_its_input_says_nothing(lines) -> None:
    with Stage("translating", unit="line") as stage:
        stage.advance()
        time.sleep(0.3)
        assert [line.partition(",")[0] for line in lines()] == ["translating"]
        stage.advance()
        time.sleep(0.3)
    assert len(lines()) == 2


def test_lines_say_what_was_noted() -> None:
    stage = Stage("training", 10, "part", shown=False)
    stage.advance(3)
    assert stage.line() == "training: 3 of 10 parts"
    stage.note("Generating phrase table")
    assert stage.line() == "training: 3 of 10 parts (Generating phrase table)"


def test_short_stages_in_a_row_are_not_silent_together(monkeypatch, lines) -> None:
    monkeypatch.setattr(progress, "SILENCE", 0.1)
    monkeypatch.setattr(progress, "_said", time.monotonic())
    for number in range(4):
        with Stage(f"stage {number}"):
            time.sleep(0.07)
    assert lines()


def test_the_innermost_stage_speaks(lines) -> None:
    with Stage("outer"), Stage("inner"):
        time.sleep(0.2)
    assert set(lines()) == {"inner"}


def test_the_time_left_is_that_of_the_command(lines) -> None:
    left = TimeLeft({"tests": 100, "figures": 1})
    with Stage("translating", 4, "sentence", left=left, kind="tests") as stage:
        time.sleep(0.02)
        stage.advance(2, work=50)
        time.sleep(0.15)
    said = "translating: 2 of 4 sentences, about 0 s of tests left; figures not timed yet"
    assert lines()[-1] == said


def test_nothing_is_shown_on_other_ranks_or_where_nobody_asked(monkeypatch, lines) -> None:
    with Stage("hidden", shown=False):
        time.sleep(0.12)
    monkeypatch.setenv("RANK", "1")
    with Stage("second rank"):
        time.sleep(0.12)
    assert not lines()


def test_a_terminal_gets_a_bar_and_the_time_left(monkeypatch, capsys, lines) -> None:
    monkeypatch.setattr(progress, "has_terminal", lambda: True)
    left = TimeLeft({"tests": 4, "page": 1})
    with Stage("translating", 4, "sentence", left=left, kind="tests") as stage:
        stage.advance(4)
        time.sleep(0.12)
    shown = capsys.readouterr().err
    assert "translating: 100%" in shown
    assert "4/4 sentences" in shown
    assert "page to do, not timed yet" in shown
    assert not lines()


def test_no_more_is_counted_than_there_is(monkeypatch, capsys) -> None:
    """As of two ranks, where the first has done all of it."""
    monkeypatch.setattr(progress, "has_terminal", lambda: True)
    with Stage("translating test", 12, "sentence") as stage:
        stage.advance(24)
        assert stage.line() == "translating test: 12 of 12 sentences"
    assert "translating test: 100%|" in capsys.readouterr().err


def test_a_closed_standard_error_is_no_terminal(monkeypatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    with Stage("training", 3, "update") as stage:
        stage.advance(1)


def test_no_bar_fills_a_file(capsys) -> None:
    with Stage("translating", 4, "sentence") as stage:
        stage.advance(4)
    assert capsys.readouterr().err == ""
