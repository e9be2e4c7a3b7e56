"""Commands and files that the documentation shows, found in its Markdown.

A command is a line of a code block (fenced, or indented by four), or inline code, that runs one of
the project's programs: python -m nmt.X, python -m benchmarks, torchrun … -m nmt.X, or a recipe of
the justfile. Two marks, HTML comments on the line before a block, say more about it:

    <!-- quick -->         tests run what the block shows, in tiny form
    <!-- file: NAME -->    the block is the content of a file of that name
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.helpers import ROOT

FIRST = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES = sorted([*FIRST, *(ROOT / "docs").glob("*.md")])
LAUNCHERS = ("python", "python3", "torchrun")
OURS = re.compile(r"(nmt|benchmarks)(\.\w+)*")
RECIPE = re.compile(r"^(\w[\w-]*)( \*\w+(?:='(.*)')?)?:\n    (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A code block: its text, the comment before it, and the language after its fence."""

    text: str
    mark: str
    language: str


@dataclass(frozen=True, order=True)
class Shown:
    """A command: its module, its words, those of its launcher, and the files of < and >."""

    module: str
    words: tuple[str, ...]
    launcher: tuple[str, ...] = ("python",)
    stdin: str = ""
    stdout: str = ""

    def __str__(self) -> str:
        return " ".join([*self.launcher[:1], self.module, *self.words])


def blocks(text: str) -> Iterator[Block]:
    """The code blocks of a page of Markdown, in their order."""
    lines, mark, at = text.splitlines(), "", 0
    while at < len(lines):
        line = lines[at]
        comment = re.fullmatch(r"\s*<!-- (.*?) -->\s*", line)
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
            inside = "\n".join(each[4:] for each in lines[at:end]).rstrip() + "\n"
            yield Block(inside, mark, "")
            at, mark = end - 1, ""
        elif line.strip():
            mark = ""
        at += 1


def files(text: str) -> dict[str, str]:
    """The files that a page gives the content of, by name."""
    return {
        block.mark.removeprefix("file: "): block.text
        for block in blocks(text)
        if block.mark.startswith("file: ")
    }


def commands(text: str) -> list[Shown]:
    """The commands of a page: those of its blocks in their order, then those inside its lines."""
    found = [command for block in blocks(text) for command in in_block(block)]
    inline = re.findall(r"(?<!`)`((?:uv run )?(?:python|just|torchrun) [^`\n]+)`", text)
    return found + [command for line in inline for command in _in_line(line)]


def in_block(block: Block) -> list[Shown]:
    """The commands of a block; a line that ends in a backslash goes on in the next."""
    joined = re.sub(r"[ \t]*\\\n[ \t]*", " ", block.text)
    return [command for line in joined.splitlines() for command in _in_line(line)]


def _in_line(line: str) -> Iterator[Shown]:
    if not re.search(r"-m (nmt|benchmarks)\b|\bjust ", line):
        return
    lexer = shlex.shlex(line, posix=True, punctuation_chars="<>|&;")
    lexer.whitespace_split = True
    simple: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set("|&;"):
            simple.append([])
        else:
            simple[-1].append(word)
    for words in simple:
        yield from _simple(words)


def _simple(words: list[str]) -> Iterator[Shown]:
    """The command of one program with its arguments, or those quoted inside it."""
    for word in words:
        if " " in word and "-m nmt." in word:  # sbatch --wrap "python -m nmt.train …"
            yield from _in_line(word)
            return
    streams = {"<": "", ">": ""}
    for sign in streams:
        if sign in words:
            at = words.index(sign)
            streams[sign] = words[at + 1]
            words = words[:at] + words[at + 2 :]
    if words[:2] == ["uv", "run"]:
        words = words[2:]
    if words[:1] == ["just"] and len(words) > 1:
        yield from recipe(words[1], words[2:])
        return
    start = next((n for n, word in enumerate(words) if os.path.basename(word) in LAUNCHERS), None)
    if start is None or "-m" not in words[start:]:
        return
    at = words.index("-m", start)
    if at + 1 < len(words) and OURS.fullmatch(words[at + 1]):
        launcher = (os.path.basename(words[start]), *words[start + 1 : at])
        yield Shown(words[at + 1], tuple(words[at + 2 :]), launcher, *streams.values())


def recipe(name: str, words: list[str], justfile: Path = ROOT / "justfile") -> Iterator[Shown]:
    """What a recipe of the justfile runs when it is given these words.

    Raises:
        KeyError: for a recipe that there is not.
    """
    found = {match[1]: (match[3], match[4]) for match in RECIPE.finditer(justfile.read_text())}
    default, body = found[name]
    given = shlex.join(words) if words else (default or "")
    yield from _in_line(body.replace('"$@"', given))
