"""Printed commands can be pasted: the shell and Hydra parse the original values from them."""

import shlex
from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import example, given
from hypothesis import strategies as st

from nmt.config.changes import resume_command
from nmt.config.loading import load
from nmt.utils.quoting import as_typed, command_line, quoted


def typed_back(line: str) -> list[str]:
    """Returns the overrides that a program gets if the line is typed into a shell."""
    python, module, name, *overrides = shlex.split(line)
    assert (python, module, name[:4]) == ("python", "-m", "nmt.")
    return overrides


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
@example("null")
@example("1e3")
@example("a\\'")
@example("~")
def test_quoted_values_round_trip(text):
    (typed,) = typed_back(command_line("train", [f"resume={quoted(text)}"]))
    (read,) = OverridesParser.create().parse_overrides([typed])
    assert (read.key_or_group, read.value()) == ("resume", text)
    (listed,) = OverridesParser.create().parse_overrides([f"runs=[{quoted(text)}]"])
    assert listed.value() == [text]


@pytest.mark.parametrize("name", ["grün 漢字", "a,b=(c)'&#;~"])
def test_resume_command_is_quoted(composer, tmp_path, name):
    folder = tmp_path / name
    (typed,) = typed_back(resume_command(load(composer()), folder, []))
    (read,) = OverridesParser.create().parse_overrides([typed])
    assert Path(read.value()) == folder


def test_commands_begin_with_uv_run_if_uv_started_the_process(monkeypatch):
    assert as_typed("python -m nmt.train") == "python -m nmt.train"
    monkeypatch.setenv("UV", "/usr/bin/uv")
    assert as_typed("python -m nmt.train") == "uv run python -m nmt.train"
