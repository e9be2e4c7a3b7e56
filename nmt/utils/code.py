"""Identifies the code that made a run: git commit, and a fingerprint of what results depend on."""

from __future__ import annotations

import ast
import functools
import hashlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1]

# What decides the weights and the translations of a run, given its configuration and its text.
PARTS = (
    *("data", "layers", "models", "phrase_based", "search", "training"),
    *("inference/force_decoding.py", "inference/test_loop.py", "inference/trained.py"),
    *("inference/unknown_words.py", "run/fit.py", "run/test.py"),
    *("evaluation/alignment.py", "evaluation/bleu.py", "evaluation/examples.py"),
    *("evaluation/records.py", "evaluation/stress.py"),
    *("utils/cores.py", "utils/devices.py", "utils/workers.py"),
)
# Of these, what only shows, logs or stops.
SHOWN = (
    *("training/loggers.py", "training/metrics_file.py", "training/progress.py"),
    *("training/signals.py", "training/test_scores.py", "training/wandb_logger.py"),
)


@functools.cache
def code_fingerprint(package: Path | None = None) -> str:
    """SHA-256 (hexadecimal) of the files of `PARTS` but for `SHOWN`, as they lie there at the first call.

    What Python makes of them is compared: comments, docstrings and the form of lines do not count.
    """
    digest, package = hashlib.sha256(), package or PACKAGE
    for file in code_files(package):
        digest.update(f"{file.relative_to(package).as_posix()}\n".encode())
        digest.update(repr(meaning(file.read_text(encoding="utf-8"))).encode())
    return digest.hexdigest()


@functools.cache
def git_commit(package: Path = PACKAGE) -> str | None:
    """The commit that the package lies at, as it was at the first call; None outside its repository.

    It ends in `-dirty` where tracked files of the package differed from it.
    """
    git = ["git", "--no-optional-locks", "-C", str(package)]
    options: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 20}
    try:
        # a package that was copied into another repository is not tracked there
        subprocess.run([*git, "ls-files", "--error-unmatch", "__init__.py"], check=True, **options)
        commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, **options).stdout.strip()
        differs = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "."], **options).returncode
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{commit}-dirty" if differs else commit


def code_files(package: Path) -> Iterator[Path]:
    """The Python files that count, in the order of their names."""
    shown = {package / name for name in SHOWN}
    files = (
        file
        for part in PARTS
        for file in ([package / part] if part.endswith(".py") else (package / part).rglob("*.py"))
    )
    return (file for file in sorted(files) if file not in shown)


def meaning(source: str) -> Any:
    """The syntax tree of a program, without comments, docstrings and line numbers.

    >>> meaning("a = 1  # one") == meaning("a  =  1"), meaning("a = 1") == meaning("a = 2")
    (True, False)
    >>> meaning('def f():\\n    "Said."\\n    return 1') == meaning("def f(): return 1")
    True
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            del node.body[0]
    return _plain(tree)


def _plain(node: Any) -> Any:
    """A syntax tree as tuples, without what is empty: versions of Python differ in that."""
    if isinstance(node, ast.AST):
        entries = [(name, _plain(value)) for name, value in ast.iter_fields(node)]
        return type(node).__name__, *(entry for entry in entries if entry[1] not in ((), None))
    if isinstance(node, list):
        return tuple(map(_plain, node))
    return None if node is None else repr(node)
