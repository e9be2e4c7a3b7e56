"""Run folders as pandas frames, and their comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from nmt.evaluation.table import read_scores
from nmt.report import comparison
from nmt.report.runs import find_runs
from nmt.utils.arguments import PATH, listed


def scores(runs: Sequence[str | Path]) -> pd.DataFrame:
    """The scores of runs, a row each: `scores.csv` of every run, with the column `run` in front.

    Args:
        runs: run folders, sweep folders, or globs of them.

    Raises:
        InputError: where no finished run is found, or a table cannot be read.
    """
    found, _ = find_runs(listed(runs, "runs", PATH))
    return read_scores({run.label: run.folder for run in found if run.folder is not None})


def compare(
    runs: Sequence[str | Path],
    systems: Mapping[str, Mapping[str, str]] | None = None,
    *,
    scores: Sequence[str] | None = None,
    resamples: int = 1000,
) -> comparison.Comparison:
    """Compares runs with each other and with the output of outside systems, as `nmt.compare` does.

    Args:
        runs: run folders, sweep folders, or globs of them.
        systems: by the name of a system, by test set, the file of its translations.
        scores: names of the scores that are tested, and computed where a run lacks them; None: all
            that the runs have.
        resamples: bootstrap resamples behind intervals and tests; 0: no tests.

    Returns:
        An object with the frames `scores` (as `nmt.scores`) and `differences` (a row a pair, score
        and bucket with `delta`, its interval and p-values).

    Raises:
        InputError: where nothing that can be read is found.
        TypeError: for a single run or score in place of a list.
    """
    wanted = None if scores is None else listed(scores, "scores", str)
    found = listed(runs, "runs", PATH)
    return comparison.compare(found, systems, scores=wanted, resamples=resamples)
