"""results.json: what is known of a run besides its scores, which are in `scores.csv`.

It is written last and in one piece: where it exists the run is finished.
"""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from nmt.utils.errors import InputError
from nmt.utils.files import write_json

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
    """Versions of Python and of the packages that a result may depend on."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def as_json(value: Any) -> Any:
    """The same content in JSON's types; numbers that are not finite are null.

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


def write(folder: str | Path, content: Mapping[str, Any]) -> Path:
    """Writes results.json into a run folder, whole or not at all, after all other files."""
    path = Path(folder) / FILE
    write_json(path, as_json(content))
    return path


def read(folder: str | Path) -> dict[str, Any]:
    """Reads the results.json of a run folder.

    Raises:
        InputError: if it is missing or not the results of a run, naming the file.
    """
    path = Path(folder) / FILE
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise InputError(
            f"{folder}: no {FILE}; the run is not finished, or this is no run folder"
        ) from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from error
    if not (isinstance(content, dict) and "name" in content):
        raise InputError(f"{path}: not the results of a run")
    return content
