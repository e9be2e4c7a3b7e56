"""Stages of work: lines of the log, bars on a terminal."""

from __future__ import annotations

import logging

import pytest

from nmt.utils import progress
from nmt.utils.progress import Stage


@pytest.fixture
def lines(monkeypatch, caplog):
    """The lines that stages log, at each `advance`."""
    monkeypatch.setattr(progress, "INTERVAL_S", -1.0)
    caplog.set_level(logging.INFO)
    return caplog


def test_a_stage_logs_its_title_and_its_counts(lines):
    with Stage("translating", 12, "sentence") as known, Stage("reading", unit="line") as unknown:
        known.advance(2)
        known.advance(24)  # an estimate for two ranks, where the first has done all
        unknown.advance(3000)
    assert lines.messages == [
        "translating: 12 sentences",
        "reading",
        "translating: 2 of 12 sentences",
        "translating: 12 of 12 sentences",
        "reading: 3,000 lines",
    ]


def test_other_ranks_and_hidden_stages_log_nothing(monkeypatch, lines):
    with Stage("hidden", shown=False) as stage:
        stage.advance()
    monkeypatch.setenv("RANK", "1")
    with Stage("second rank") as stage:
        stage.advance()
    assert not lines.messages


def test_a_terminal_gets_a_bar(monkeypatch, capsys, lines):
    monkeypatch.setattr(progress, "has_terminal", lambda: True)
    with Stage("translating", 4, "sentence") as stage:
        stage.advance(9)
    shown = capsys.readouterr().err
    assert "translating: 100%" in shown
    assert "4/4" in shown
    assert not lines.messages
