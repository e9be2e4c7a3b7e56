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
from nmt.report.comparison import Comparison, search_settings
from nmt.report.curves import resampled_words
from nmt.report.style import GREY, run_style, shown
from nmt.report.tables import heading

BLEU_PARTS = ("bleu", NO_UNK.key, "brevity_penalty", "bleu_precisions")
TICKS = (1, 2, 5, 10, 20, 30, 50, 80, 120, 200, 400, 800)  # words
MAX_LABEL = 60  # letters of a label that are shown
LETTER = 0.058  # inches: mean width of a letter in the legend
LEGEND_LINE = 0.14  # inches
DOTS = (0, (2, 2))


def lengths_figure(
    comparison: Comparison, test_set: str, *, width: float | None = None, captioned: bool = True
) -> Figure:
    """BLEU by length beside its two factors, brevity penalty and precisions; counts underneath.

    Args:
        width: of the figure in inches; None: what its panels take.
        captioned: whether `caption` is written below.
    """
    keys = [key for key in BLEU_PARTS if key in comparison.by_length(test_set)["key"].unique()]
    figure, panels = _panels(
        comparison, keys, 2 if len(keys) == 4 else len(keys), width, counts=True
    )
    for key, axes in zip(keys, panels, strict=False):
        _draw_score(axes, comparison, test_set, key)
    for axes in panels[len(keys) :]:
        _draw_counts(axes, comparison, test_set)
    panels[0].set_ylabel("BLEU")
    panels[len(keys)].set_ylabel("sentences")
    if captioned:
        _write_caption(figure, caption(comparison, test_set))
    return figure


def details_figure(
    comparison: Comparison, test_set: str, *, width: float | None = None, captioned: bool = True
) -> Figure | None:
    """Small curves over length of the other scores; None without any. Arguments as above."""
    present = set(comparison.by_length(test_set)["key"])
    keys = [key for key in comparison.about if key in present and key not in BLEU_PARTS]
    if not keys:
        return None
    figure, panels = _panels(comparison, keys, min(3, len(keys)), width)
    for key, axes in zip(keys, panels, strict=False):
        _draw_score(axes, comparison, test_set, key)
    for axes in panels[len(keys) :]:
        axes.remove()
    if captioned:
        _write_caption(figure, caption(comparison, test_set, "each score"))
    return figure


def differences_figure(
    comparison: Comparison, test_set: str, *, width: float | None = None, captioned: bool = True
) -> Figure | None:
    """BLEU of each group less that of the control, and divided by it; None without a second group.

    The control is the first other system, or the first group of runs.
    """
    control = control_of(comparison)
    pairs = {
        kind: {
            name: pair_curve(comparison, test_set, "bleu", kind, name, control)
            for name in comparison.groups
        }
        for kind in ("difference", "ratio")
    }
    if not any(len(curve) for curve in pairs["difference"].values()):
        return None
    names = [name for name, curve in pairs["difference"].items() if len(curve)]
    figure, panels = _panels(comparison, list(pairs), 2, width, names=names)
    titles = {
        "difference": f"BLEU less that of {control}",
        "ratio": f"BLEU divided by that of {control}",
    }
    for axes, (kind, curves) in zip(panels, pairs.items(), strict=False):
        for number, (name, curve) in enumerate(curves.items()):
            if len(curve):
                _draw_curve(axes, curve, number, name)
        axes.axhline(0 if kind == "difference" else 1, color=GREY, lw=0.7)
        _finish(axes, comparison, shown(titles[kind], 50))
    if captioned:
        _write_caption(figure, differences_caption(comparison, test_set))
    return figure


def caption(comparison: Comparison, test_set: str, score: str = "BLEU") -> str:
    """What the figure of a score by length shows, for readers who have not seen one."""
    whole = comparison.whole(test_set).query("key == 'bleu'")
    counts = " or ".join(f"{count:,}" for count in dict.fromkeys(whole["sentences"]))
    curves = comparison.curves[comparison.curves["set"] == test_set]
    text = f"How {score} depends on sentence length on {shown(test_set, 60)} ({counts} pairs). "
    if len(curves):
        drawn = resampled_words(curves[curves["kind"] == "score"])
        text += f"Line: {score} of sentences of about that length ({kernel_words()}). "
        text += (
            f"Band: {comparison.level} bootstrap interval over {drawn}, at each length. "
            if drawn
            else ""
        )
        if "constant" in set(curves["kind"]):
            text += "Dashed: a system with the same error rate per word at every length. "
    else:
        text += f"No curve: fewer than {FEWEST} sentences of similar length. "
    text += f"Points: buckets of lengths. {_cap_words(comparison)}"
    searches = dict.fromkeys(search_settings(run) for run in comparison.present(test_set))
    known = " or ".join(filter(None, searches))
    return text + (f"Search: {known}." if known else "")


def differences_caption(comparison: Comparison, test_set: str, control: str | None = None) -> str:
    """What the figure of differences from a control shows; None: that of `control_of`."""
    control = control or control_of(comparison)
    return (
        f"How much better or worse than {control} each system is at each length on "
        f"{shown(test_set, 60)}: what makes long sentences hard for both cancels. Band: "
        f"{comparison.level} bootstrap interval that holds at all lengths together; where it leaves "
        f"the line of {control}, at 0 and at 1, the systems differ. {_cap_words(comparison)}"
    ).strip()


def _write_caption(figure: Figure, text: str) -> None:
    wrapped = "\n".join(textwrap.wrap(text, int(18 * figure.get_figwidth())))
    figure.supxlabel(wrapped, fontsize=6.5, color=GREY)


def kernel_words() -> str:
    """What a curve averages over."""
    return (
        f"Gaussian kernel over log length with standard deviation {WIDTH}; "
        f"at least {FEWEST} effective sentences"
    )


def control_of(comparison: Comparison) -> str:
    """The group that others are compared with: the first other system, or the first group."""
    groups = comparison.groups
    return next((name for name, runs in groups.items() if runs[0].external), next(iter(groups)))


def pair_curve(
    comparison: Comparison, test_set: str, key: str, kind: str, name: str, control: str
) -> pd.DataFrame:
    """The curve of `difference` or `ratio` of a group to the control, whichever was computed first."""
    curves = comparison.curves
    curves = curves[(curves["set"] == test_set) & (curves["key"] == key) & (curves["kind"] == kind)]
    curve = curves[(curves["name"] == name) & (curves["other"] == control)]
    if len(curve):
        return curve
    curve = curves[(curves["name"] == control) & (curves["other"] == name)]
    turned = curve[["value", "high", "low"]].to_numpy(dtype=float)
    turned = -turned if kind == "difference" else 1 / turned
    return curve.assign(value=turned[:, 0], low=turned[:, 1], high=turned[:, 2])


def training_caps(comparison: Comparison) -> list[int]:
    """Lengths of the longest training sentences of the runs."""
    caps = {run.results.get("max_length") for run in comparison.runs if not run.external}
    return sorted(cap for cap in caps if isinstance(cap, int) and cap > 0)


def bucket_places(buckets: pd.DataFrame) -> pd.Series:
    """Where each bucket's point stands: the middle of its lengths; of the open one, a tenth further."""
    last = buckets["to"].astype(float).fillna(buckets["from"].astype(float) * 1.2)
    return (buckets["from"].astype(float) + last) / 2


def _cap_words(comparison: Comparison) -> str:
    return "Vertical line: the longest training sentence. " if training_caps(comparison) else ""


def _panels(
    comparison: Comparison,
    keys: Sequence[str],
    columns: int,
    width: float | None,
    counts: bool = False,
    names: Sequence[str] = (),
) -> tuple[Figure, list[Axes]]:
    """A figure with a panel a key, a row of panels for counts, and a legend of the groups."""
    rows = -(-len(keys) // columns)
    width = width or 2.8 * columns
    names = list(names or comparison.groups)
    room = 0.45 + LETTER * min(MAX_LABEL, max(map(len, names)))  # a line's sample and its name
    abreast = max(1, min(len(names), 4, int(width / room)))
    height = 2.1 * rows + 0.7 * counts + LEGEND_LINE * -(-len(names) // abreast) + 0.3
    figure = Figure(figsize=(width, height), layout="constrained")
    ratios = [4] * rows + [1] * counts
    grid = figure.subplots(len(ratios), columns, squeeze=False, sharex=True, height_ratios=ratios)
    handles = []
    for number in map(list(comparison.groups).index, names):
        (line,) = grid[0, 0].plot([], [], **run_style(number))
        handles.append(line)
    labels = [shown(name, MAX_LABEL) for name in names]
    figure.legend(handles, labels, loc="outside upper center", ncols=abreast)
    for axes in grid[-1]:
        axes.set_xlabel("words of the source sentence")
    return figure, list(grid.flat)


def _draw_score(axes: Axes, comparison: Comparison, test_set: str, key: str) -> None:
    """The curves and buckets of all groups by one score."""
    buckets = comparison.by_length(test_set)
    buckets = buckets[buckets["key"] == key]
    curves = comparison.curves
    curves = curves[(curves["set"] == test_set) & (curves["key"] == key)]
    for number, (name, runs) in enumerate(comparison.groups.items()):
        look = run_style(number)
        points = buckets[buckets["run"].isin([run.label for run in runs])]
        points = points.assign(place=bucket_places(points)).groupby("place")["value"].mean()
        axes.plot(points.index, points, **look | {"linestyle": "", "markersize": 3})
        of_group = curves[curves["name"] == name]
        _draw_curve(axes, of_group[of_group["kind"] == "score"], number, name)
        constant = of_group[of_group["kind"] == "constant"]
        axes.plot(constant["words"], constant["value"], color=look["color"], ls="--", lw=0.8)
    low, high = axes.get_ylim()
    if comparison.about[key]["unit"] != "ratio":  # a ratio is read against 1
        bottom = min(0, low)
        axes.set_ylim(bottom, high + 0.05 * (high - bottom))
    _finish(axes, comparison, heading(comparison.about[key]))


def _draw_curve(axes: Axes, curve: pd.DataFrame, number: int, name: str) -> None:
    look = run_style(number) | {"marker": ""}
    axes.plot(curve["words"], curve["value"], label=name, **look)
    ends = curve[["words", "low", "high"]].to_numpy(dtype=float).T
    axes.fill_between(*ends, color=look["color"], alpha=0.2, lw=0)


def _finish(axes: Axes, comparison: Comparison, title: str) -> None:
    """Title, the axis of lengths, and a line at each training cap."""
    axes.set_title(title)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(TICKS))
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_locator(NullLocator())
    for cap in training_caps(comparison):
        axes.axvline(cap, color=GREY, lw=0.7, linestyle=DOTS, zorder=0)


def _draw_counts(axes: Axes, comparison: Comparison, test_set: str) -> None:
    """Bars of the sentences in each bucket; where runs differ, the range is written."""
    frame = comparison.by_length(test_set)
    frame = frame[frame["key"] == "bleu"]
    buckets = frame.assign(place=bucket_places(frame)).groupby("place")
    counts = buckets["sentences"].agg(["min", "max"]).astype(np.int64)
    first = buckets["from"].min().astype(float)
    widths = 2 * (counts.index.to_numpy() - first.to_numpy()) + 1
    bars = axes.bar(counts.index, counts["max"], color="#BBBBBB", width=0.9 * widths)
    names = [
        f"{most:,}" if most == least else f"{least:,}–{most:,}"
        for least, most in counts.itertuples(index=False)
    ]
    axes.bar_label(bars, names, fontsize=5, padding=1, color=GREY, rotation=30)
    axes.set_ylim(0, axes.get_ylim()[1] * 1.6)  # room for the numbers
    axes.set_xlim(left=0.7 * min(counts.index.min(), comparison.curves["words"].min()))
    axes.tick_params(axis="y", labelsize=6)
