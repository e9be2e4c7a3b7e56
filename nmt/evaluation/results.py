"""Reads results.json, which describes a run; the scores of the run are in scores.csv.

`nmt.training.outcome` writes the file atomically, after all other files. So a run with a results.json is complete.
"""

from __future__ import annotations

import contextlib
import json
import math
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from nmt.utils.files import refuse_unreadable

FILE = "results.json"

PACKAGES = (
    "rnnsearch",
    "torch",
    "pytorch-lightning",
    "hydra-core",
    "torchmetrics",
    "sacrebleu",
    "sacremoses",
    "tokenizers",
    "datasets",
    "numpy",
)


def versions() -> dict[str, str]:
    """Returns the versions of Python and of the packages that a result may depend on."""
    known = {"python": platform.python_version()}
    for package in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            known[package] = version(package)
    return known


def as_json(value: Any) -> Any:
    """Converts a value to JSON types; numbers that are not finite become null.

    >>> as_json({"nll": np.float32(0.5), "perplexity": [float("inf")], "edges": (10, 20)})
    {'nll': 0.5, 'perplexity': [None], 'edges': [10, 20]}
    """
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return as_json(value.tolist())
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def read(folder: str | Path) -> dict[str, Any]:
    """Reads the results.json of a run folder.

    Raises:
        InputError: if the file is missing or is not the results of a run; the message names the file.
    """
    path = Path(folder) / FILE
    with refuse_unreadable(path, "the results of a run"):
        content = json.loads(path.read_bytes())
        if not (isinstance(content, dict) and "name" in content):
            raise ValueError("no name")
    return content
