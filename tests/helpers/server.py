"""A server that has imported the libraries, and forks each process that a test starts.

One server serves all workers of a test run.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import os
import pkgutil
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.context import ForkContext, ForkProcess
from pathlib import Path
from typing import Any

from nmt.utils.startup import SETTINGS
from tests.helpers import ROOT, hooks
from tests.helpers.composition import composing, share_compositions

ENVIRONMENT = {
    "PYTHONPATH": str(ROOT),
    "OMP_NUM_THREADS": "1",
    **SETTINGS,  # so that waiting threads leave the cores to other tests
    "HF_HUB_OFFLINE": "1",
    "WANDB_MODE": "offline",
    "WANDB_SILENT": "true",
}


@functools.cache
def start_server() -> str:
    """Returns the server's socket. The first worker starts the server; all workers wait for it."""
    run, session = os.environ.get("PYTEST_XDIST_TESTRUNUID"), os.getppid()
    if run is None:
        run = session = os.getpid()
    folder = Path(tempfile.gettempdir()) / f"nmt-tests-{run}"
    folder.mkdir(mode=0o700, exist_ok=True)
    with contextlib.suppress(FileExistsError), (folder / "log").open("xb") as log:
        subprocess.Popen(
            [sys.executable, "-m", "tests.helpers.server", str(folder), str(session)],
            cwd=ROOT,
            env={**os.environ, **ENVIRONMENT},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    end = time.monotonic() + 300
    while not (folder / "socket").exists():
        said = (folder / "log").read_text()
        assert "Traceback" not in said, said
        assert time.monotonic() < end, "the server of the test run does not start"
        time.sleep(0.05)
    return str(folder / "socket")


def serve(folder: Path, session: int) -> None:
    """Forks a process for each request, until the test run (process id `session`) has ended."""
    import_everything()
    share_compositions()
    gc.freeze()  # else garbage collection in a fork would copy shared memory
    with contextlib.suppress(ProcessLookupError), socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "binding"))
        listener.listen(64)
        listener.settimeout(1)
        (folder / "binding").rename(folder / "socket")
        while True:
            os.kill(session, 0)
            with contextlib.suppress(TimeoutError, EOFError, ConnectionError):
                connection = Connection(listener.accept()[0].detach())
                request = connection.recv()
                module, *words = request["words"]
                compose_once(module, *filter(is_choice, words))
                ForkProcess(target=watch, args=(connection, request)).start()
                connection.close()
    shutil.rmtree(folder)


def import_everything() -> None:
    """Imports the libraries and `nmt` without its commands, and bundles the charts' JavaScript."""
    import wandb.sdk.launch  # noqa: F401  (`wandb.init` imports it)

    import nmt
    from nmt.__main__ import COMMANDS
    from nmt.report.page import embed

    commands = {f"nmt.{name}" for name in COMMANDS}
    for module in pkgutil.walk_packages(nmt.__path__, "nmt."):
        # Skips commands: the module `nmt.compare` would hide the function `nmt.compare`.
        if module.name not in commands and not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # raised if an extra is not installed
                importlib.import_module(module.name)
    with ProcessPoolExecutor(1, ForkContext()) as pool:  # keeps threads out of this process
        library = pool.submit(embed.chart_library).result()
    embed.chart_library = lambda: library


def is_choice(word: str) -> bool:
    return (ROOT / "conf" / word.lstrip("+").partition("=")[0]).is_dir()


@functools.cache
def compose_once(module: str, *chosen: str) -> None:
    """Composes a program's configuration, and stores it for later programs with the same options."""
    with contextlib.suppress(Exception), composing(module.removeprefix("nmt."), chosen):
        pass  # the program will report this error
    gc.freeze()


def watch(connection: Connection, request: dict[str, Any]) -> None:
    """Starts a program, sends its process id, then its exit code, and kills it if the connection closes."""
    program = ForkProcess(target=become, kwargs=request)
    program.start()
    connection.send(program.pid)
    while program.exitcode is None and not connection.poll(0.01):
        pass
    if program.exitcode is None:
        os.killpg(program.pid or 0, signal.SIGKILL)
    else:
        connection.send(program.exitcode)


def become(
    words: Sequence[str],
    cwd: str | Path,
    env: dict[str, str],
    streams: Sequence[str | Path],
    hook: str = "",
) -> None:
    """Turns this fork into `python -m <words>`, with its own streams and environment."""
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, path in enumerate(streams):
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND if number else os.O_RDONLY
        os.dup2(os.open(path, flags), number)  # opening a named pipe waits for its other end
    os.closerange(3, 1024)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, "utf-8", "backslashreplace", closefd=False)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.path[:0] = env["PYTHONPATH"].split(os.pathsep)
    sys.argv = list(words)
    sys.modules.pop(words[0], None)  # so that runpy imports it as the main program
    from hydra.core.global_hydra import GlobalHydra

    GlobalHydra.instance().clear()  # set if the parent is a sweep
    atexit._clear()
    try:
        exec(hook, dict(vars(hooks)))
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
