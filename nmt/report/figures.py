"""Draws the figures of a run folder or a comparison: scores by sentence length, and alignments.

As in the paper's Figure 2, a line shows a score over sentence length. A band shows its confidence interval. A
point shows the score of a length bucket. A vertical line marks the length of the longest training sentence.
Captions say what was resampled, and give the settings of the search, which affect scores of long sentences.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

from nmt.evaluation.documents import axis_title
from nmt.evaluation.scores import NO_UNK
from nmt.report.captions import MANY, caption, shown, training_caps
from nmt.report.comparison import Comparison
from nmt.report.heatmap import choose_four, four_figure
from nmt.report.result_tables import heading
from nmt.report.style import COLOURS, GREY, Drawing, run_style, save_figure, style
from nmt.utils.files import write_text

BLEU_PARTS = ("bleu", NO_UNK.key, "brevity_penalty", "bleu_precisions")
TICKS = (1, 2, 5, 10, 20, 30, 50, 80, 120, 200, 400, 800)  # ticks of the x axis, in words
PANEL = 2.75  # width of a panel in inches; two panels are as wide as the text of an ICLR page
MAX_LABEL = 60  # maximum length of a label in characters
LETTER = 0.058  # mean width of a letter in the legend, in inches
LEGEND_LINE = 0.14  # height of a line of the legend, in inches
SMALL = (1.1, 0.85)  # width and height of a panel of `systems_figure`, in inches
ABREAST = 5  # panels per row of `systems_figure`
FAINT = "#CCCCCC"


def draw_figures(
    comparison: Comparison, folder: Path, formats: Sequence[str], *, captioned: bool = True
) -> list[Path]:
    """Draws the figures of a comparison, or of a single run, and returns their files.

    For every test set, it draws <set>-bleu-by-length (like the paper's Figure 2). For each run with attention, it
    draws <set>-<run>-four (like the paper's Figure 3); the figure of a single run has no <run> in its name. A
    comparison of several runs also has <set>-by-length-details, and with more than two systems
    <set>-bleu-by-system. The HTML page shows all scores by length, and the alignment of every stored sentence.

    Args:
        captioned: whether figures contain their captions. If not, `captions.txt` contains them.

    Raises:
        InputError: if a file of a run cannot be read.
    """
    captions = []
    written: list[Path] = []
    if not formats:
        return written
    several = len(comparison.runs) > 1
    for name in comparison.sets:
        present = list(dict.fromkeys(comparison.by_length(name)["key"]))
        main = [key for key in BLEU_PARTS if key in present]
        others = [key for key in comparison.about if key in present and key not in BLEU_PARTS]
        others = others if several else []
        for stem, keys, score in (
            (f"{name}-bleu-by-length", main, "BLEU"),
            (f"{name}-by-length-details", others, "each score"),
        ):
            if keys:
                text = caption(comparison, name, score)
                captions.append(f"{stem}: {text}\n")
                figure = lengths_figure(comparison, name, keys, text if captioned else "")
                written += save_figure(figure, folder / stem, formats)
        if len(comparison.groups) > 2 and len(ranked_groups(comparison, name)):
            figure = systems_figure(comparison, name)
            written += save_figure(figure, folder / f"{name}-bleu-by-system", formats)
        for run in comparison.present(name):
            rows = [row for row in run.alignments(name) if row["weights"] is not None]
            label = f"{name}-{run.label}" if several else name
            if rows:
                figure = four_figure(choose_four(rows, run.covered(name) or None))
                written += save_figure(figure, folder / f"{label}-four", formats)
    if not captioned:
        write_text(folder / "captions.txt", "".join(captions))
    return written


@style()
def lengths_figure(
    comparison: Comparison, test_set: str, keys: Sequence[str] = (), caption: str = ""
) -> Drawing:
    """Draws scores by length, one panel per score, and below them the number of sentences per bucket.

    Args:
        keys: keys of the scores; if empty, the keys in `BLEU_PARTS`.
        caption: text below the panels.
    """
    buckets = comparison.by_length(test_set)
    buckets = buckets.assign(place=_places(buckets))
    keys = keys or [key for key in BLEU_PARTS if key in set(buckets["key"])]
    columns = 3 if len(keys) == 3 else min(2, len(keys))  # no empty panel
    rows = -(-len(keys) // columns)
    width = PANEL * columns
    names = [shown(name, MAX_LABEL) for name in comparison.groups]
    room = 0.45 + LETTER * max(map(len, names))  # width of a legend entry in inches
    abreast = max(1, min(len(names), 4, int(width / room)))
    height = 2.1 * rows + 1 + LEGEND_LINE * -(-len(names) // abreast)
    figure = Drawing(figsize=(width, height), layout="constrained")
    ratios = [4] * rows + [1]
    grid = figure.subplots(rows + 1, columns, squeeze=False, sharex=True, height_ratios=ratios)
    panels = list(grid[:-1].flat)
    for axes, key in zip(panels, keys, strict=False):
        _draw_score(axes, comparison, test_set, key, buckets[buckets["key"] == key])
    for axes in panels[len(keys) :]:
        axes.remove()
    for axes in grid[-1]:
        _draw_counts(axes, buckets[buckets["key"] == keys[0]], comparison.unit(test_set))
    grid[-1, 0].set_ylabel("sentences")
    curves = comparison.curves.query("set == @test_set and key in @keys")
    first = np.nanmin([buckets["place"].min(), curves["words"].min()])
    grid[-1, 0].set_xlim(left=0.7 * first)
    handles = [panels[0].plot([], [], **run_style(place))[0] for place in range(len(names))]
    figure.legend(handles, names, loc="outside upper center", ncols=abreast)
    if caption:
        wrapped = "\n".join(textwrap.wrap(caption, int(18 * width)))
        figure.supxlabel(wrapped, fontsize=6.5, color=GREY)
    return figure


def ranked_groups(comparison: Comparison, test_set: str, key: str = "bleu") -> list[str]:
    """Returns the groups that have a curve, in descending order of the curve's median."""
    curves = comparison.curves.query("set == @test_set and key == @key and kind == 'score'")
    return list(curves.groupby("name")["value"].median().sort_values(ascending=False).index)


@style()
def systems_figure(comparison: Comparison, test_set: str, key: str = "bleu") -> Drawing:
    """Draws a small panel per system, with its curve and band; the curves of all other systems are grey."""
    names = ranked_groups(comparison, test_set, key)
    curves = comparison.curves.query("set == @test_set and key == @key and kind == 'score'")
    columns = min(ABREAST, len(names))
    rows = -(-len(names) // columns)
    size = SMALL[0] * columns, SMALL[1] * rows + 0.4
    figure = Drawing(figsize=size, layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axes, name in zip(grid.flat, names, strict=False):
        for other, curve in curves.groupby("name"):
            if other != name:
                axes.plot(curve["words"], curve["value"], color=FAINT, lw=0.4)
        own = curves[curves["name"] == name]
        axes.fill_between(own["words"], own["low"], own["high"], color=COLOURS[0], alpha=0.25, lw=0)
        axes.plot(own["words"], own["value"], color=COLOURS[0], lw=1.2)
        axes.set_title(shown(name, 20), fontsize=6, pad=2)
        _scale_words(axes, TICKS[1::3])
        axes.tick_params(labelsize=5, length=2)
    for axes in grid.flat[len(names) :]:
        axes.remove()
    for axes in grid[-2, len(names) - columns * (rows - 1) :] if rows > 1 else []:
        axes.tick_params(labelbottom=True)
    unit = comparison.unit(test_set)
    figure.supxlabel(axis_title(unit), fontsize=7)
    figure.supylabel(heading(comparison.about[key]), fontsize=7)
    return figure


def curves_figure(comparison: Comparison, test_set: str, keys: Sequence[str] = ()) -> Drawing:
    """Draws all systems in the same panels; if there are more than `MANY`, draws one panel per system."""
    if len(comparison.groups) > MANY and ranked_groups(comparison, test_set):
        return systems_figure(comparison, test_set)
    return lengths_figure(comparison, test_set, keys)


def _places(buckets: pd.DataFrame) -> pd.Series:
    """Returns the midpoint of each bucket; a bucket without an upper limit ends at 1.2 times its start."""
    first = buckets["from"].astype(float)
    last = buckets["to"].astype(float).fillna(first * 1.2)
    return (first + last) / 2


def _draw_score(
    axes: Axes, comparison: Comparison, test_set: str, key: str, buckets: pd.DataFrame
) -> None:
    """Draws the curves and buckets of all groups, and a vertical line at each of `training_caps`."""
    curves = comparison.curves.query("set == @test_set and key == @key")
    for place, (name, runs) in enumerate(comparison.groups.items()):
        look = run_style(place)
        own = buckets[buckets["run"].isin([run.label for run in runs])]
        means = own.groupby("place")["value"].mean()
        axes.plot(means.index, means, **look | {"linestyle": "", "markersize": 3})
        curve = curves[(curves["name"] == name) & (curves["kind"] == "score")]
        axes.plot(curve["words"], curve["value"], **look | {"marker": ""})
        ends = curve["words"], curve["low"], curve["high"]
        axes.fill_between(*ends, color=look["color"], alpha=0.2, lw=0)
        constant = curves[(curves["name"] == name) & (curves["kind"] == "constant")]
        axes.plot(constant["words"], constant["value"], color=look["color"], ls="--", lw=0.8)
    low, high = axes.get_ylim()
    if comparison.about[key]["unit"] != "ratio":  # the axis of a ratio need not start at 0
        bottom = min(0, low)
        axes.set_ylim(bottom, high + 0.05 * (high - bottom))
    axes.set_title(heading(comparison.about[key]))
    _scale_words(axes)
    for cap in training_caps(comparison):
        axes.axvline(cap, color=GREY, lw=0.7, linestyle=(0, (2, 2)), zorder=0)


def _scale_words(axes: Axes, ticks: Sequence[int] = TICKS) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_locator(NullLocator())


def _draw_counts(axes: Axes, buckets: pd.DataFrame, unit: str) -> None:
    """Draws the number of sentences in each bucket as a bar; if it differs between runs, the label is a range."""
    counts = buckets.groupby("place").agg(
        least=("sentences", "min"), most=("sentences", "max"), first=("from", "min")
    )
    widths = 2 * (counts.index - counts["first"].astype(float)) + 1
    bars = axes.bar(counts.index, counts["most"].astype(int), color="#BBBBBB", width=0.9 * widths)
    names = [
        f"{row.most:,}" if row.most == row.least else f"{row.least:,}–{row.most:,}"
        for row in counts.itertuples()
    ]
    axes.bar_label(bars, names, fontsize=5, padding=1, color=GREY, rotation=30)
    axes.set_ylim(0, axes.get_ylim()[1] * 1.6)  # room for the labels of the bars
    axes.set_xlabel(axis_title(unit))
    axes.tick_params(axis="y", labelsize=6)
