"""Runs the named command: `python -m nmt train …`, or `nmt train …` if the package is installed."""

from __future__ import annotations

import ast
import runpy
import signal
import sys
from pathlib import Path

from nmt.utils.startup import end_on_signals

COMMANDS = ("train", "evaluate", "translate", "score", "compare", "prepare")


def main() -> None:
    """Runs the command that the first argument names, as `python -m nmt.<name>` would.

    The command's module becomes `__main__`, since Lightning starts the other ranks by running `__main__`
    again. The sweep launcher (`hydra_plugins`) starts the jobs of a sweep in the same way.
    """
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name in COMMANDS:
        end_on_signals()
        del sys.argv[1]
        runpy.run_module(f"nmt.{name}", run_name="__main__", alter_sys=True)
    elif name == "--version":
        import nmt

        print(f"nmt {nmt.__version__}")
    elif name in ("-h", "--help"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # for `nmt --help | head -1`
        print("usage: nmt COMMAND [key=value …], or nmt COMMAND --help\n")
        for command in COMMANDS:
            source = (Path(__file__).parent / f"{command}.py").read_text(encoding="utf-8")
            about = ast.get_docstring(ast.parse(source)) or ""
            print(f"  {command:9}  {about.partition(chr(10))[0]}")
    else:
        print(f"nmt: {name}: no such command; available: {', '.join(COMMANDS)}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
