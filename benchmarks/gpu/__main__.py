"""Runs the checks and measurements that need a GPU; see docs/performance.md.

    python -m benchmarks.gpu --record gpu.jsonl         # everything, under 10 minutes on one GPU
    python -m benchmarks.gpu --only gradients graphs    # only these items
    python -m benchmarks.gpu --rehearse                 # the same items at toy sizes on a CPU

Prints one line of JSON when an item ends, and appends the line to the file given with `--record`. If the
command is repeated, it skips the items that are already in this file. The exit code is 1 if an item failed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks.gpu import commands, model, speed
from benchmarks.gpu.setting import Findings, Setting
from benchmarks.work import Line, rounded

# Items in order of importance, each with its time limit in seconds
ITEMS: dict[str, tuple[Callable[[Setting, Findings], None], float]] = {
    "machine": (speed.machine, 20),
    "gradients": (model.gradients, 75),
    "graphs": (model.graphs, 50),
    "failure": (model.failure, 20),
    "updates": (speed.updates, 50),
    "parts": (speed.parts, 20),
    "ddp": (commands.ddp, 50),
    "train": (commands.train, 80),
    "resume": (commands.resume, 70),
    "memory": (model.memory, 40),
    "search": (speed.search, 40),
    "repeat": (model.repeat, 20),
}
LAST_LINES = 12  # number of lines to keep from the end of an error message


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=ITEMS, nargs="+", default=list(ITEMS), metavar="ITEM")
    parser.add_argument("--record", type=Path, help="file of results; items in it are left out")
    parser.add_argument("--rehearse", action="store_true", help="toy sizes, on a CPU")
    args = parser.parse_args()
    if not args.rehearse and not torch.cuda.is_available():
        sys.exit("no GPU can be used; --rehearse needs none")
    record: Path = args.record or Path(os.devnull)
    lines = record.read_text().splitlines() if record.exists() else []
    known = {json.loads(line)["item"] for line in lines}
    names = [name for name in args.only if name not in known]
    passed = 0
    with tempfile.TemporaryDirectory() as folder, record.open("a") as stream:
        for name in names:
            # A rehearsal has four times as long, since a CPU may be slow or busy.
            seconds = ITEMS[name][1] * (4 if args.rehearse else 1)
            line = run_item(name, args.rehearse, Path(folder) / name, seconds)
            line = rounded({"item": name, "rehearsed": args.rehearse} | line)
            for each in (sys.stdout, stream):
                print(json.dumps(line), file=each, flush=True)
            passed += line["ok"]
    print(f"{passed} of {len(names)} passed", file=sys.stderr)
    sys.exit(int(passed < len(names)))


def run_item(name: str, rehearse: bool, folder: Path, seconds: float) -> Line:
    """Runs an item in its own process; returns its findings, whether it passed, and its error."""
    folder.mkdir()
    found, log = folder / "found.json", folder / "log.txt"
    process = multiprocessing.get_context("fork").Process(
        target=_inside, args=(name, rehearse, folder, found, log)
    )
    began = time.monotonic()
    process.start()
    process.join(seconds)
    alive = process.is_alive()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid or 0, signal.SIGKILL)  # also kills child processes
    process.join()
    error = [f"ended after {seconds:.0f} seconds" if alive else f"exit code {process.exitcode}"]
    error = [*error, *log.read_text().splitlines()[-LAST_LINES:]] if process.exitcode else []
    content = json.loads(found.read_text()) if found.exists() else {"failed": ["nothing found"]}
    took = round(time.monotonic() - began, 1)
    return {"ok": not error and not content["failed"], "seconds": took, **content, "error": error}


def _inside(name: str, rehearse: bool, folder: Path, found: Path, log: Path) -> None:
    """Runs an item in this process, and writes its output to the file `log`."""
    os.setpgid(0, 0)
    sys.stdout = sys.stderr = stream = log.open("w", buffering=1)
    os.dup2(stream.fileno(), 1)
    os.dup2(stream.fileno(), 2)
    code = 1
    try:
        torch.set_num_threads(1)
        ITEMS[name][0](Setting(rehearse, folder), Findings(found))
        code = 0
    except Exception:
        traceback.print_exc()
    os._exit(code)


if __name__ == "__main__":
    main()
