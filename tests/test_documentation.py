"""The documentation: its size, its links, and command lines that can be pasted into bash and zsh."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess

import pytest

from tests.helpers import ROOT
from tests.helpers.documentation import PAGES, Block, blocks, commands, lines
from tests.test_budget import BUDGET

SHELL = [
    pytest.param(block, id=f"{page.name}:{number}")
    for page in PAGES
    for number, block in enumerate(blocks(page.read_text()))
    if block.language == "bash" and not block.mark.startswith("file: ")
]
TABLE_MARKS = re.compile(r"<!--.*?-->|\||-{3,}:?")
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
SPECIAL = re.compile(r"[][*?(){}!#^]|(?<!\S)=|(?<=\S)~")  # special characters of zsh


def words(path) -> int:
    return len(path.read_text().split())


def test_words_are_within_the_budget():
    assert len(PAGES) + len(list((ROOT / "docs").glob("*/**/*.md"))) <= 18
    assert sum(map(words, PAGES)) <= BUDGET["words"]
    results = TABLE_MARKS.sub(" ", (ROOT / "docs/results.md").read_text())
    assert len(results.split()) <= 2_000
    assert len((ROOT / "CHANGELOG.md").read_text().splitlines()) <= 60


@pytest.mark.parametrize("block", SHELL)
def test_commands_can_be_pasted(block: Block):
    for line in lines(block):
        bare = QUOTED.sub("", line)
        assert not SPECIAL.search(bare), line
        assert "python -m" not in line or "uv run " in line, line
    for shell in ("bash", "zsh"):
        if shutil.which(shell):
            subprocess.run([shell, "-n", "-c", block.text], check=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_lists_in_prose_are_quoted(page):
    spans = re.findall(r"`([^`\n]+)`", page.read_text())
    assert [span for span in spans if re.match(r"[+\w./]+=[^'\"]*\[", span)] == []


@pytest.mark.parametrize("block", SHELL)
def test_keys_and_modules_exist(block: Block, check):
    if block.mark == "quick":
        return  # test_how_tos.py runs this block
    for command in commands(block):
        if command.name == "grammar" or "--config-dir" in command.words:
            continue  # `check` supports neither `nmt.grammar` nor --config-dir
        typed = [word for word in command.words if not word.startswith(("-", "hydra"))]
        if "-m" in command.words:
            typed = [re.sub(r",[^]]*$", "", word) if "[" not in word else word for word in typed]
        typed = [
            word for word in typed if not word.startswith("hparams_search") and "(" not in word
        ]
        code, message = check(*typed, command=command.name)
        assert code == 0, message
    for module in re.findall(r"python -m ([\w.]+)", block.text):
        assert importlib.util.find_spec(module), module


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_are_valid(page):
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", page.read_text()):
        name, _, anchor = target.partition("#")
        path = page.parent / name if name else page
        assert path.exists(), target
        if anchor:
            titles = re.findall(r"^#+ (.*)", path.read_text(), re.MULTILINE)
            anchors = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]
            assert anchor in anchors, target
