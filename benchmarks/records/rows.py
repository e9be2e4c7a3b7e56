"""The rows of a text's tables: the groups of its study, and what is kept of their runs."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.config import EvaluationConfig
from nmt.config.keys import is_within
from nmt.config.schema import REVERSE_CHECKPOINT, RUNTIME_KEYS
from nmt.evaluation.link_scores import links_beside
from nmt.evaluation.results import bucket_score, score_of
from nmt.evaluation.scores import REGISTERED
from nmt.evaluation.summary import Measured, by_unknown_words
from nmt.report.finding import read_run
from nmt.report.runs import FinishedRun
from nmt.studies.verdicts import UNDECIDED
from nmt.utils.commands import override_key

PLACES = re.compile(r"data\.(train|valid|in_domain|test\.[^.]+)\.(source|target|alignment|links)\b")
MODELS = ("checkpoint", REVERSE_CHECKPOINT)
VERSIONS = ("python", "nmt", "torch", "sacrebleu")


def record(text: str, study: Mapping[str, Any], lacking: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of a text: claims that were decided, the hash they had before, and rows with their runs.

    Args:
        study: content of its study.json.
        lacking: values for keys that runs of an earlier version do not have.
    """
    rows = [row_entry(study, group, lacking) for group in study["titles"]]
    return {
        "schema": 1,
        "text": text,
        "title": study["title"],
        "registrations": study["registrations"],
        "claims": [claim_entry(claim) for claim in study["claims"] if is_decided(claim)],
        "rows": [row for row in rows if row is not None],
    }


def is_decided(claim: Mapping[str, Any]) -> bool:
    """Whether its runs say something of a claim; of one whose runs are missing they do not."""
    return claim["value"] is not None or claim["verdict"] != UNDECIDED


def claim_entry(claim: Mapping[str, Any]) -> dict[str, Any]:
    """A claim of study.json with its verdict."""
    said = claim["claim"]
    kept = (
        "verdict",
        "value",
        "low",
        "high",
        "confidence",
        "p",
        "sentences",
        "seeds",
        "of",
        "reason",
    )
    about = {key: said[key] for key in ("claim", "source", "runs", "statistic", "set", "range")}
    measured = {key: _short(claim[key]) for key in kept}
    return {"name": claim["name"], **about, "score": claim["score"], "rule": claim["rule"], **measured,
            "command": claim["command"]}  # fmt: skip


def row_entry(
    study: Mapping[str, Any], group: str, lacking: Mapping[str, Any]
) -> dict[str, Any] | None:
    """A group's row: what it is, its runs, and the mean and spread over them; None where no run has finished.

    Of a group with a sweep the runs of the point that was chosen.
    """
    entries = [entry for entry in study["runs"] if entry["group"] == group and entry["final"]]
    there = [entry for entry in entries if entry["folder"]]
    if not there:
        return None
    finished = [read_run(entry["folder"]) for entry in there]
    first = finished[0]
    runs = [run_entry(run, lacking) for run in finished]
    return {
        "group": group,
        "name": study["titles"][group],
        "languages": list(first.config["data"]["languages"]),
        "max_length": first.results["max_length"],
        "parameters": first.results["parameters"],
        "command": there[0]["command"],
        "runs": runs,
        "over_seeds": over_seeds(runs),
    }


def run_entry(run: FinishedRun, lacking: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of a run: how it was made, and what it scored; no text, no folder."""
    results = run.results
    train, valid = results.get("train") or {}, results.get("valid") or {}
    told = results.get("sources") or train
    hours = None if "sources" in results else train.get("hours")
    return {
        "seed": run.seed,
        "typed": [word for word in run.overrides if not is_place(word)],
        "code": results.get("code"),
        **{key: results.get(key) or lacking.get(key) for key in ("commit", "processor")},
        "versions": {key: found for key in VERSIONS if (found := results["versions"].get(key))},
        "device": told.get("device"),
        "precision": told.get("precision"),
        "updates": train.get("updates"),
        "epochs": _short(train.get("epochs")),
        "minutes": None if hours is None else _short(60 * hours),
        "train_nll_per_sentence": _short(train.get("nll_per_sentence")),
        "valid_nll_per_sentence": _short(valid.get("nll_per_sentence")),
        "test": {
            name: {**set_entry(result), "by_unknown_words": unknown_words(run, name)}
            for name, result in results["test"].items()
        },
    }


def unknown_words(run: FinishedRun, name: str) -> list[dict[str, Any]]:
    """BLEU by the unknown words of a pair; from the translations where results.json has it not."""
    found = run.results["test"][name].get("by_unknown_words")
    if found is None:
        measured = Measured(run.translations(name), [REGISTERED["bleu"]], EvaluationConfig())
        found = by_unknown_words(measured)
    return [{"from": row["from"], "to": row["to"], **_figure(row)} for row in found]


def set_entry(result: Mapping[str, Any]) -> dict[str, Any]:
    """The scores of a test set, by length too, and how they fall with it."""
    aligned = result.get("alignment") or {}
    keys = [*aligned, *result, "bleu", "bleu_no_unk"]
    scores = {key: _figure(found) for key in keys if (found := score_of(result, key))}
    rows = []
    for row in result["by_length"]:
        found = {
            key: bucket_score(row, key) for key in (*row, "bleu", "bleu_no_unk") if key != "no_unk"
        }
        place = {key: row[key] for key in ("from", "to", "sentences")}
        if row.get("mean_length"):
            place["mean_length"] = _short(row["mean_length"])
        rows.append(place | {key: _figure(value) for key, value in found.items() if value})
    falls = result.get("degradation") or {}
    fall = falls.get("bleu")
    return {
        "pairs": result["pairs"],
        "bucket_by": result.get("bucket_by", "source"),
        "scores": scores,
        "aligners": {
            links.name: {
                key: _figure(value) for key, value in links.scores.items() if _is_figure(value)
            }
            for links in links_beside(result)
        },
        "by_length": rows,
        "degradation": fall
        and {part: _short(fall[part]) for part in ("all", "to_cap", "beyond_cap")},
        "fits": {
            key: [[_short(value) for value in point] for point in line]
            for key in ("bleu", "bleu_no_unk")
            if (line := (falls.get(key) or {}).get("line"))
        },
    }


def over_seeds(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Mean and sample standard deviation of each score that all runs have, by test set."""
    if len(runs) < 2:
        return {}
    found: dict[str, Any] = {}
    for name in runs[0]["test"]:
        tests = [run["test"][name] for run in runs if name in run["test"]]
        keys = [key for key in tests[0]["scores"] if all(key in test["scores"] for test in tests)]
        if len(tests) == len(runs):
            found[name] = {
                key: _spread([test["scores"][key]["score"] for test in tests]) for key in keys
            }
    return found


def is_place(word: str) -> bool:
    """Whether an override says where or how loudly a run is made, not what it is.

    >>> [is_place(word) for word in ("data.root=/a", "+data.test.a.source=b", "hydra.run.dir=c", "seed=1")]
    [True, True, True, False]
    """
    name = override_key(word)
    runtime = is_within(name, RUNTIME_KEYS) and name != "trainer.threads"
    return runtime or name in MODELS or name.startswith("hydra") or bool(PLACES.match(name))


def write_record(path: Path, content: Mapping[str, Any]) -> None:
    """Writes a record, a run a line, so that two of them can be compared line by line."""
    text = json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False)
    inner = re.compile(r"\{[^{}\[\]]*\}|\[[^{}\[\]]*\]")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        inner.sub(lambda found: " ".join(found[0].split()), text) + "\n", encoding="utf-8"
    )


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {"mean": _short(statistics.fmean(values)), "sd": _short(statistics.stdev(values))}


def _is_figure(value: Any) -> bool:
    return isinstance(value, Mapping) and value.get("score") is not None


def _figure(found: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("score", "low", "high", "sentences")
    return {key: _short(found[key]) for key in kept if found.get(key) is not None}


def _short(value: Any) -> Any:
    """A value with more digits than any table shows, or one that holds such values.

    >>> _short({"low": 0.06546123456789})
    {'low': 0.065461235}
    """
    if isinstance(value, Mapping):
        return {key: _short(inner) for key, inner in value.items()}
    return float(f"{value:.8g}") if isinstance(value, float) else value
