"""Soft alignments drawn as in the paper's Figure 3.

Source words along the top, the written words down the side, a square cell for every weight α_ij
from black (0) to white (1), `</s>` shown on both axes; beside them the scale of the weights.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nmt.data.vocabulary import UNKNOWN_SYMBOL
from nmt.report.style import shown

CELL = 0.145  # inches: a line of 7-point type and the space between two
LETTER = 0.062  # inches: mean width of a letter at 7 points
DRAWN = (10, 20)  # words of the sentences that the paper draws at random
TITLE = 0.1  # inches between a title and what it is the title of
SCALE = (0.09, 1.2)  # inches: width and height of the scale of weights
ROOM = 0.65  # inches that the scale takes beside the cells, with its gap, numbers and name
LARGEST = 30.0  # inches: a side of a figure; larger ones are shrunk, for memory holds the picture
LEGIBLE = 2.5  # points: smaller words are left out
SEED = "Figure 3"


def heatmap_figure(row: dict[str, Any], title: str = "") -> Figure:
    """One line of alignments/<set>.jsonl as a figure, made and saved inside `style()`.

    Args:
        title: what it is the alignment of; without one it is that of a sentence, by its number.

    Raises:
        ValueError: the model has no attention.
    """
    figure = _panels([row], [""])
    title = title or f"Attention: sentence {row['id']}"
    figure.text(0, 1 + TITLE / figure.get_figheight(), title, fontsize=8, va="bottom")
    return figure


def four_figure(rows: Sequence[dict[str, Any]], width: float | None = None) -> Figure:
    """Up to four sentences as the panels of one figure (made and saved inside `style()`).

    Args:
        width: inches that the figure is shrunk to, letters with cells; none: as wide as it is.
    """
    return _panels(rows, "abcd"[: len(rows)], width)


def choose_four(
    rows: Sequence[dict[str, Any]],
    known: Collection[int] | None = None,
) -> list[dict[str, Any]]:
    """The sentences of the four-panel figure: the first, and three drawn with a fixed seed.

    The three come from those of 10 to 20 words without unknown words; where there are too few,
    other sentences of that length fill up, then any. The draw depends on the sentences alone, so
    that every run of a data set shows the same ones.

    Args:
        rows: lines of alignments/<set>.jsonl.
        known: ids of the sentences without unknown words; none: those without `<unk>`.
    """
    if not rows:
        return []
    if known is None:
        known = {row["id"] for row in rows if UNKNOWN_SYMBOL not in row["source"] + row["target"]}

    def rank(row: dict[str, Any]) -> tuple[bool, bool, str]:
        has_unknown = row["id"] not in known
        outside = not DRAWN[0] <= row["length"] <= DRAWN[1]
        draw = hashlib.sha256(f"{SEED}\n{' '.join(row['source'])}".encode(errors="replace"))
        return outside, has_unknown, draw.hexdigest()

    return [rows[0], *sorted(rows[1:], key=rank)[:3]]


def spread_over_lengths(rows: Sequence[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """`count` rows from the shortest to the longest, evenly spaced by rank."""
    ordered = sorted(rows, key=lambda row: (row["length"], row["id"]))
    places = np.linspace(0, len(ordered) - 1, min(count, len(ordered))).round().astype(int)
    return [ordered[place] for place in places]


def _panels(
    rows: Sequence[dict[str, Any]], letters: Sequence[str], most: float | None = None
) -> Figure:
    """One panel a row in two columns (one for a single row); all cells have the same size.

    A figure wider than `most` inches, or with a side above `LARGEST`, is shrunk to them.
    """
    for row in rows:
        if row["weights"] is None:
            raise ValueError(f"sentence {row['id']}: this model has no attention to draw")
    columns = min(2, len(rows))
    labels = [_label_room(row) for row in rows]
    widths = [CELL * len(row["source"]) + left for row, (left, _) in zip(rows, labels, strict=True)]
    heights = [CELL * len(row["target"]) + top for row, (_, top) in zip(rows, labels, strict=True)]
    gap = 0.35
    lines = [
        range(start, min(start + columns, len(rows))) for start in range(0, len(rows), columns)
    ]
    column_widths = [max(widths[column::columns]) for column in range(columns)]
    line_heights = [max(heights[place] for place in line) for line in lines]
    width = sum(column_widths) + gap * (columns - 1) + ROOM
    height = sum(line_heights) + gap * (len(lines) - 1)
    scale = min(1.0, LARGEST / width, LARGEST / height, (most or width) / width)
    figure = Figure(figsize=(width * scale, height * scale))
    top_edge = height
    for line, line_height in zip(lines, line_heights, strict=True):
        left_edge = 0.0
        for place, column_width in zip(line, column_widths, strict=False):
            row, (left, top) = rows[place], labels[place]
            across, down = CELL * len(row["source"]), CELL * len(row["target"])
            axes = figure.add_axes(
                (
                    (left_edge + left) / width,
                    (top_edge - top - down) / height,
                    across / width,
                    down / height,
                )
            )
            _draw_cells(axes, row, 7 * scale)
            if letters[place]:
                axes.set_xlabel(f"({letters[place]})", labelpad=4 * scale, fontsize=8 * scale)
            left_edge += column_width + gap
        top_edge -= line_height + gap
    _draw_scale(figure, scale, 8 * scale)
    return figure


def _label_room(row: dict[str, Any]) -> tuple[float, float]:
    """Inches for the longest target word on the left and the longest source word at the top."""
    longest = [max(len(shown(word)) for word in row[side]) for side in ("target", "source")]
    return longest[0] * LETTER + 0.1, longest[1] * LETTER + 0.1


def _draw_scale(figure: Figure, scale: float, points: float) -> None:
    """The scale of the weights right of the panels, level with the top of the upper cells."""
    first = figure.axes[0]
    width, height = (inches * scale for inches in SCALE)
    right = max(axes.get_position().x1 for axes in figure.axes)
    top = max(axes.get_position().y1 for axes in figure.axes)
    height = min(height, first.get_position().height * figure.get_figheight())
    across, down = figure.get_size_inches()
    place = (right + 0.15 * scale / across, top - height / down, width / across, height / down)
    bar = figure.colorbar(first.images[0], cax=figure.add_axes(place), ticks=[0, 0.5, 1])
    bar.ax.tick_params(labelsize=points, length=2 * scale, pad=1)
    bar.set_label("attention weight", fontsize=points, labelpad=1)


def _draw_cells(axes: Axes, row: dict[str, Any], points: float) -> None:
    weights = np.array(row["weights"], dtype=float)  # (T, S)
    axes.imshow(weights, cmap="gray", vmin=0, vmax=1, aspect="equal", interpolation="nearest")
    if points < LEGIBLE:
        axes.set(xticks=[], yticks=[])
    else:
        axes.set_xticks(
            range(len(row["source"])), [shown(word) for word in row["source"]], rotation=90
        )
        axes.set_yticks(range(len(row["target"])), [shown(word) for word in row["target"]])
    axes.xaxis.tick_top()
    axes.tick_params(length=0, pad=2, labelsize=points)
    axes.spines[:].set_visible(True)
