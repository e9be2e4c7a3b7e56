"""Runs the page's JavaScript in Node, to compare its model with PyTorch."""

from __future__ import annotations

import copy
import dataclasses
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import torch

from nmt.inference.live_export import rounded_to_8_bits
from nmt.inference.model import Model
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


def rounded(trained: Model) -> Model:
    """Returns a copy of the model with its matrices rounded to 8 bits, as in a page."""
    network = copy.deepcopy(trained.network)
    with torch.no_grad():
        for weight in network.parameters():
            if weight.ndim == 2:
                codes, scale = rounded_to_8_bits(weight.numpy())
                weight.copy_(torch.from_numpy(codes * scale[:, None]))
    return dataclasses.replace(trained, network=network)
