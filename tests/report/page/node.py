"""Runs the page's JavaScript in Node, to compare the model in the page with the same model in PyTorch."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from nmt.report.page import embed

NODE = shutil.which("node")
JS = Path(embed.__file__).parent / "js"


def in_node(script: str, **given: Any) -> Any:
    """Runs a script in Node, and returns the JSON that it prints.

    In the script, `given` holds the keyword arguments, and $JS is the URL of the page's `js` folder.
    """
    assert NODE is not None
    text = f"const given = {json.dumps(given)};\n{script.replace('$JS', JS.as_uri())}"
    command = [NODE, "--input-type=module", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
