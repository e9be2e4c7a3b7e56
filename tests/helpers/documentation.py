"""Code blocks of the documentation, and the commands in them.

A comment on the line before a block marks the block:

    <!-- quick -->         the tests run the block, with tiny sizes
    <!-- file: NAME -->    the block is the content of the file NAME
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from tests.helpers import ROOT

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"(?:^<!-- ([^\n]*) -->\n)?^```(\w*)\n(.*?)^```$", re.M | re.S)


class Block(NamedTuple):
    """A fenced code block, with the comment before it."""

    mark: str
    language: str
    text: str


class Command(NamedTuple):
    """A command of `nmt`, with its arguments and the files after < and >."""

    name: str
    words: list[str]
    stdin: str
    stdout: str


def blocks(text: str) -> list[Block]:
    """Returns the fenced blocks of a Markdown page in order."""
    return [Block(*found) for found in BLOCK.findall(text)]


def files(text: str) -> dict[str, str]:
    """Returns {name: content} of the files that a page shows."""
    marked = [block for block in blocks(text) if block.mark.startswith("file: ")]
    return {block.mark.removeprefix("file: "): block.text for block in marked}


def lines(block: Block) -> list[str]:
    """Returns the commands of a block, each on one line."""
    return re.sub(r"[ \t]*\\\n[ \t]*", " ", block.text).splitlines()


def commands(block: Block) -> Iterator[Command]:
    """Yields the commands of `nmt` in a block."""
    for line in lines(block):
        typed = shlex.split(re.sub(r" [<>] \S+", "", line))
        files = dict(re.findall(r" ([<>]) (\S+)", line))
        name = next((word for word in typed if word.startswith("nmt.")), None)
        if name is not None:
            words = typed[typed.index(name) + 1 :]
            name = name.removeprefix("nmt.")
            yield Command(name, words, files.get("<", ""), files.get(">", ""))
