"""results.json: what is known of a run besides its scores, which are in `scores.csv`.

It is written last and in one piece: where it exists the run is finished.
"""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from nmt.evaluation.scores import Score
from nmt.utils.errors import InputError
from nmt.utils.files import write_json

FILE = "results.json"

SCORE_KEYS = ("score", "low", "high")
PACKAGES = (
    "nmt",
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


def describe_scores(scores: Sequence[Score], test: Mapping[str, Any]) -> dict[str, Any]:
    """`scores` of results.json: how to show the scores that a test set has, in the given order."""
    return {
        score.key: score.description()
        for score in scores
        if any(score_of(result, score.key) is not None for result in test.values())
    }


def score_of(result: Mapping[str, Any], key: str) -> dict[str, Any] | None:
    """A score of a test set: `score`, `low` and `high` (None where not known); None without it.

    Args:
        result: `test.<set>` of results.json.
        key: of a score, or `bleu_no_unk`.
    """
    name = {"bleu": "all", "bleu_no_unk": "no_unk"}.get(key)
    found = result["bleu"].get(name) if name else result.get(key)
    if found is None:
        found = (result.get("alignment") or {}).get(key)
    known = isinstance(found, dict) and found.get("score") is not None
    return found if known else None


def bucket_score(row: Mapping[str, Any], key: str) -> dict[str, Any] | None:
    """A score of a row of `by_length`, with its `sentences`; as `score_of`."""
    found: Any = row if key == "bleu" else row.get("no_unk" if key == "bleu_no_unk" else key)
    if not isinstance(found, Mapping) or found.get("score") is None:
        return None
    return {
        **{name: found.get(name) for name in SCORE_KEYS},
        "sentences": found.get("sentences", row["sentences"]),
    }


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


def score_rows(test: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of `scores.csv` from `test` of results.json."""
    rows = []
    for name, result in test.items():
        aligned = result.get("alignment") or {}
        keys = ["bleu", "bleu_no_unk", *result, *aligned]
        for key in dict.fromkeys(keys):
            subset = "no_unk" if key == "bleu_no_unk" else "all"
            head = {"set": name, "subset": subset, "score": key.removesuffix("_no_unk")}
            whole = score_of(result, key)
            if key in aligned and whole is not None:
                whole = {"sentences": aligned["sentences"], **whole}
            found = [] if whole is None else [{"sentences": result["pairs"], **whole}]
            found += [
                {"from": bucket["from"], "to": bucket["to"], **inside}
                for bucket in result["by_length"]
                if (inside := bucket_score(bucket, key))
            ]
            for each in found:
                interval = "" if each["low"] is None else "sentences"
                rows.append({**head, **each, "value": each["score"], "interval": interval} | head)
    return rows
