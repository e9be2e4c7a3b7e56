"""`import nmt`: its names, and what it does not import."""

from __future__ import annotations

import subprocess
import sys

import pytest

import nmt
from tests.helpers import ROOT


def test_every_name_leads_somewhere_and_none_is_a_commands():
    for name in nmt.__all__:
        assert getattr(nmt, name) is not None
    assert set(nmt.__all__) <= set(dir(nmt))
    commands = {path.stem for path in (ROOT / "nmt").glob("*.py")}
    assert not commands & set(nmt.__all__)
    with pytest.raises(AttributeError, match="'nmt' has no attribute 'translte'"):
        _ = nmt.translte


@pytest.mark.slow
def test_frames_need_no_torch():
    code = (
        "import sys, nmt; nmt.compare_runs; print('pandas' in sys.modules, 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "False"]
