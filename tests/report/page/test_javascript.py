"""Unit tests of the page's modules under Node; the tests `test_browser_*` run the modules in a browser."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.helpers import ROOT

FOLDER = Path(__file__).parent / "js"
NODE = shutil.which("node")
LONGEST = 110  # maximum number of characters per line
TEXT = r""" "[^"\n]*" | '[^'\n]*' | `[^`]*` | //[^\n]* | /[^/\n]+/g?u\b | /\*.*?\*/ | \bfor\ \([^;\n]*;[^;\n]*; """


@pytest.mark.skipif(NODE is None, reason="node is not installed")
@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.test.mjs")))
def test_javascript_unit_tests_pass(name: str) -> None:
    assert NODE is not None
    done = subprocess.run(
        [NODE, "--test", str(FOLDER / name)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# pass 0" not in done.stdout


@pytest.mark.parametrize("folder", [FOLDER, ROOT / "nmt" / "report" / "page" / "js"])
def test_javascript_lines_have_one_statement(folder: Path) -> None:
    """Code that is formatted with `prettier --print-width 110` passes this test."""
    files = list(folder.rglob("*.mjs"))
    assert files
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert not [line for line in text.splitlines() if len(line) > LONGEST], file
        code = re.sub(TEXT, "", text, flags=re.X | re.S | re.M)
        assert not re.findall(r"^.*;[ \t]*\S.*$", code, re.M), file
