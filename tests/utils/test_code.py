"""The fingerprint of the code: what changes it, and what does not."""

from __future__ import annotations

import doctest
import subprocess
from pathlib import Path

import pytest

from nmt.utils import code
from nmt.utils.code import PACKAGE, code_files, code_fingerprint, git_commit, meaning


def test_what_counts_are_the_files_that_decide_weights_and_translations():
    names = {file.relative_to(PACKAGE).as_posix() for file in code_files(PACKAGE)}
    assert names >= {"layers/fused/decoder.py", "models/optimizer.py", "search/beam.py"}
    assert names >= {"data/batches.py", "training/validation.py", "run/fit.py", "run/test.py"}
    assert names >= {"utils/devices.py", "phrase_based/system.py", "inference/test_loop.py"}
    assert not {name for name in names if name.startswith(("report/", "cli/", "config/"))}
    assert not {"inference/output.py", "inference/live_export.py"} & names
    assert "training/progress.py" not in names
    for name in (*code.PARTS, *code.SHOWN):
        assert (PACKAGE / name).exists(), name


def test_it_is_a_digest_of_all_of_them(tmp_path, monkeypatch):
    monkeypatch.setattr(code, "PACKAGE", tmp_path)
    monkeypatch.setattr(code, "PARTS", ("layers", "run/fit.py"))
    monkeypatch.setattr(code, "SHOWN", ("layers/shown.py",))
    files = {"layers/a.py": "x = 1\n", "layers/shown.py": "y = 1\n", "run/fit.py": "z = 1\n"}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    def fingerprint() -> str:
        return code_fingerprint.__wrapped__()

    first = fingerprint()
    assert len(first) == 64
    (tmp_path / "layers/shown.py").write_text("y = 2\n")
    (tmp_path / "layers/a.py").write_text('"""Said."""\n\nx = 1  # one\n')
    assert fingerprint() == first
    (tmp_path / "layers/a.py").write_text("x = 2\n")
    second = fingerprint()
    (tmp_path / "layers/a.py").rename(tmp_path / "layers/b.py")
    assert len({first, second, fingerprint()}) == 3


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a = f(1)", "a = f(1.0)"),
        ("a = b + c", "a = b - c"),
        ("def f(a): return a", "def f(a, /): return a"),
        ("x: int", "x: str"),
        ("f'{a}'", "f'{a!r}'"),
        ("if a:\n    b\nc", "if a:\n    b\n    c"),
        ("'text'\nclass A: pass", "'text'\nclass A: x = None"),
    ],
)
def test_programs_that_do_not_do_the_same_differ(one, other):
    assert meaning(one) != meaning(other)
    assert meaning(one) == meaning(f"# said\n{one}\n\n")


def git(folder: Path, *words: str) -> str:
    name = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    done = subprocess.run(
        ["git", "-C", folder, *name, *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_the_commit_that_a_package_lies_at(tmp_path):
    package, copied = tmp_path / "package", tmp_path / "copied"
    for folder in (package, copied):
        folder.mkdir()
        (folder / "__init__.py").write_text("a = 1\n")
    assert git_commit(package) is None  # no repository
    git_commit.cache_clear()
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "package")
    git(tmp_path, "commit", "-qm", "one")
    git(tmp_path, "tag", "-am", "a tag", "v1")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert git_commit(package) == commit
    assert git_commit(copied) is None  # into a repository that is not its own
    git_commit.cache_clear()
    (tmp_path / "a page").touch()
    git(tmp_path, "add", "a page")
    assert git_commit(package) == commit  # the page is not of the package
    (package / "__init__.py").write_text("a = 2\n")
    assert git_commit(package) == commit  # as it was when it was first asked for
    git_commit.cache_clear()
    assert git_commit(package) == f"{commit}-dirty"
    git_commit.cache_clear()


def test_doctests():
    assert doctest.testmod(code).failed == 0
