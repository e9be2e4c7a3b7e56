"""A server that has imported the libraries and forks for every program; it serves all workers of a test run."""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import os
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any, NoReturn

from filelock import FileLock

from nmt.utils.startup import SETTINGS
from tests.helpers import ROOT, hooks
from tests.helpers.composition import compose, share_compositions

ENVIRONMENT = {
    "PYTHONPATH": str(ROOT),
    "OMP_NUM_THREADS": "1",
    **SETTINGS,  # for the tests that type trainer.threads: the cores are shared with other tests
    "HF_HUB_OFFLINE": "1",
    "WANDB_MODE": "offline",
    "WANDB_SILENT": "true",
}
WORKER = "PYTEST_XDIST_WORKER"  # set in the workers of pytest-xdist


@functools.cache
def launch_server() -> Path:
    """The folder of the test run's server, which is started, in the background, by the first worker."""
    alone = WORKER not in os.environ
    run = str(os.getpid()) if alone else os.environ["PYTEST_XDIST_TESTRUNUID"]
    folder = Path(tempfile.gettempdir()) / f"nmt-tests-{run}"
    folder.mkdir(mode=0o700, exist_ok=True)
    with FileLock(folder / "lock"):
        if not (folder / "log").exists():
            session = os.getpid() if alone else os.getppid()
            with (folder / "log").open("wb") as stream:
                subprocess.Popen(
                    [sys.executable, "-m", "tests.helpers.server", str(folder), str(session)],
                    cwd=ROOT,
                    env={**os.environ, **ENVIRONMENT},
                    stdin=subprocess.DEVNULL,
                    stdout=stream,
                    stderr=stream,
                    start_new_session=True,
                )
    return folder


@functools.cache
def start_server() -> Path:
    """The socket of the test run's server, which is waited for."""
    folder = launch_server()
    end = time.monotonic() + 300
    while not (folder / "socket").exists():
        said = (folder / "log").read_text()
        assert "Traceback" not in said, said
        assert time.monotonic() < end, "the server of the test run does not start"
        time.sleep(0.05)
    return folder / "socket"


def serve(folder: Path, session: int) -> None:
    """Forks for every request until the process `session`, whose tests are served, has ended."""
    _import_everything()
    share_compositions()
    _bundle_charts()
    gc.collect()
    gc.freeze()  # no collection in a fork goes over what all forks share, nor copies it
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, lambda *_: _end_with(session, folder))
    signal.setitimer(signal.ITIMER_REAL, 1, 1)  # not inherited by forks
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with Listener(str(folder / "binding"), backlog=64) as listener:
        (folder / "binding").rename(folder / "socket")
        while True:
            connection = listener.accept()
            port += 1
            with contextlib.suppress(EOFError):  # the process that asks has ended
                request = connection.recv()
                _compose_as(request)
                if os.fork() == 0:
                    _watch(connection, request, port)
                    os._exit(0)
            connection.close()


def _end_with(session: int, folder: Path) -> None:
    try:
        os.kill(session, 0)
    except ProcessLookupError:
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)


def _import_everything() -> None:
    import importlib
    import pkgutil

    import wandb.sdk.launch  # noqa: F401  (by `wandb.init`)

    import nmt
    from nmt.__main__ import COMMANDS

    commands = {f"nmt.{name}" for name in COMMANDS}
    for module in pkgutil.walk_packages(nmt.__path__, "nmt."):
        # A command as a module would hide the function of its name: `nmt.compare`.
        if module.name not in commands and not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # of a package that only an extra brings
                importlib.import_module(module.name)


@functools.cache
def _conf_groups() -> set[str]:
    conf = ROOT / "conf"
    return {str(path.relative_to(conf)) for path in conf.rglob("*") if path.is_dir()}


def _compose_as(request: dict[str, Any]) -> None:
    """Has at hand what a program, and those that choose the same after it, compose."""
    _, _, command = request["module"].partition("nmt.")
    arguments: list[str] = request["arguments"]
    if command and not any(each.startswith("-") for each in arguments):
        groups = _conf_groups()
        chosen = [each for each in arguments if each.lstrip("+").partition("=")[0] in groups]
        _compose_once(command, tuple(chosen))


@functools.cache
def _compose_once(command: str, chosen: tuple[str, ...]) -> None:
    with contextlib.suppress(Exception):  # which the program will show
        compose(command, list(chosen))
    gc.freeze()


def _bundle_charts() -> None:
    """Has the library of charts, which takes seconds to bundle, at hand for every page.

    It is made in a fork, since threads that bundle do not survive in the forks that follow.
    """
    from nmt.report.page import embed

    read, write = os.pipe()
    if os.fork() == 0:
        with os.fdopen(write, "w", encoding="utf-8") as stream:
            stream.write(embed.chart_library())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as stream:
        library = stream.read()
    os.wait()
    assert library
    embed.chart_library = functools.cache(lambda: library)


def _watch(connection: Connection, request: dict[str, Any], port: int) -> None:
    """Starts the ranks of a request, says who they are, waits, and says how they ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    running = {}
    for rank in range(request["ranks"]):
        process = os.fork()
        if process == 0:
            connection.close()
            _become(request, rank, port)
        running[process] = rank
    connection.send(list(running))
    codes = {}
    seconds = 0.0
    until = time.monotonic() + request["timeout"]
    while running:
        process, status, usage = os.wait4(-1, os.WNOHANG)
        if process in running:
            codes[running.pop(process)] = os.waitstatus_to_exitcode(status)
            seconds += usage.ru_utime + usage.ru_stime
        elif time.monotonic() > until or connection.poll(0.01):  # closed by the other end
            for process in running:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process, signal.SIGKILL)
            until += 10
    with contextlib.suppress(BrokenPipeError):
        connection.send(([codes[rank] for rank in range(request["ranks"])], seconds))


def _become(request: dict[str, Any], rank: int, port: int) -> None:
    """Runs the program in this (forked) process and ends it; the ranks meet on a port."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    given, *written = request["streams"]
    for number, path in enumerate((given, *written[2 * rank : 2 * rank + 2])):
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND if number else os.O_RDONLY
        descriptor = os.open(path, flags)  # of a named pipe: waits for the other end
        os.dup2(descriptor, number)
        os.close(descriptor)
    env = request["env"]
    if request["ranks"] > 1:
        env |= {"LOCAL_RANK": str(rank), "NODE_RANK": "0", "WORLD_SIZE": str(request["ranks"])}
        env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    run_program(request["module"], request["arguments"], request["cwd"], env, request["hook"])


def run_program(
    module: str, arguments: list[str], cwd: str, env: dict[str, str], hook: str = ""
) -> NoReturn:
    """Runs `python -m <module>` in this (forked) process, whose streams are 0, 1 and 2, and ends it."""
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.path[:0] = [cwd, *env["PYTHONPATH"].split(os.pathsep)]
    sys.argv = [module, *arguments]
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, "utf-8", "backslashreplace", closefd=False)
    atexit._clear()
    sys.modules.pop(module, None)  # it is run anew, as the main program
    code = 1
    try:
        exec(hook, dict(vars(hooks)))
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except BaseException:
        import traceback

        traceback.print_exc()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code & 0xFF)


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
