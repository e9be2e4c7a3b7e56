"""The walls of docs/architecture.md: which part of the program may know which."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from nmt.data import vocabulary
from nmt.search import hypothesis

ROOT = Path(__file__).parents[1]
COMMANDS = {"train", "evaluate", "translate", "compare", "prepare", "baseline"}
FOR_ALL = {"config", "checks", "errors", "files", "devices", "extras"}
MAY_KNOW = {
    "layers": set(),
    "data": {*FOR_ALL},
    "search": {*FOR_ALL, "layers"},
    "evaluation": {*FOR_ALL, "data"},
    "report": {*FOR_ALL, "data", "evaluation"},
    "phrase_based": {*FOR_ALL, "data", "evaluation"},
    "models": {*FOR_ALL, "layers", "search", "data", "evaluation"},
}


def known(file: Path) -> set[str]:
    """Parts of `nmt` that a file imports: `data` for `nmt.data.batch`."""
    modules = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            modules |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "nmt":
            modules |= {f"nmt.{name.name}" for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.add(node.module)
    return {name.split(".")[1] for name in modules if name.startswith("nmt.")}


def test_imports_are_seen():
    assert known(ROOT / "nmt/train.py") >= {
        "protocol",
        "finish",
        "command",
        "checks",
        "data",
        "models",
    }


def test_no_file_imports_a_command():
    for file in (ROOT / "nmt").rglob("*.py"):
        assert not known(file) & COMMANDS, file


@pytest.mark.parametrize("part", MAY_KNOW)
def test_dependencies_point_one_way(part):
    files = list((ROOT / "nmt" / part).rglob("*.py"))
    assert files
    for file in files:
        assert known(file) <= MAY_KNOW[part] | {part}, file


def test_search_and_data_number_the_symbols_alike():
    """`search` does not know `data`: what both name must be the same."""
    assert (hypothesis.END, hypothesis.UNKNOWN) == (vocabulary.END, vocabulary.UNKNOWN)


@pytest.mark.parametrize("name", ["architecture.md", "paper.md"])
def test_files_that_are_named_exist(name):
    """`nmt/data/batch.py`, and `batch.py` in a list that began with a folder."""
    named = re.findall(
        r"`([\w/]+\.(?:py|yaml)|(?:nmt|conf)/[\w/]*)`", (ROOT / "docs" / name).read_text()
    )
    assert len(named) > 10
    everywhere = {path.name for path in (ROOT / "nmt").rglob("*.py")}
    for path in named:
        assert (ROOT / path).exists() or (ROOT / "nmt" / path).exists() or path in everywhere, path
