"""Completion in bash, by the lines of docs/running.md."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import ROOT
from tests.helpers.documentation import blocks

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


def completed(line: str) -> list[str]:
    """What bash offers after a line that was typed."""
    [shown] = [
        block.text
        for block in blocks((ROOT / "docs/running.md").read_text())
        if block.language == "bash"
    ]
    asked = 'COMP_LINE=$1; _nmt "" "${1##* }" ""; printf "%s\\n" "${COMPREPLY[@]}"'
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", f"{shown}\n{asked}", "bash", line],
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not done.stderr
    return done.stdout.split()


@needs_bash
def test_other_programs_are_left_to_bash():
    assert completed("python -m pytest scor") == []
    assert completed("python x.py scor") == []
    assert completed("python -m nmt.tra") == []


@pytest.mark.slow
@needs_bash
def test_keys_and_options_are_completed():
    assert completed("python -m nmt.train regime=tiny scor") == ["scoring="]
    found = completed("nmt train -m scoring=d")
    assert found == ["scoring=dot"]
    assert completed("python -m nmt.train +experiment=rnnsearch3") == ["+experiment=rnnsearch30"]
    assert completed("python3 -m nmt.translate search.beam_s") == ["search.beam_size="]
