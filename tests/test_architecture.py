"""The rules of docs/architecture.md on imports between folders."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.helpers import ROOT

PACKAGE = ROOT / "nmt"

# From the bottom up: a folder imports only folders that come before it.
FOLDERS = (
    "utils",
    "config",
    "text",
    "grammar",
    "evaluation",
    "report",
    "layers",
    "fused",
    "search",
    "data",
    "models",
    "inference",
    "training",
    "cli",
)
# Folders with stricter rules than FOLDERS, and the folders that they may import
ALONE = {
    "layers": set(),
    "fused": {"layers", "utils"},
    "grammar": set(),
    "report": {"utils", "config", "text", "evaluation"},
    "evaluation": {"utils", "config", "text"},
}
# Folders that must not import the libraries in HEAVY. Only training and translation need these.
READERS = ("utils", "config", "text", "grammar", "evaluation", "report", "cli")
HEAVY = (
    "torch",
    "pytorch_lightning",
    "lightning",
    "torchmetrics",
    "tokenizers",
    "datasets",
    "huggingface_hub",
    "wandb",
)


@functools.cache
def modules(file: Path) -> set[str]:
    """Returns the `nmt` modules that a file imports anywhere. `from nmt import a` imports `nmt.a`."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{file}: relative import"
            inside = {f"{node.module}.{name.name}" for name in node.names}
            found |= {name if is_module(name) else node.module for name in inside}
    return {name for name in found if name.split(".")[0] == "nmt"}


def is_module(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return path.with_suffix(".py").is_file() or path.is_dir()


def parts(file: Path) -> set[str]:
    """Returns the folders (or files) of `nmt` that a file imports from: `data` for `nmt.data.batch`."""
    return {name.split(".")[1] for name in modules(file) if "." in name}


def commands() -> set[str]:
    return {file.stem for file in PACKAGE.glob("*.py")} - {"__init__", "__main__", "api"}


def test_each_folder_is_in_the_list():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders == set(FOLDERS)


@pytest.mark.parametrize("folder", FOLDERS)
def test_folder_imports_only_folders_below_it(folder):
    files = list((PACKAGE / folder).rglob("*.py"))
    assert files
    below = ALONE.get(folder, set(FOLDERS[: FOLDERS.index(folder)]))
    for file in files:
        assert parts(file) <= below | {folder}, file


def test_layers_import_only_torch():
    names = {
        word.split(".")[0]
        for file in (PACKAGE / "layers").glob("*.py")
        for word in re.findall(r"^\s*(?:import|from) (\S+)", file.read_text(), re.MULTILINE)
    }
    assert names - sys.stdlib_module_names == {"torch", "nmt"}


@pytest.mark.slow
def test_readers_import_no_training_library():
    """Imports all modules of READERS except `nmt.utils.devices`, which needs torch."""
    names = [
        ".".join(file.relative_to(ROOT).with_suffix("").parts)
        for folder in READERS
        for file in (PACKAGE / folder).rglob("*.py")
        if file.stem not in ("__init__", "__main__", "devices")
    ]
    code = """
import importlib, sys

for name in HEAVY:
    sys.modules[name] = None  # an import of it raises
for name in [*NAMES, "nmt.api", "nmt.compare"]:
    importlib.import_module(name)
makers = {"layers", "fused", "search", "data", "models", "inference", "training"}
print({name for name in sys.modules if name.startswith("nmt.") and name.split(".")[1] in makers})
"""
    code = code.replace("HEAVY", repr(HEAVY)).replace("NAMES", repr(names))
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout == "set()\n", done.stderr


def test_no_module_imports_a_command():
    for file in PACKAGE.rglob("*.py"):
        assert not parts(file) & commands(), file


def test_no_import_cycles():
    """A package is also a node of the import graph, since an import of its modules runs its `__init__`."""
    graph = {}
    for file in PACKAGE.rglob("*.py"):
        name = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        graph[name] = {imported for imported in modules(file) if imported != name}
        if file.name == "__init__.py":  # a package may import its own modules
            graph[name] = {n for n in graph[name] if not n.startswith(f"{name}.")}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_test_folders_are_packages_and_mirror_nmt():
    tests = ROOT / "tests"
    folders = {file.parent for file in tests.rglob("*.py")}
    assert len(folders) > 10
    apart = ("benchmarks", "commands", "examples", "helpers", "launcher", "promises")
    others = {tests, *(tests / name for name in apart)}
    for folder in folders:
        assert (folder / "__init__.py").is_file(), folder
        assert folder in others or (PACKAGE / folder.relative_to(tests)).is_dir(), folder
