"""Run folders as pandas frames."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from nmt.config import CompareConfig
from nmt.config.validation import section
from nmt.evaluation.buckets import bucket_name
from nmt.evaluation.results import bucket_score, score_of
from nmt.evaluation.scores import choose_scores
from nmt.evaluation.table import read_scores
from nmt.report.comparison import SetComparison, compare_sets
from nmt.report.disambiguation import disambiguate_test_sets
from nmt.report.finding import find_runs, read_run
from nmt.report.runs import known_scores
from nmt.utils.arguments import PATH, checked, listed

COLUMNS = ["run", "set", "score", "bucket", "from", "to", "value", "low", "high", "sentences"]
"""Of `read_results` and `compare_runs`."""
OF_PAIRS = [
    *("set", "score", "a", "b", "bucket", "from", "to", "sentences", "score_a", "score_b"),
    *("delta", "low", "high", "p", "p_randomised", "p_corrected", "p_randomised_corrected"),
]
"""Of `differences`."""


def scores(runs: Sequence[str | Path]) -> pd.DataFrame:
    """The scores of runs, a row each: `scores.csv` of every run, with the column `run` in front.

    Args:
        runs: run folders, sweep folders, or globs of them.

    Raises:
        InputError: where no finished run is found, or a table cannot be read.
    """
    found = find_runs(listed(runs, "runs", PATH)).runs
    return read_scores({run.label: run.folder for run in found if run.folder is not None})


def read_results(run: str | Path) -> pd.DataFrame:
    """The scores of a run, a row each: on whole test sets, and in their buckets of length.

    Args:
        run: its folder.

    Returns:
        A frame with the columns `run` (its name), `set`, `score` (`bleu`, `bleu_no_unk`, and the
        other keys of results.json), `bucket` (`11-20`, `61+`, or `all`: the whole set), `from` and
        `to` (its words; missing for the whole set, and `to` for the open bucket), `value`, `low`
        and `high` (its interval), `sentences`.

    Raises:
        InputError: where the run has not finished, or its results cannot be read.
        TypeError: for what is no path.
    """
    found = read_run(checked(run, "run", PATH))
    keys = ["bleu", "bleu_no_unk", *(key for key in known_scores([found]) if key != "bleu")]
    return _frame(
        {"run": found.label, "set": name, **row}
        for name in found.sets
        for row in _rows(found.results["test"][name], keys)
    )


def compare_runs(
    runs: Sequence[str | Path], *, resamples: int = 1000, scores: Sequence[str] | None = None
) -> pd.DataFrame:
    """The scores of several runs in one frame; BLEU without unknown words on shared sentences.

    Args:
        runs: run folders, sweep folders, or globs of them.
        resamples: bootstrap resamples for the intervals of shared sentences.
        scores: to compute where a run lacks them, as `scores` of `nmt.compare`.

    Returns:
        A frame as of `read_results`. Runs of one name are told apart by what differs; test sets
        of one name with different text are, too.

    Raises:
        InputError: where nothing that can be read is found, or a value is out of bounds.
        TypeError: for a single run or score in place of a list.
    """
    return _frame(
        {"run": run.label, "set": compared.name, **row}
        for compared in _compared(runs, resamples, [] if scores is None else scores)
        for run in compared.runs
        for row in _rows(
            compared.results[run.label],
            ["bleu", "bleu_no_unk", *(key for key in compared.known if key != "bleu")],
        )
    )


def differences(
    runs: Sequence[str | Path], *, resamples: int = 1000, scores: Sequence[str] | None = None
) -> pd.DataFrame:
    """The difference of every pair of runs by every score, tested.

    Of more than 25 runs those of the highest BLEU on the set; a warning says so.

    Args:
        runs, resamples, scores: as of `compare_runs`; without `scores` all that the runs have.

    Returns:
        A frame with the columns `set`, `score`, `a`, `b`, `bucket`, `sentences`, `delta` (a less
        b) with its interval `low`, `high`, and the p-values that `nmt.compare` shows.

    Raises:
        InputError: as `compare_runs`.
    """
    sets = _compared(runs, resamples, scores)
    for compared in sets:
        if compared.pairs_note:
            warnings.warn(f"{compared.name}: {compared.pairs_note}", stacklevel=2)
    rows = (
        {"set": compared.name, "score": key, **row}
        for compared in sets
        for key, tested in compared.significance.items()
        for row in tested
    )
    return pd.DataFrame(rows, columns=OF_PAIRS)


def _compared(
    runs: Sequence[str | Path], resamples: int, scores: Sequence[str] | None
) -> list[SetComparison]:
    wanted = None if scores is None else listed(scores, "scores", str)
    given = section(CompareConfig, runs=[], resamples=resamples, scores=wanted)
    found = disambiguate_test_sets(find_runs(listed(runs, "runs", PATH)).runs)
    return compare_sets(
        found,
        given.resamples,
        None if given.scores is None else choose_scores(given.scores, "scores"),
    )


def _rows(result: Mapping[str, Any], keys: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The scores of a test set and of its buckets: `test.<set>` of results.json as rows."""
    for key in keys:
        overall = score_of(result, key)
        if overall is not None:
            sentences = overall.get("sentences", result.get("pairs"))
            yield _row(key, overall, {"sentences": sentences})
        for bucket in result.get("by_length") or []:
            score = bucket_score(bucket, key)
            if score is not None:
                yield _row(key, score, {**score, "from": bucket["from"], "to": bucket["to"]})


def _row(key: str, score: Mapping[str, Any], where: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "score": key,
        "bucket": bucket_name(where) if "from" in where else "all",
        **{name: where.get(name) for name in ("from", "to", "sentences")},
        "value": score["score"],
        "low": score.get("low"),
        "high": score.get("high"),
    }


def _frame(rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=COLUMNS)
    return frame.astype(dict.fromkeys(("from", "to", "sentences"), "Int64"))
