"""The commit of the package."""

from __future__ import annotations

import subprocess
from pathlib import Path

from nmt.utils.environment import git_commit


def git(folder: Path, *words: str) -> str:
    name = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    done = subprocess.run(
        ["git", "-C", folder, *name, *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_commit_of_a_package(tmp_path):
    package, copied = tmp_path / "package", tmp_path / "copied"
    for folder in (package, copied):
        folder.mkdir()
        (folder / "__init__.py").write_text("a = 1\n")
    assert git_commit(package) is None  # not in a repository
    git_commit.cache_clear()
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "package")
    git(tmp_path, "commit", "-qm", "one")
    assert git_commit(package) == git(tmp_path, "rev-parse", "HEAD")
    assert git_commit(copied) is None  # git does not track this copy
    git_commit.cache_clear()
    (package / "__init__.py").write_text("a = 2\n")
    assert git_commit(package) == f"{git(tmp_path, 'rev-parse', 'HEAD')}-dirty"
    git_commit.cache_clear()
