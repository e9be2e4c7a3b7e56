"""The fingerprint of the code: what changes it, and what does not."""

from __future__ import annotations

import doctest

import pytest

from nmt.utils import code
from nmt.utils.code import PACKAGE, code_files, code_fingerprint, meaning


def test_what_counts_are_the_files_that_decide_weights_and_translations():
    names = {file.relative_to(PACKAGE).as_posix() for file in code_files(PACKAGE)}
    assert names >= {"layers/fused/decoder.py", "models/optimizer.py", "search/beam.py"}
    assert names >= {"data/batches.py", "training/validation.py", "run/fit.py", "run/test.py"}
    assert not {name for name in names if name.startswith(("report/", "cli/", "config/"))}
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


def test_doctests():
    assert doctest.testmod(code).failed == 0
