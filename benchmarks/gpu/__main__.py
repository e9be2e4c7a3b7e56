"""Settles on a GPU what only a GPU shows; see docs/performance.md.

    python -m benchmarks.gpu                            # everything, under 10 minutes on one GPU
    python -m benchmarks.gpu --only kernels,graphs      # some of it
    python -m benchmarks.gpu --rehearse                 # the same items at toy sizes on a CPU
    python -m benchmarks.gpu --compile --target sm_80   # compiles all kernels; needs no GPU

One line of JSON an item is added to the output file as soon as the item has ended. What the file
has a line of already is left out. The exit code is 1 if an item failed.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.gpu.items import ITEMS, Item
from benchmarks.gpu.process import run_apart, run_item
from benchmarks.gpu.setting import Setting

LEAST = 15.0  # seconds that must be left for an item to begin


def main() -> None:
    args = parse(sys.argv[1:])
    if args.compile:
        sys.exit(compile_kernels(args.target))
    sys.exit(run(args))


def parse(typed: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", type=names, default=list(ITEMS), metavar="ITEM[,ITEM]")
    parser.add_argument("--out", type=Path, metavar="FILE", help="gpu.jsonl, or rehearsal.jsonl")
    parser.add_argument("--again", action="store_true", help="repeat items whose last line failed")
    parser.add_argument("--minutes", type=float, default=8.5, help="that it may take at most")
    parser.add_argument("--rehearse", action="store_true", help="toy sizes, on a CPU")
    parser.add_argument("--compile", action="store_true", help="compile all kernels, and no item")
    parser.add_argument("--target", default="sm_90", help="of --compile: sm_90, sm_80, gfx942")
    args = parser.parse_args(typed)
    args.out = args.out or Path("rehearsal.jsonl" if args.rehearse else "gpu.jsonl")
    return args


def names(typed: str) -> list[str]:
    """The items of `--only`, in the order in which they matter."""
    chosen = typed.split(",")
    for name in set(chosen) - set(ITEMS):
        raise argparse.ArgumentTypeError(f"{name}: must be among {', '.join(ITEMS)}")
    return [name for name in ITEMS if name in chosen]


def compile_kernels(target: str) -> int:
    """Compiles all kernels for a GPU that need not be there; the exit code."""
    from importlib.util import find_spec

    if find_spec("benchmarks.gpu.compile") is None or find_spec("triton") is None:
        print("--compile: Triton is not installed", file=sys.stderr)
        return 1
    from benchmarks.gpu.compile import main as compile_all

    return int(compile_all(target))


def run(args: argparse.Namespace) -> int:
    """Runs the items that are left; 1 if one of those asked for failed."""
    begun = time.monotonic()
    import_libraries()
    lines = earlier(args.out, args.rehearse)
    start = "fork"
    with tempfile.TemporaryDirectory() as folder:
        shared = Path(folder)
        if not args.rehearse:
            probe = functools.partial(run_apart, device_name, (), 120, shared / "probe")
            start = next((way for way in ("fork", "spawn") if not probe(way).code), "")
            if not start:
                said = (shared / "probe").read_text().strip().splitlines()[-1:]
                print(f"no GPU can be used; --rehearse needs none: {said}", file=sys.stderr)
                return 1
        for name in args.only:
            if name in lines and not (args.again and not lines[name]["ok"]):
                print(f"{name:14} is in {args.out}", flush=True)
                continue
            left = 60 * args.minutes - (time.monotonic() - begun)
            if left < LEAST:
                print(f"{name:14} not begun, {args.minutes:g} minutes have passed", flush=True)
                continue
            lines[name] = carry_out(ITEMS[name], args, shared, start, left)
    failed = [name for name in args.only if name in lines and not lines[name]["ok"]]
    missing = [name for name in args.only if name not in lines]
    done = len(args.only) - len(failed) - len(missing)
    print(f"{done} passed, {len(failed)} failed, {len(missing)} not begun: {args.out}")
    return int(bool(failed or missing))


def carry_out(
    item: Item, args: argparse.Namespace, shared: Path, start: str, left: float
) -> dict[str, Any]:
    """Runs an item, adds its line to the output file, and says how it ended."""
    setting = functools.partial(make_setting, args.rehearse, shared, start)
    # a machine that rehearses may be slow, and busy with other things
    seconds = item.seconds * (4 if args.rehearse else 1)
    line = run_item(item, setting, shared / item.name, min(seconds, left), start)
    line = {"rehearsed": args.rehearse, **line}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with args.out.open("a") as file:
        file.write(json.dumps(line) + "\n")
        file.flush()
        os.fsync(file.fileno())
    print(f"{item.name:14} {summary(line)}", flush=True)
    return line


def summary(line: dict[str, Any]) -> str:
    """A line of an item for a person."""
    said = [f"{'right' if line['ok'] else 'FAILED'} in {line['seconds']} s"]
    if line["failed"]:
        said.append("wrong: " + ", ".join(line["failed"]))
    said += [f"{name} left out ({reason})" for name, reason in line["left_out"].items()]
    missed = [
        f"{name} {target['value']}" for name, target in line["targets"].items() if not target["met"]
    ]
    if missed:
        said.append("missed: " + ", ".join(missed))
    if line["error"]:
        said.append(f"{line['error'][0]}: {line['error'][-1].strip()}")
    return "; ".join(said)


def earlier(out: Path, rehearsed: bool) -> dict[str, dict[str, Any]]:
    """The last line of each item in the output file; a line that was cut off counts for nothing."""
    found = {}
    for text in out.read_text().splitlines() if out.exists() else []:
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if line["rehearsed"] == rehearsed:
            found[line["item"]] = line
    return found


def make_setting(rehearse: bool, shared: Path, start: str, folder: Path) -> Setting:
    return Setting(rehearse, folder, shared, start)


def import_libraries() -> None:
    """Imports what the items need, so that their processes need not; the device is left alone."""
    # asking for a GPU must not initialise CUDA here, or a fork could not use it
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    import importlib

    for module in (
        "nmt.run.fit",
        "nmt.run.test",
        "nmt.run.finish",
        "nmt.translate",
        "torch.profiler",
    ):
        importlib.import_module(module)


def device_name() -> None:
    """Uses the GPU; raises where it cannot be."""
    import torch

    print(torch.cuda.get_device_name(), float(torch.ones(2, device="cuda").sum()))


if __name__ == "__main__":
    main()
