"""`map_in_processes`."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest
import torch

from nmt.cli.errors import exiting
from nmt.utils.processes import map_in_processes
from tests.helpers.processes import wait_until_gone

LACK = r"nmt: .*memory ran out.*; close other programs, or .*\n"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are used on Linux alone")


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setattr("nmt.utils.processes.shared_cores", lambda: 2)


def test_map_in_processes_keeps_order(two_cores):
    scale = 3  # forked workers see local variables
    results = [*map_in_processes(lambda item: (item * scale, os.getpid()), range(20), 9999)]
    assert [value for value, _ in results] == [*range(0, 60, 3)]
    assert os.getpid() not in {process for _, process in results}


@pytest.mark.parametrize("count", [0, 1])
def test_map_in_processes_runs_one_item_here(two_cores, count):
    assert [*map_in_processes(lambda _: os.getpid(), range(count), 9999)] == [os.getpid()] * count


def test_map_in_processes_raises_worker_errors(two_cores):
    with pytest.raises(ZeroDivisionError):
        [*map_in_processes(lambda item: 1 / item, [1, 0, 1], 9999)]


@pytest.mark.parametrize("fail", [lambda: torch.empty(1 << 60), lambda: bytearray(1 << 60)])
def test_lack_of_memory_ends_a_command_with_one_line(capsys, fail):
    with pytest.raises(SystemExit) as ended, exiting():
        fail()
    assert ended.value.code == 1
    assert re.fullmatch(LACK, capsys.readouterr().err)


@pytest.mark.parametrize(
    "call",
    ["processes.map_in_processes(end, range(4), 9999)", "preparation.map_chunks(end, range(100))"],
)
@pytest.mark.slow
def test_killed_worker_ends_a_command_with_one_line(call):
    """The system kills a worker if memory runs out. The command is another process than the tests' own."""
    code = f"""if True:
        import os, signal
        from nmt.cli.errors import exiting
        from nmt.data import preparation
        from nmt.utils import processes
        preparation.shared_cores = processes.shared_cores = lambda: 2
        def end(item):
            os.kill(os.getpid(), signal.SIGKILL)
        with exiting():
            list({call})
    """
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 1
    assert re.fullmatch(LACK, ended.stderr)


@pytest.mark.parametrize(
    ("number", "everybody"),
    [(signal.SIGINT, True), (signal.SIGINT, False), (signal.SIGKILL, False)],
)
def test_workers_end_when_the_parent_is_killed(number, everybody, tmp_path):
    """The workers would sleep for a minute, but a signal to their parent ends them at once."""
    code = """if True:
        import os, pathlib, signal, time
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a shell's background job
        from nmt.utils import processes
        processes.shared_cores = lambda: 2
        def note(item):
            pathlib.Path(str(os.getpid())).touch()
            time.sleep(60)
        [*processes.map_in_processes(note, range(4), 9999)]
    """
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, start_new_session=True)
    until(lambda: len([*tmp_path.iterdir()]) == 2)
    workers = [int(path.name) for path in tmp_path.iterdir()]
    (os.killpg if everybody else os.kill)(parent.pid, number)
    parent.wait(timeout=20)
    wait_until_gone(workers, 20)


def until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
