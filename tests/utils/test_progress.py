"""The progress of a stage is shown by lines in the log, or by a bar on a terminal."""

from __future__ import annotations

import logging
import sys

from nmt.utils.progress import Stage


def test_stage_logs_its_title_on_rank_0(monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    with Stage("translating", 1200, "sentence") as known, Stage("reading", unit="line"):
        known.advance(2)
    with Stage("hidden", shown=False) as stage:
        stage.advance()
    monkeypatch.setenv("RANK", "1")
    with Stage("second rank") as stage:
        stage.advance()
    assert caplog.messages == ["translating: 1,200 sentences", "reading"]


def test_stage_shows_a_bar_in_a_terminal(monkeypatch, capsys, caplog):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with Stage("translating", 4, "sentence") as stage:
        stage.advance(4)
    shown = capsys.readouterr().err
    assert "translating: 100%" in shown
    assert "4/4" in shown
    assert not caplog.messages
