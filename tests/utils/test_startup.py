"""Commands end on signals and with their parent; programs that import nmt keep their handlers."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.helpers import ROOT
from tests.helpers.processes import wait_until_gone

CHILD = """
import os, pathlib, sys, time
from nmt.utils import startup
sys.platform = {platform!r}
startup.end_on_signals()
assert startup.PARENT not in os.environ
pathlib.Path("child").write_text(str(os.getpid()))
time.sleep(60)
"""
PARENT = """
import os, subprocess, sys
subprocess.run([sys.executable, "-c", sys.argv[1]], env={**os.environ, "NMT_PARENT": str(os.getpid())})
"""


def handled(pid: int) -> bool:
    """Tells whether a process has a handler for SIGINT."""
    caught = re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    assert caught is not None
    return bool(int(caught[1], 16) & 1 << signal.SIGINT - 1)


def wait_until(condition) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


@pytest.mark.skipif(not Path("/proc").exists(), reason="reads /proc")
def with_python_handler() -> None:
    """Lets the new process start as in a terminal. The jobs of a shell's background ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_signal_ends_a_command_that_is_still_importing():
    """Signals get their default action before the first import of Hydra."""
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "nmt.train"],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        preexec_fn=with_python_handler,
    )
    wait_until(lambda: handled(process.pid))  # Python has installed its own handler
    wait_until(lambda: not handled(process.pid))
    process.send_signal(signal.SIGINT)
    _, imported = process.communicate()
    assert "nmt.utils.startup" in imported
    assert not re.search(r"Traceback|nmt\.cli\.application", imported)
    assert process.returncode == -signal.SIGINT


@pytest.mark.parametrize(
    "arguments", [("-m", "mine.program"), ("-m", "mine"), ("mine/program.py",)]
)
def test_program_that_imports_nmt_keeps_its_handlers(tmp_path, arguments):
    code = "import signal, nmt.cli.application; print(signal.getsignal(signal.SIGINT).__name__)"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/__init__.py").write_text("import nmt")
    for name in ("program", "__main__"):
        (tmp_path / f"mine/{name}.py").write_text(code)
    out = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        preexec_fn=with_python_handler,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}"},
    )
    assert out.stdout == "default_int_handler\n", out.stderr


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_process_ends_with_its_parent(tmp_path, platform):
    code = CHILD.format(platform=platform)
    parent = subprocess.Popen([sys.executable, "-c", PARENT, code], cwd=tmp_path)
    wait_until((tmp_path / "child").exists)
    wait_until((tmp_path / "child").read_text)
    parent.kill()
    parent.wait()
    wait_until_gone([int((tmp_path / "child").read_text())], 3)


def test_a_process_whose_parent_has_ended_before_it_starts_ends_at_once(tmp_path):
    ended = subprocess.Popen(["true"])
    ended.wait()
    environment = {**os.environ, "NMT_PARENT": str(ended.pid)}
    code = CHILD.format(platform="linux")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment)
    assert done.returncode == -signal.SIGKILL
