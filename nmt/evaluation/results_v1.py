"""Conversion of results and records of schema 1 to the present keys.

`results.read` and `records.read_*` apply it, so that all other code sees schema 2 only. The table of
keys is also in docs/results_schema.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nmt.config.keys import completed
from nmt.config.schema import Config
from nmt.evaluation.scores import REGISTERED

RECORD_KEYS = {"spread": "attention_entropy", "end_weight": "eos_weight"}
HISTORY_KEYS = {
    "nll": "train_nll_per_word",
    "attention_on_end": "eos_weight",
    "attention_on_last_word": "last_word_weight",
    "attention_spread": "attention_entropy",
}
_ALIGNMENT_KEYS = {
    "error_rate": "alignment_error_rate",
    "precision": "precision",
    "recall": "recall",
    "on_end_of_sentence": "eos_share",
}
_ALIGNMENT_SECTIONS = {"yardstick": "statistical_aligners"}
_NUMBERS = {  # of a set or of a bucket: a number in schema 1
    "nll_per_sentence": "nll_per_sentence",
    "nll_per_word": "nll_per_word",
    "perplexity": "perplexity",
    "length_ratio": "length_ratio",
    "brevity_penalty": "brevity_penalty",
    "spread": "attention_entropy",
}
_ROW = ("from", "to", "sentences", "score", "low", "high", "no_unk")
_UNKNOWN = ("data.source_shortlist", "data.target_shortlist")  # a text's own, not stored
_AS_THEY_ARE = ("pairs", "search", "bucket_by", "confidence", "bleu")


def renamed(row: Mapping[str, Any], keys: Mapping[str, str]) -> dict[str, Any]:
    """The same entries, those under an old key under its present one."""
    return {keys.get(key, key): value for key, value in row.items()}


def present_history(history: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Validations as they are written today; a checkpoint may hold older ones."""
    return [renamed(row, HISTORY_KEYS) for row in history]


def convert(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a results.json of schema 1 in schema 2.

    Figures that it lacks stay absent; keys of the configuration that it lacks get their defaults,
    which is what a run did before there was a choice.
    """
    tests = {name: _test_set(result) for name, result in content["test"].items()}
    found = {key for result in tests.values() for key in _scores_in(result)}
    return {
        **content,
        "schema": 2,
        "config": _configuration(content["config"]),
        "valid": renamed(content["valid"], HISTORY_KEYS),
        "history": present_history(content["history"]),
        "test": tests,
        "scores": {key: score.description() for key, score in REGISTERED.items() if key in found},
    }


def _configuration(stored: dict[str, Any]) -> dict[str, Any]:
    """The stored configuration with all present keys; an empty one, of an outside system, stays."""
    return completed(Config, stored, without=_UNKNOWN) if stored else {}


def _test_set(result: Mapping[str, Any]) -> dict[str, Any]:
    converted = {key: result[key] for key in _AS_THEY_ARE if key in result}
    for key in ("sacrebleu", "chrf"):
        text = result.get(key)
        if text is not None:
            converted[key] = _alone(text["score"]) | {"signature": text["signature"]}
    converted |= _numbers(result)
    aligned = result.get("alignment")
    buckets: dict[tuple[int, int | None], Mapping[str, Any]] = {}
    if aligned is not None:
        converted["alignment"] = {"sentences": aligned["sentences"]} | _alignment(aligned)
        beside = renamed(aligned, _ALIGNMENT_SECTIONS).get("statistical_aligners")
        if beside is not None:
            converted["alignment"]["statistical_aligners"] = {
                name: {"sentences": value["sentences"]} | _alignment(value)
                if isinstance(value, Mapping)
                else value
                for name, value in beside.items()
            }
        converted |= _eos_weight(aligned)
        buckets = {(row["from"], row["to"]): row for row in aligned.get("by_length", [])}
    converted["by_length"] = [
        {key: row[key] for key in _ROW if key in row}
        | _numbers(row)
        | _alignment(buckets.get((row["from"], row["to"]), {}))
        | _eos_weight(buckets.get((row["from"], row["to"]), {}))
        for row in result["by_length"]
    ]
    return converted


def _alone(value: float) -> dict[str, float | None]:
    return {"score": value, "low": None, "high": None}


def _numbers(row: Mapping[str, Any]) -> dict[str, Any]:
    return {new: _alone(row[old]) for old, new in _NUMBERS.items() if row.get(old) is not None}


def _alignment(row: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        new: _alone(row[old]) for old, new in _ALIGNMENT_KEYS.items() if row.get(old) is not None
    }
    if "alignment_error_rate" in found:
        found["alignment_error_rate"] |= {"low": row.get("low"), "high": row.get("high")}
    return found


def _eos_weight(row: Mapping[str, Any]) -> dict[str, Any]:
    weight = row.get("weight_on_end")
    return {} if weight is None else {"eos_weight": _alone(weight)}


def _scores_in(result: Mapping[str, Any]) -> set[str]:
    return {
        *result,
        *result.get("alignment", {}),
        *(key for row in result["by_length"] for key in row),
    }
