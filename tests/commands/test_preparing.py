"""Text is prepared by another process while this one imports torch."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.helpers import ROOT

SCRIPT = """
import multiprocessing, sys
import nmt
from nmt.train import preparing

config = nmt.configure("regime=tiny", *sys.argv[2:], "data.cache=" + sys.argv[1])
try:
    with preparing(config):
        assert multiprocessing.active_children()
        {body}
except ZeroDivisionError:
    pass
assert not multiprocessing.active_children()
assert "torch" not in sys.modules
"""


def run(cache, *typed, body="pass"):
    script = SCRIPT.format(body=body)
    command = [sys.executable, "-c", script, str(cache), *typed]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, processes are not forked")
class TestPreparing:
    @pytest.mark.slow
    def test_text_is_cached_without_torch_at_the_end_of_the_block(self, tmp_path):
        ended = run(tmp_path)
        assert ended.returncode == 0, ended.stderr
        folders = sorted(path.name.partition("-")[0] for path in tmp_path.glob("[!.]*"))
        assert folders == ["pairs", "text", "text", "text", "text"]

    @pytest.mark.slow
    def test_error_in_the_block_ends_the_preparation(self, tmp_path):
        ended = run(tmp_path, "data.train.pairs=5000000", body="1 / 0")
        assert ended.returncode == 0, ended.stderr
        assert not list(tmp_path.glob("pairs-*"))

    @pytest.mark.slow
    def test_error_in_the_text_is_left_to_the_command(self, tmp_path):
        ended = run(tmp_path, "data=text", "data.train.source=missing.en")
        assert (ended.returncode, ended.stderr) == (0, "")
