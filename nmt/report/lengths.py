"""Figures of scores over sentence length, after the paper's Figure 2.

A line is a curve over length with its band, a point a bucket of lengths, a vertical line the longest
training sentence. The captions say what a band is an interval of, and name the settings of the search,
since they change the scores of long sentences.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

from nmt.evaluation.curves import FEWEST, WIDTH
from nmt.evaluation.scores import NO_UNK
from nmt.report.comparison import LEVEL, Comparison
from nmt.report.curves import resampled_words
from nmt.report.style import GREY, run_style, shown
from nmt.report.tables import heading

BLEU_PARTS = ("bleu", NO_UNK.key, "brevity_penalty", "bleu_precisions")
TICKS = (1, 2, 5, 10, 20, 30, 50, 80, 120, 200, 400, 800)  # words
MAX_LABEL = 60  # letters of a label that are shown
LETTER = 0.058  # inches: mean width of a letter in the legend
LEGEND_LINE = 0.14  # inches


def lengths_figure(comparison: Comparison, test_set: str, width: float | None = None) -> Figure:
    """BLEU by length beside its two factors, brevity penalty and precisions; counts underneath.

    Args:
        width: of the figure in inches, without its caption; None: what its panels take, with it.
    """
    keys = [key for key in BLEU_PARTS if key in set(comparison.by_length(test_set)["key"])]
    columns = 2 if len(keys) == 4 else len(keys)
    figure, panels = _panels(comparison, len(keys), columns, width, counts=True)
    _draw_scores(panels, comparison, test_set, keys)
    for axes in panels[len(keys) :]:
        _draw_counts(axes, comparison, test_set)
    panels[0].set_ylabel("BLEU")
    panels[len(keys)].set_ylabel("sentences")
    _write_caption(figure, "" if width else caption(comparison, test_set))
    return figure


def details_figure(
    comparison: Comparison, test_set: str, width: float | None = None
) -> Figure | None:
    """Small curves over length of the other scores; None without any. Arguments as above."""
    present = set(comparison.by_length(test_set)["key"])
    keys = [key for key in comparison.about if key in present and key not in BLEU_PARTS]
    if not keys:
        return None
    figure, panels = _panels(comparison, len(keys), min(3, len(keys)), width)
    _draw_scores(panels, comparison, test_set, keys)
    for axes in panels[len(keys) :]:
        axes.remove()
    _write_caption(figure, "" if width else caption(comparison, test_set, "each score"))
    return figure


def differences_figure(
    comparison: Comparison, test_set: str, width: float | None = None
) -> Figure | None:
    """BLEU of each group less that of the control, and divided by it; None without a second group.

    The control is the first other system, or the first group of runs.
    """
    control = control_of(comparison, test_set)
    curves = comparison.curves.query("set == @test_set and key == 'bleu' and other == @control")
    if not control or curves.empty:
        return None
    names = list(dict.fromkeys(curves["name"]))
    figure, panels = _panels(comparison, 2, 2, width, names=names)
    words = {"difference": ("less", 0), "ratio": ("divided by", 1)}
    for axes, (kind, (word, alike)) in zip(panels, words.items(), strict=False):
        for name, curve in curves[curves["kind"] == kind].groupby("name", sort=False):
            _draw_curve(axes, curve, list(comparison.groups).index(name))
        axes.axhline(alike, color=GREY, lw=0.7)
        _finish(axes, comparison, shown(f"BLEU {word} that of {control}", 50))
    _write_caption(figure, "" if width else differences_caption(comparison, test_set, control))
    return figure


def caption(comparison: Comparison, test_set: str, score: str = "BLEU") -> str:
    """What the figure of a score by length shows, for readers who have not seen one."""
    totals = comparison.whole(test_set).query("key == 'bleu'")
    counts = " or ".join(f"{count:,}" for count in dict.fromkeys(totals["sentences"]))
    curves = comparison.curves[comparison.curves["set"] == test_set]
    text = f"How {score} depends on sentence length on {shown(test_set, 60)} ({counts} pairs). "
    if len(curves):
        text += (
            f"Line: {score} of sentences of about that length (Gaussian kernel over log length with "
            f"standard deviation {WIDTH}; at least {FEWEST} effective sentences). "
        )
        if drawn := resampled_words(curves[curves["kind"] == "score"]):
            text += f"Band: {LEVEL} bootstrap interval over {drawn}, at each length. "
        if "constant" in set(curves["kind"]):
            text += "Dashed: a system with the same error rate per word at every length. "
    else:
        text += f"No curve: fewer than {FEWEST} sentences of similar length. "
    searches = dict.fromkeys(run.search for run in comparison.present(test_set))
    known = " or ".join(filter(None, searches))
    text += f"Points: buckets of lengths. {_cap_words(comparison)}"
    return text + (f"Search: {known}." if known else "")


def differences_caption(comparison: Comparison, test_set: str, control: str) -> str:
    """What the figure of differences from a control shows."""
    return (
        f"How much better or worse than {control} each system is at each length on "
        f"{shown(test_set, 60)}: what makes long sentences hard for both cancels. Band: "
        f"{LEVEL} bootstrap interval that holds at all lengths together; where it leaves "
        f"the line of {control}, at 0 and at 1, the systems differ. {_cap_words(comparison)}"
    ).strip()


def _write_caption(figure: Figure, text: str) -> None:
    wrapped = "\n".join(textwrap.wrap(text, int(18 * figure.get_figwidth())))
    if text:
        figure.supxlabel(wrapped, fontsize=6.5, color=GREY)


def control_of(comparison: Comparison, test_set: str) -> str:
    """The group that others are compared with; empty for one alone."""
    pairs = comparison.curves.query("set == @test_set and kind == 'difference'")
    return str(pairs["other"].iloc[0]) if len(pairs) else ""


def training_caps(comparison: Comparison) -> list[int]:
    """Lengths of the longest training sentences of the runs."""
    caps = {run.results.get("max_length") for run in comparison.runs if not run.external}
    return sorted(cap for cap in caps if isinstance(cap, int) and cap > 0)


def _with_places(buckets: pd.DataFrame) -> pd.DataFrame:
    """Buckets with the `place` of their point: the middle of the lengths; of the open one, further."""
    first = buckets["from"].astype(float)
    last = buckets["to"].astype(float).fillna(first * 1.2)
    return buckets.assign(place=(first + last) / 2)


def _cap_words(comparison: Comparison) -> str:
    return "Vertical line: the longest training sentence. " if training_caps(comparison) else ""


def _panels(
    comparison: Comparison,
    count: int,
    columns: int,
    width: float | None,
    counts: bool = False,
    names: Sequence[str] = (),
) -> tuple[Figure, list[Axes]]:
    """A figure with some panels, a row of panels for counts, and a legend of the groups."""
    rows = -(-count // columns)
    width = width or 2.8 * columns
    names = list(names or comparison.groups)
    room = 0.45 + LETTER * min(MAX_LABEL, max(map(len, names)))  # a line's sample and its name
    abreast = max(1, min(len(names), 4, int(width / room)))
    height = 2.1 * rows + 0.7 * counts + LEGEND_LINE * -(-len(names) // abreast) + 0.3
    figure = Figure(figsize=(width, height), layout="constrained")
    ratios = [4] * rows + [1] * counts
    grid = figure.subplots(len(ratios), columns, squeeze=False, sharex=True, height_ratios=ratios)
    handles = []
    for place in map(list(comparison.groups).index, names):
        handles += grid[0, 0].plot([], [], **run_style(place))
    labels = [shown(name, MAX_LABEL) for name in names]
    figure.legend(handles, labels, loc="outside upper center", ncols=abreast)
    for axes in grid[-1]:
        axes.set_xlabel("words of the source sentence")
    return figure, list(grid.flat)


def _draw_scores(
    panels: Sequence[Axes], comparison: Comparison, test_set: str, keys: Sequence[str]
) -> None:
    """The curves and buckets of all groups, a panel a score."""
    buckets = _with_places(comparison.by_length(test_set))
    curves = comparison.curves[comparison.curves["set"] == test_set]
    for axes, key in zip(panels, keys, strict=False):
        of_key, points = curves[curves["key"] == key], buckets[buckets["key"] == key]
        for place, (name, runs) in enumerate(comparison.groups.items()):
            look = run_style(place)
            own = points[points["run"].isin([run.label for run in runs])]
            means = own.groupby("place")["value"].mean()
            axes.plot(means.index, means, **look | {"linestyle": "", "markersize": 3})
            curve = of_key[of_key["name"] == name]
            _draw_curve(axes, curve[curve["kind"] == "score"], place)
            constant = curve[curve["kind"] == "constant"]
            axes.plot(constant["words"], constant["value"], color=look["color"], ls="--", lw=0.8)
        low, high = axes.get_ylim()
        if comparison.about[key]["unit"] != "ratio":  # a ratio is read against 1
            bottom = min(0, low)
            axes.set_ylim(bottom, high + 0.05 * (high - bottom))
        _finish(axes, comparison, heading(comparison.about[key]))


def _draw_curve(axes: Axes, curve: pd.DataFrame, place: int) -> None:
    look = run_style(place) | {"marker": ""}
    axes.plot(curve["words"], curve["value"], **look)
    axes.fill_between(
        curve["words"], curve["low"], curve["high"], color=look["color"], alpha=0.2, lw=0
    )


def _finish(axes: Axes, comparison: Comparison, title: str) -> None:
    """Title, the axis of lengths, and a line at each training cap."""
    axes.set_title(title)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(TICKS))
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_locator(NullLocator())
    for cap in training_caps(comparison):
        axes.axvline(cap, color=GREY, lw=0.7, linestyle=(0, (2, 2)), zorder=0)


def _draw_counts(axes: Axes, comparison: Comparison, test_set: str) -> None:
    """Bars of the sentences in each bucket; where runs differ, the range is written."""
    frame = _with_places(comparison.by_length(test_set).query("key == 'bleu'"))
    counts = frame.groupby("place").agg(
        least=("sentences", "min"), most=("sentences", "max"), first=("from", "min")
    )
    widths = 2 * (counts.index - counts["first"].astype(float)) + 1
    bars = axes.bar(counts.index, counts["most"].astype(int), color="#BBBBBB", width=0.9 * widths)
    names = [
        f"{row.most:,}" if row.most == row.least else f"{row.least:,}–{row.most:,}"
        for row in counts.itertuples()
    ]
    axes.bar_label(bars, names, fontsize=5, padding=1, color=GREY, rotation=30)
    axes.set_ylim(0, axes.get_ylim()[1] * 1.6)  # room for the numbers
    axes.set_xlim(left=0.7 * np.nanmin([counts.index.min(), comparison.curves["words"].min()]))
    axes.tick_params(axis="y", labelsize=6)
