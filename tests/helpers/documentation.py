"""Code blocks of the documentation, and the commands in them.

Two marks, HTML comments on the line before a block, say more about it:

    <!-- quick -->         tests run what the block shows, in tiny form
    <!-- file: NAME -->    the block is the content of a file of that name
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from tests.helpers import ROOT

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
COMMAND = re.compile(r"(?:uv run )?python -m nmt\.?(?: )?(?P<name>\w+) ?(?P<words>.*)")


@dataclass(frozen=True)
class Block:
    """A code block: its text, the comment before it, and the language after its fence."""

    text: str
    mark: str
    language: str


@dataclass(frozen=True)
class Shown:
    """A command as it is shown: its name, its words, and the files of < and >."""

    name: str
    words: tuple[str, ...]
    stdin: str = ""
    stdout: str = ""


def blocks(text: str) -> Iterator[Block]:
    """The code blocks of a page of Markdown, fenced or indented, in their order."""
    lines, mark, at = text.splitlines(), "", 0
    while at < len(lines):
        line = lines[at]
        comment = re.fullmatch(r"<!-- (.*?) -->", line.strip())
        if comment:
            mark = comment[1]
        elif line.startswith("```"):
            end = next(n for n in range(at + 1, len(lines)) if lines[n].startswith("```"))
            yield Block("\n".join(lines[at + 1 : end]) + "\n", mark, line[3:].strip())
            at, mark = end, ""
        elif line.startswith("    ") and line.strip():
            end = at
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            yield Block("\n".join(each[4:] for each in lines[at:end]).rstrip() + "\n", mark, "")
            at, mark = end - 1, ""
        elif line.strip():
            mark = ""
        at += 1


def files(text: str) -> dict[str, str]:
    """The files that a page gives the content of, by name."""
    marked = [block for block in blocks(text) if block.mark.startswith("file: ")]
    return {block.mark.removeprefix("file: "): block.text for block in marked}


def commands(text: str) -> Iterator[Shown]:
    """The commands of a block; a line that ends in a backslash goes on in the next."""
    for line in re.sub(r"[ \t]*\\\n[ \t]*", " ", text).splitlines():
        found = COMMAND.match(line.strip())
        if found:
            words = shlex.split(found["words"], comments=True)
            streams = {"<": "", ">": ""}
            for sign in streams:
                if sign in words:
                    at = words.index(sign)
                    streams[sign] = words[at + 1]
                    del words[at : at + 2]
            yield Shown(found["name"], tuple(words), streams["<"], streams[">"])
