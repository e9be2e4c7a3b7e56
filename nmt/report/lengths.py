"""Figures of scores over sentence length, after the paper's Figure 2.

Every bucket is drawn with its interval and its number of sentences. A vertical line stands at the
longest training sentence. The caption names the settings of the search, since they change the scores
of long sentences.
"""

from __future__ import annotations

import textwrap

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nmt.evaluation.scores import NO_UNK
from nmt.report.comparison import Comparison, search_settings
from nmt.report.style import GREY, run_style, shown
from nmt.report.tables import heading

LETTER = 0.058  # inches: mean width of a letter in the legend
LEGEND_LINE = 0.14  # inches
MAX_LABEL = 60  # letters of a label that are shown


def lengths_figure(
    comparison: Comparison, test_set: str, *, width: float | None = None, captioned: bool = True
) -> Figure:
    """BLEU by length, all sentences and those without unknown words, counts underneath.

    The band of a run is its interval, that of several seeds one standard deviation on either side
    of their mean.

    Args:
        width: of the figure in inches; None: what its panels take.
        captioned: whether `caption` is written below.
    """
    frame = _buckets(comparison, test_set)
    views = {"bleu": "All sentences", NO_UNK.key: "No unknown words"}
    views = {key: title for key, title in views.items() if key in set(frame["key"])}
    width = width or 3.7 * len(views)
    columns, room = _legend(comparison, width)
    figure = Figure(figsize=(width, 3.2 + room), layout="constrained")
    axes = figure.subplots(
        2, len(views), sharex=True, sharey="row", squeeze=False, height_ratios=[4, 1]
    )
    for column, (key, title) in enumerate(views.items()):
        curves, counts = axes[0, column], axes[1, column]
        _draw_score(curves, comparison, frame, key)
        curves.set_title(title)
        _draw_counts(counts, frame, key)
        _label_buckets(counts, frame)
        counts.set_xlabel(f"words of the {bucketed_by(comparison)} sentence")
    axes[0, 0].set_ylim(bottom=0)
    axes[0, 0].set_ylabel("BLEU")
    axes[1, 0].set_ylabel("sentences")
    axes[1, 0].set_ylim(0, axes[1, 0].get_ylim()[1] * 1.35)  # room for the numbers
    figure.align_ylabels(axes[:, 0])
    _draw_legend(figure, axes[0, 0], columns)
    if captioned:
        text = "\n".join(textwrap.wrap(caption(comparison, test_set), 62 * len(views)))
        figure.supxlabel(text, fontsize=6.5, color=GREY)
    return figure


def details_figure(
    comparison: Comparison, test_set: str, *, width: float | None = None
) -> Figure | None:
    """Small curves over length of the scores besides BLEU; None without any. Arguments as above."""
    frame = _buckets(comparison, test_set)
    keys = [
        key
        for key in comparison.about
        if key not in ("bleu", NO_UNK.key) and key in set(frame["key"])
    ]
    if not keys:
        return None
    columns = min(3, len(keys))
    rows = -(-len(keys) // columns)
    width = width or 2.5 * columns
    legend_columns, room = _legend(comparison, width)
    figure = Figure(figsize=(width, 2.1 * rows + 0.2 + room), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for panel, key in zip(axes.flat, keys, strict=False):
        _draw_score(panel, comparison, frame, key)
        panel.set_title(heading(comparison.about[key]))
        low, high = panel.get_ylim()
        panel.set_ylim(min(0, low), high + 0.05 * (high - min(0, low)))  # room for the markers
        _label_buckets(panel, frame, rotation=45)
    for panel in axes.flat[len(keys) :]:
        panel.remove()
    _draw_legend(figure, axes[0, 0], legend_columns)
    side = bucketed_by(comparison)
    figure.supxlabel(f"words of the {side} sentence ({shown(test_set, 60)})", fontsize=7)
    return figure


def caption(comparison: Comparison, test_set: str) -> str:
    """One line: the test set, what bands and the vertical line are, and the settings of the search."""
    whole = comparison.whole(test_set).query("key == 'bleu'")
    counts = ", ".join(f"{count:,}" for count in dict.fromkeys(whole["sentences"]))
    sizes = {len(runs) for runs in comparison.groups.values()}
    bands = ["one standard deviation about the mean over seeds"] if max(sizes) > 1 else []
    bands += [f"{comparison.level} bootstrap intervals"] if 1 in sizes else []
    text = f"{shown(test_set, 60)}, {counts} pairs; bands: {', or for a single run '.join(bands)}"
    if training_caps(comparison):
        text += "; vertical: longest training sentence"
    searches = dict.fromkeys(search_settings(run) for run in comparison.present(test_set))
    return f"{text}; search: {' or '.join(filter(None, searches)) or 'not known'}"


def bucketed_by(comparison: Comparison) -> str:
    """The side whose words the buckets count."""
    sides = (run.evaluation.get("bucket_by", "source") for run in comparison.runs)
    return " or ".join(dict.fromkeys(sides))


def training_caps(comparison: Comparison) -> list[int]:
    """Lengths of the longest training sentences of the runs."""
    caps = {run.results.get("max_length") for run in comparison.runs if not run.external}
    return sorted(cap for cap in caps if isinstance(cap, int) and cap > 0)


def place_of(cap: int, buckets: pd.DataFrame) -> float | None:
    """Where a length stands on an axis with a place a bucket; None in the open bucket and beyond.

    Args:
        buckets: with `from` and `to`, ascending.
    """
    for place, (first, last) in enumerate(zip(buckets["from"], buckets["to"], strict=True)):
        if not pd.isna(last) and first <= cap <= last:
            return float(place - 0.5 + (cap - first + 1) / (last - first + 1))
    return None


def _buckets(comparison: Comparison, test_set: str) -> pd.DataFrame:
    frame = comparison.by_length(test_set)
    return frame.assign(place=pd.factorize(frame["from"])[0])


def _draw_score(axes: Axes, comparison: Comparison, frame: pd.DataFrame, key: str) -> None:
    """A line a group of seeds with its band, and vertical lines at the training caps."""
    for number, (name, runs) in enumerate(comparison.groups.items()):
        rows = frame[(frame["key"] == key) & frame["run"].isin([run.label for run in runs])]
        curve = rows.groupby("place")[["value", "low", "high"]].mean()
        if len(runs) > 1:
            spread = rows.groupby("place")["value"].std()
            curve["low"], curve["high"] = curve["value"] - spread, curve["value"] + spread
        curve = curve.reindex(range(frame["place"].max() + 1)).astype(float)
        look = run_style(number)
        label = shown(name, MAX_LABEL)
        # matplotlib leaves labels that begin with _ out of the legend
        label = f"\N{ZERO WIDTH SPACE}{label}" if label.startswith("_") else label
        axes.plot(curve.index, curve["value"], label=label, **look)
        axes.fill_between(
            curve.index, curve["low"], curve["high"], color=look["color"], alpha=0.2, lw=0
        )
        axes.vlines(
            curve.index, curve["low"], curve["high"], color=look["color"], alpha=0.5, lw=0.8
        )
    buckets = frame.drop_duplicates("place")
    for cap in training_caps(comparison):
        place = place_of(cap, buckets)
        if place is not None:
            axes.axvline(place, color=GREY, lw=0.7, linestyle=(0, (2, 2)), zorder=0)


def _draw_counts(axes: Axes, frame: pd.DataFrame, key: str) -> None:
    """Bars of the sentences in each bucket; where runs differ, the range is written."""
    rows = frame[frame["key"] == key]
    places = range(frame["place"].max() + 1)
    counts = rows.groupby("place")["sentences"].agg(["min", "max"])
    counts = counts.reindex(places, fill_value=0).astype(np.int64)
    bars = axes.bar(places, counts["max"], color="#BBBBBB", width=0.7)
    names = [
        f"{most:,}" if most == least else f"{least:,}–{most:,}"
        for least, most in counts.itertuples(index=False)
    ]
    axes.bar_label(bars, names, fontsize=6, padding=1, color=GREY)
    axes.tick_params(axis="y", labelsize=6)


def _label_buckets(axes: Axes, frame: pd.DataFrame, rotation: int = 0) -> None:
    names = frame.drop_duplicates("place")["bucket"].tolist()
    axes.set_xticks(range(len(names)), names, rotation=rotation, fontsize=6.5)
    axes.set_xlim(-0.5, len(names) - 0.5)


def _legend(comparison: Comparison, width: float) -> tuple[int, float]:
    """Columns of the legend that fit a width, and the height that it then takes (inches)."""
    names = list(comparison.groups)
    room = 0.45 + LETTER * min(MAX_LABEL, max(map(len, names)))  # a line's sample and its name
    columns = max(1, min(len(names), 4, int(width / room)))
    return columns, LEGEND_LINE * -(-len(names) // columns)


def _draw_legend(figure: Figure, axes: Axes, columns: int) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=columns)
