"""Every command that the documentation shows can be typed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from nmt.command import conf_folder
from nmt.config import load, validate_keys

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
SHOWN = re.compile(r"-m nmt\.(\w+)([^<>|;#]*)")


def shown(page: Path) -> set[tuple[str, tuple[str, ...]]]:
    """Commands of a page's code blocks (fenced or indented): name and arguments."""
    text = re.sub(r"[ \t]*\\\n[ \t]*", " ", page.read_text())
    found = set()
    fenced = False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        command = SHOWN.search(line)
        if not command or not (fenced or line.startswith("    ")):
            continue
        if (conf_folder() / f"{command[1]}.yaml").exists():
            # a command inside quotes ends where the quotes do
            quoted = command.string[: command.start()].count('"') % 2
            words = command[2].partition('"')[0] if quoted else command[2]
            found.add((command[1], tuple(shlex.split(words))))
    return found


COMMANDS = sorted(set().union(*map(shown, PAGES)))


def test_the_readme_shows_the_main_commands():
    names = {name for name, _ in shown(ROOT / "README.md")}
    assert names >= {"train", "evaluate", "translate", "compare"}


@pytest.mark.parametrize(
    ("command", "typed"), COMMANDS, ids=[" ".join([name, *typed]) for name, typed in COMMANDS]
)
def test_what_is_shown_composes(composer, command, typed):
    words = [word for word in typed if not word.startswith("-")]
    if any(re.search(r"…|\.\.\.", word) for word in words):
        pytest.skip("leaves something out")
    if set(typed) & {"-m", "--multirun"}:  # the first job of the sweep
        words = [re.sub(r"(=\w+),[\w,]+$", r"\1", word) for word in words]
    own = [word for word in words if not word.startswith("hydra")]
    config = composer(*own, command=command)
    if command in ("compare", "translate"):
        validate_keys(config)
    else:
        load(config)
