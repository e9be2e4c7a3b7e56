"""The page's modules by themselves, under Node; how they work in a browser is in test_browser.py."""

import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "js"
NODE = shutil.which("node")


@pytest.mark.skipif(NODE is None, reason="node is not installed")
@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.test.mjs")))
def test_modules(name: str) -> None:
    assert NODE is not None
    done = subprocess.run(
        [NODE, "--test", str(FOLDER / name)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# pass 0" not in done.stdout
