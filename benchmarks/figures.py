"""Draws docs/figures/europarl-by-length.png from the sentence statistics in docs/results.

python -m benchmarks.figures
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from benchmarks.records import DOCS, RECORDS
from nmt.evaluation.length_curve import Curve, length_curves
from nmt.evaluation.measured import Measured
from nmt.report.runs import FinishedRun
from nmt.report.style import save_figure, style

SENTENCES = RECORDS / "sentences" / "europarl.csv.xz"
TEST_SET = "by_length"
GROUPS = {
    "rnnsearch50": "RNNsearch-50, attention, trained on up to 50 words",
    "rnnsearch30": "RNNsearch-30, attention, up to 30 words",
    "phrase_based": "phrase-based system, up to 50 words",
    "rnnencdec50": "RNNencdec-50, one fixed vector, up to 50 words",
    "rnnencdec30": "RNNencdec-30, one fixed vector, up to 30 words",
}


def runs_of(rows: pd.DataFrame) -> dict[str, list[FinishedRun]]:
    """Returns the runs of each group, with the BLEU statistics of each sentence."""
    words = rows[["hypothesis_words", "reference_words"]]
    totals = np.maximum(words.iloc[:, :1].to_numpy() - np.arange(4), 0)
    statistics = np.hstack([rows.filter(like="bleu_correct_"), totals, words])
    rows = rows.assign(id=rows["sentence"], bleu_stats=statistics.tolist())
    runs: dict[str, list[FinishedRun]] = {}
    for (group, seed), run in rows.groupby(["group", "seed"], sort=False):
        records = {
            name: part[["id", "length", "bleu_stats"]].to_dict("records")
            for name, part in run.groupby("set", sort=False)
        }
        run_name = f"{group} {seed}"
        runs.setdefault(group, []).append(FinishedRun(run_name, {"seed": seed}, records=records))
    return runs


def europarl_curves() -> dict[str, Curve]:
    """Computes each group's curve of BLEU over source length, with its confidence band."""
    rows = pd.read_csv(SENTENCES)
    runs = runs_of(rows[(rows["set"] == TEST_SET) & rows["group"].isin(GROUPS)])
    measured = {
        group: [Measured(run.translations(TEST_SET), []) for run in runs[group]] for group in GROUPS
    }
    return length_curves(measured, ["bleu"])["bleu"]


@style()
def europarl_figure() -> Figure:
    figure = Figure(figsize=(8, 4.4), layout="constrained")
    axes = figure.subplots()
    for cap in (30, 50):
        axes.axvline(cap, color="0.6", linestyle="--", linewidth=1)
    for group, curve in europarl_curves().items():
        [line] = axes.plot(curve.lengths, curve.score, label=GROUPS[group])
        axes.fill_between(curve.lengths, *curve.band, alpha=0.2, color=line.get_color())
    axes.set(xlabel="words of the source sentence", ylabel="BLEU", ylim=0)
    axes.set_title("Europarl, English to French; bands: 95 %; dashed: longest training sentence")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False)
    return figure


def main() -> None:
    save_figure(europarl_figure(), DOCS / "figures" / "europarl-by-length", ["png"])


if __name__ == "__main__":
    main()
