"""Code blocks of the documentation, and the commands in them.

A comment on the line before a block says more about it:

    <!-- quick -->         the tests run the block, in tiny form
    <!-- file: NAME -->    the block is the content of a file of that name
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from tests.helpers import ROOT

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its text, the comment before it, and its language."""

    text: str
    mark: str
    language: str


@dataclass(frozen=True)
class Command:
    """A command of `nmt`: its name, its words, and the files of < and >."""

    name: str
    words: tuple[str, ...]
    stdin: str = ""
    stdout: str = ""


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page of Markdown, in their order."""
    return [Block(at["text"], at["mark"] or "", at["language"]) for at in BLOCK.finditer(text)]


def files(text: str) -> dict[str, str]:
    """The files that a page gives the content of, by name."""
    marked = [block for block in blocks(text) if block.mark.startswith("file: ")]
    return {block.mark.removeprefix("file: "): block.text for block in marked}


def lines(block: Block) -> list[str]:
    """The command lines of a block, each on one line."""
    return re.sub(r"[ \t]*\\\n[ \t]*", " ", block.text).splitlines()


def commands(block: Block) -> Iterator[Command]:
    """The commands of `nmt` in a block."""
    for line in lines(block):
        typed = shlex.split(line)
        place = next((n for n, word in enumerate(typed) if word.startswith("nmt.")), None)
        if place is not None:
            words = typed[place + 1 :]
            streams = {"<": "", ">": ""}
            for sign in streams:
                if sign in words:
                    at = words.index(sign)
                    streams[sign] = words[at + 1]
                    del words[at : at + 2]
            name = typed[place].removeprefix("nmt.")
            yield Command(name, tuple(words), streams["<"], streams[">"])
