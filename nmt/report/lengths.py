"""Figures of scores over sentence length, after the paper's Figure 2.

Every bucket is drawn with its interval and its number of sentences. The caption names the settings of
the search, since they change the scores of long sentences.
"""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nmt.evaluation.buckets import Bucket
from nmt.evaluation.results import bucket_score
from nmt.report.runs import FinishedRun, known_scores
from nmt.report.style import GREY, run_style, shown
from nmt.report.table import heading, levels

Point = dict[str, Any]  # a score in a bucket: `score`, `low`, `high`, `sentences`
Edges = tuple[int, int | None]
Lines = Mapping[str, Sequence[FinishedRun]]  # by label; of several runs the mean is drawn
LETTER = 0.058  # inches: mean width of a letter in the legend
LEGEND_LINE = 0.14  # inches
LABEL = 60  # letters of a label that are shown


def lengths_figure(
    lines: Lines, test_set: str, *, width: float | None = None, captioned: bool = True
) -> Figure:
    """BLEU by length, all sentences and those without unknown words, counts underneath.

    The band of a run is the interval of its results, that of several runs one standard deviation
    on either side of their mean.

    Args:
        width: of the figure in inches; none: what its panels take.
        captioned: whether `caption` is written below.
    """
    runs = _runs(lines)
    views = {"bleu": "All sentences"}
    if any(bucket_score(row, "bleu_no_unk") for run in runs for row in _buckets(run, test_set)):
        views["bleu_no_unk"] = "No unknown words"
    edges = _edges(runs, test_set)
    width = width or 3.7 * len(views)
    columns, room = _legend(lines, width)
    figure = Figure(figsize=(width, 3.2 + room), layout="constrained")
    axes = figure.subplots(
        2, len(views), sharex=True, sharey="row", squeeze=False, height_ratios=[4, 1]
    )
    for column, (key, title) in enumerate(views.items()):
        curves, counts = axes[0, column], axes[1, column]
        for place, (label, members) in enumerate(lines.items()):
            _draw_curve(curves, place, label, _curve(members, test_set, edges, key))
        curves.set_title(title)
        _draw_counts(counts, [_points(run, test_set, edges, key) for run in runs])
        _label_buckets(counts, edges)
        counts.set_xlabel(f"words of the {_bucketed_by(runs, test_set)} sentence")
    axes[0, 0].set_ylim(bottom=0)
    axes[0, 0].set_ylabel("BLEU")
    axes[1, 0].set_ylabel("sentences")
    axes[1, 0].set_ylim(0, axes[1, 0].get_ylim()[1] * 1.35)  # room for the numbers
    figure.align_ylabels(axes[:, 0])
    _draw_legend(figure, axes[0, 0], columns)
    if captioned:
        figure.supxlabel(
            "\n".join(textwrap.wrap(caption(lines, test_set), 62 * len(views))),
            fontsize=6.5,
            color=GREY,
        )
    return figure


def details_figure(lines: Lines, test_set: str, *, width: float | None = None) -> Figure | None:
    """Small curves over length of the scores that the runs have besides BLEU; None without any.

    Args:
        width: of the figure in inches; none: what its panels take.
    """
    runs = _runs(lines)
    edges = _edges(runs, test_set)
    drawn = []
    for key, about in known_scores(runs).items():
        if key == "bleu" or not about["by_length"]:
            continue
        curves = [_curve(members, test_set, edges, key) for members in lines.values()]
        if any(np.isfinite(values).any() for values, _, _ in curves):
            drawn.append((heading(about), curves))
    if not drawn:
        return None
    columns = min(3, len(drawn))
    rows = -(-len(drawn) // columns)
    width = width or 2.5 * columns
    legend_columns, room = _legend(lines, width)
    figure = Figure(figsize=(width, 2.1 * rows + 0.2 + room), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for panel, (title, curves) in zip(axes.flat, drawn, strict=False):
        for place, (label, curve) in enumerate(zip(lines, curves, strict=True)):
            _draw_curve(panel, place, label, curve)
        panel.set_title(title)
        low, high = panel.get_ylim()
        panel.set_ylim(min(0, low), high + 0.05 * (high - min(0, low)))  # room for the markers
        _label_buckets(panel, edges, rotation=45)
    for panel in axes.flat[len(drawn) :]:
        panel.remove()
    _draw_legend(figure, axes[0, 0], legend_columns)
    figure.supxlabel(
        f"words of the {_bucketed_by(runs, test_set)} sentence ({shown(test_set, 60)})", fontsize=7
    )
    return figure


def caption(lines: Lines, test_set: str) -> str:
    """One line: the test set, what the bands are, and the settings of the search."""
    runs = _runs(lines)
    searches = dict.fromkeys(_search(run, test_set) for run in runs)
    pairs = ", ".join(dict.fromkeys(f"{_result(run, test_set)['pairs']:,}" for run in runs))
    bands = levels(run.confidence(test_set) for run in runs)
    text = f"{shown(test_set, 60)}, {pairs} pairs; bands: "
    numbers = {len(members) for members in lines.values()}
    if max(numbers, default=1) > 1:
        text += "one standard deviation about the mean over seeds"
    if 1 in numbers:
        single = ", or for a single run " if len(numbers) > 1 else ""
        text += f"{single}{bands} bootstrap intervals"
    return f"{text}; search: {' or '.join(searches)}"


def _search(run: FinishedRun, test_set: str) -> str:
    """The settings of the search in words, those that change nothing left out."""
    settings = _result(run, test_set).get("search") or {}
    if not settings:
        return "not known"
    beam = settings.get("beam_size")
    words = ["greedy" if beam == 1 else f"beam {beam}"]
    for key, name in (
        ("length_penalty", "length penalty "),
        ("max_ratio", "at most ×"),
        ("min_ratio", "at least ×"),
    ):
        if settings.get(key):
            words.append(f"{name}{settings[key]:g}")
    if settings.get("replace_unk", "none") != "none":
        words.append(f"<unk> replaced ({settings['replace_unk']})")
    return ", ".join(words)


def _runs(lines: Lines) -> list[FinishedRun]:
    return [run for members in lines.values() for run in members]


def _result(run: FinishedRun, test_set: str) -> dict[str, Any]:
    return run.results.get("test", {}).get(test_set, {})


def _bucketed_by(runs: Sequence[FinishedRun], test_set: str) -> str:
    sides = dict.fromkeys(_result(run, test_set).get("bucket_by", "source") for run in runs)
    return " or ".join(sides)


def _buckets(run: FinishedRun, test_set: str) -> list[dict[str, Any]]:
    return _result(run, test_set).get("by_length") or []


def _edges(runs: Sequence[FinishedRun], test_set: str) -> list[Edges]:
    """All buckets that any run has, shortest first."""
    found = {(b["from"], b["to"]) for run in runs for b in _buckets(run, test_set)}
    return sorted(found, key=lambda edges: (edges[0], edges[1] or np.inf))


def _points(
    run: FinishedRun, test_set: str, edges: Sequence[Edges], key: str
) -> list[Point | None]:
    """A score of the run at each of the edges; none where it has none."""
    found = {(row["from"], row["to"]): bucket_score(row, key) for row in _buckets(run, test_set)}
    return [found.get(each) for each in edges]


def _values(points: Sequence[Point | None], part: str = "score") -> np.ndarray:
    """A part of each point (N,); NaN where there is none."""
    return np.array([None if point is None else point[part] for point in points], dtype=float)


def _curve(
    members: Sequence[FinishedRun], test_set: str, edges: Sequence[Edges], key: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A score at each of the edges, and the lower and the upper end of its band."""
    points = [_points(run, test_set, edges, key) for run in members]
    scores = [_values(each) for each in points]
    if len(members) == 1:
        return scores[0], _values(points[0], "low"), _values(points[0], "high")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of buckets that no run, or one, has
        values, deviation = np.nanmean(scores, axis=0), np.nanstd(scores, axis=0, ddof=1)
    return values, values - deviation, values + deviation


def _draw_curve(
    axes: Axes, place: int, label: str, curve: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> None:
    """Draws values with the lower and the upper end of their band, as `_curve` gives them."""
    values, low, high = curve
    label = shown(label, LABEL)
    # matplotlib leaves labels that begin with _ out of the legend
    label = f"\N{ZERO WIDTH SPACE}{label}" if label.startswith("_") else label
    look = run_style(place)
    places = range(len(values))
    axes.plot(places, values, label=label, **look)
    axes.fill_between(places, low, high, color=look["color"], alpha=0.2, lw=0)
    axes.vlines(places, low, high, color=look["color"], alpha=0.5, lw=0.8)


def _draw_counts(axes: Axes, points: Sequence[Sequence[Point | None]]) -> None:
    """Bars of the sentences in each bucket; where runs differ, the range is written."""
    counts = np.nan_to_num([_values(each, "sentences") for each in points])  # (runs, buckets)
    most, least = counts.max(0), counts.min(0)
    bars = axes.bar(range(len(most)), most, color="#BBBBBB", width=0.7)
    names = [
        f"{int(m):,}" if m == n else f"{int(n):,}–{int(m):,}"
        for m, n in zip(most, least, strict=True)
    ]
    axes.bar_label(bars, names, fontsize=6, padding=1, color=GREY)
    axes.tick_params(axis="y", labelsize=6)


def _label_buckets(axes: Axes, edges: Sequence[Edges], rotation: int = 0) -> None:
    names = [Bucket(*each).name for each in edges]
    axes.set_xticks(range(len(edges)), names, rotation=rotation, fontsize=6.5)
    axes.set_xlim(-0.5, len(edges) - 0.5)


def _legend(lines: Lines, width: float) -> tuple[int, float]:
    """Columns of the legend that fit a width, and the height that it then takes (inches)."""
    room = 0.45 + LETTER * min(LABEL, max(map(len, lines)))  # a line's sample and its name
    columns = max(1, min(len(lines), 4, int(width / room)))
    return columns, LEGEND_LINE * -(-len(lines) // columns)


def _draw_legend(figure: Figure, axes: Axes, columns: int) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=columns)
