"""Keys and values that loggers write for a run, and that the W&B workspace shows."""

from __future__ import annotations

from typing import Any

import pandas as pd

from nmt.config.changes import flatten
from nmt.evaluation.scores import DEFAULT, NO_UNK, choose_scores
from nmt.report.comparison import Comparison
from nmt.report.retention import RETAINED

LENGTH = "length/words"
UPDATE = "trainer/global_step"
SCORES = "scores"
PAGE = "page"
FIGURES = "figures"
HEATMAPS = "valid/alignment"
CURVES = ("bleu", NO_UNK.key, "alignment_error_rate")  # scores logged as curves over length
SUMMARY = (*CURVES, "sacrebleu", "chrf", "nll_per_word", "length_ratio", "eos_weight")
ABOUT = {  # other values of the summary: name in the summary -> key in results.json
    **{f"best/{name}": f"valid.{name}" for name in ("update", "bleu", "nll_per_word")},
    **{f"train/{n}": f"train.{n}" for n in ("hours", "target_words_per_second", "peak_memory")},
    **{name: name for name in ("parameters", "max_length", "model", "scoring")},
}
OPEN_BUCKET = 10  # assumed width, in words, of a bucket without an upper limit


def length_curves(comparison: Comparison) -> list[dict[str, float]]:
    """Returns one row per bucket: scores as `length/<set>/<score>`, and the bucket's maximum length as `LENGTH`."""
    frame = comparison.scores
    frame = frame[(frame["bucket"] != "all") & frame["key"].isin(CURVES)]
    metrics = "length/" + frame["set"] + "/" + frame["key"]
    words = frame["to"].fillna(frame["from"] + OPEN_BUCKET - 1).astype(int)
    table = frame.set_index([words, metrics])["value"].unstack()
    return [{LENGTH: words, **row.dropna()} for words, row in table.sort_index().iterrows()]


def summary_of(comparison: Comparison) -> dict[str, Any]:
    """Returns the values of a run's summary in W&B.

    `test/<set>/<score>` is a score on a whole test set, for the scores in SUMMARY and those that
    `evaluation.scores` lists besides `default`. `test/<set>/bleu_retention` is the retention of BLEU, with its
    interval. The other values are those in `ABOUT`.
    """
    (run,) = comparison.runs
    named = [name for name in run.flat.get("evaluation.scores", ()) if name != DEFAULT]
    keys = {*SUMMARY, *(score.key for score in choose_scores(named))}
    whole = comparison.scores.query("bucket == 'all'")
    whole = whole[whole["key"].isin(keys)]
    values: dict[str, Any] = {f"test/{r.set}/{r.key}": r.value for r in whole.itertuples()}
    kept = comparison.retention.query(f"key == 'bleu' and statistic == {RETAINED!r}")
    for row in kept.itertuples():
        name = f"test/{row.set}/bleu_retention"
        values |= {name: row.value, f"{name}_low": row.low, f"{name}_high": row.high}
    about = flatten(run.results)
    values |= {key: about.get(name) for key, name in ABOUT.items()}
    return {key: value for key, value in values.items() if not pd.isna(value)}
