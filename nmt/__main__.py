"""Runs the named command: `python -m nmt train …`, or `nmt train …` if the package is installed.

Without a name it lists the commands.
"""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

from nmt.utils.standard_output import print_whole, say


def commands() -> dict[str, str]:
    """The commands by name, each with the first line of its module's docstring."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return {file.stem: summary(file) for file in files if not file.stem.startswith("__")}


def summary(file: Path) -> str:
    """The first line of a module's docstring, without importing it."""
    return (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def list_of_commands(known: dict[str, str]) -> str:
    """The list of commands, and how one is run."""
    width = max(map(len, known))
    lines = [f"  {command:{width}}  {line}" for command, line in known.items()]
    usage = "usage: python -m nmt COMMAND [key=value …], or python -m nmt COMMAND --help"
    return "\n".join([usage, "", *lines, ""])


def main() -> None:
    """Runs the command that the first argument names, as `python -m nmt.<name>` would.

    The command's module becomes `__main__`: what starts this program again, Lightning for its other
    ranks and the launcher for the jobs of a sweep, finds there what to start.
    """
    known = commands()
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name in ("-h", "--help"):
        sys.exit(print_whole(list_of_commands(known)))
    if name == "--version":
        from nmt.cli.command import print_versions

        sys.exit(print_versions())
    if name not in known:
        say(f"{name}: no such command; there are: {', '.join(known)}")
        sys.exit(2)
    del sys.argv[1]
    runpy.run_module(f"nmt.{name}", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
