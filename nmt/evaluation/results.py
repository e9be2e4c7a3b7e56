"""results.json: everything a run measured, in one documented and versioned file.

It is written last and in one piece: where it exists the job is finished. The keys are explained in
docs/results_schema.md.
"""

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from nmt.evaluation import results_v1
from nmt.evaluation.results_schema import check_results
from nmt.evaluation.scores import Score
from nmt.utils import untrusted
from nmt.utils.errors import InputError
from nmt.utils.files import write_json

SCHEMA = 2
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


def assemble(
    scores: Sequence[Score],
    test: Mapping[str, Any],
    valid: Mapping[str, Any],
    history: list[dict[str, Any]],
    **described: Any,
) -> dict[str, Any]:
    """The content of results.json, with the schema's number and the versions that made it.

    Args:
        scores: that were chosen; those that `test` has are described.
        test: results of `summary.summarise` by name of the test set.
        valid, history: validations, under present or older keys.
        described: all else that docs/results_schema.md lists, by key.
    """
    return as_json(
        {
            "schema": SCHEMA,
            **described,
            "versions": versions(),
            "valid": results_v1.renamed(valid, results_v1.HISTORY_KEYS),
            "history": results_v1.present_history(history),
            "test": test,
            "scores": score_descriptions(scores, test),
        }
    )


def score_descriptions(scores: Sequence[Score], test: Mapping[str, Any]) -> dict[str, Any]:
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
    """The same content in JSON's types; a number that is not finite, or too large to be read again, is null.

    >>> as_json({"nll": np.float32(0.5), "perplexity": [float("inf"), 1e301], "edges": (10, 20)})
    {'nll': 0.5, 'perplexity': [None, None], 'edges': [10, 20]}
    """
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return as_json(value.tolist())
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float) and not abs(value) <= untrusted.LARGEST:
        return None
    return value


def write(folder: str | Path, content: Mapping[str, Any]) -> Path:
    """Writes results.json into a run folder atomically, after all other files.

    Raises:
        InputError: if a key of the schema is missing or of another type.
    """
    path = Path(folder) / FILE
    check(content, str(path))
    write_json(path, content)
    return path


def read(path: str | Path) -> dict[str, Any]:
    """Reads the results.json of a run folder (or the file itself); schema 1 is given as schema 2.

    Raises:
        InputError: if it is missing, damaged, of another schema, or holds what the schema does not allow;
            naming file and key.
    """
    path = Path(path)
    if path.is_dir():
        if not (path / FILE).is_file():
            raise InputError(
                f"{path}: no {FILE}; the run is not finished, or this is no run folder"
            )
        path = path / FILE
    try:
        text = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    content = untrusted.read_json(text, str(path))
    if isinstance(content, dict) and content.get("schema") == 1:
        try:
            content = results_v1.convert(content)
        except Exception as error:  # whatever its values are taken for
            raise InputError(f"{path}: damaged: its keys are not those of schema 1") from error
    check(content, str(path))
    return content


def check(content: Any, where: str) -> None:
    """Checks what results.json holds against the schema.

    Args:
        content: what results.json holds.
        where: the file, for the message.

    Raises:
        InputError: naming file and key.
    """
    if not isinstance(content, dict) or "schema" not in content:
        raise InputError(f"{where}: no key 'schema'; this is not a results.json of nmt")
    found = content["schema"]
    if found != SCHEMA or isinstance(found, bool):
        age = "newer" if isinstance(found, int) and found > SCHEMA else "unknown"
        raise InputError(
            f"{where}: schema={found!r:.40} is {age}; this version of nmt reads 1 to {SCHEMA}"
        )
    check_results(content, where)


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
