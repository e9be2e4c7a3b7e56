"""Soft alignments drawn as in the paper's Figure 3.

Source words are written along the top, target words down the left side; both end with `</s>`. Each square
cell shows a weight α_ij, from black (0) to white (1). A colour bar shows the scale of the weights.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from nmt.report.captions import shown
from nmt.report.style import Drawing, style
from nmt.text.symbols import UNKNOWN_SYMBOL

CELL = 0.145  # side of a cell in inches: the height of a line of 7-point type
EDGE = -0.7  # position where words end, in cells; the first cell begins at -0.5
LETTER = 0.062  # mean width of a letter of 7 points, in inches
DRAWN = (10, 20)  # the paper's random sentences have between 10 and 20 words
GAP = 0.35  # inches between panels
SCALE = 0.65  # width in inches of the colour bar with its numbers and title
LARGEST = 30.0  # maximum side of a figure in inches; larger figures are scaled down to save memory
SEED = "Figure 3"


@style()
def heatmap_figure(row: dict[str, Any], title: str = "") -> Drawing:
    """Draws a record of alignments/<set>.jsonl as a figure; the record must have weights."""
    figure = _panels([row])
    title = title or f"Attention: sentence {row['id']}"
    figure.text(0, 1 + 0.1 / figure.get_figheight(), title, fontsize=8, va="bottom")
    return figure


@style()
def four_figure(rows: Sequence[dict[str, Any]]) -> Drawing:
    """Draws up to four sentences as panels of one figure."""
    figure = _panels(rows)
    for axes, letter in zip(figure.axes, "abcd"[: len(rows)], strict=False):
        size = float(axes.texts[0].get_fontsize())
        axes.set_xlabel(f"({letter})", labelpad=4 / 7 * size, fontsize=8 / 7 * size)
    return figure


def choose_four(
    rows: Sequence[dict[str, Any]], known: Collection[int] | None = None
) -> list[dict[str, Any]]:
    """Chooses the sentences of the four-panel figure: the first sentence, and three random ones (fixed seed).

    The random sentences have 10 to 20 words and no unknown words, and their translation is the reference. If
    fewer than three qualify, other translations are taken, then sentences with unknown words, then sentences of
    other lengths.

    Args:
        rows: records of alignments/<set>.jsonl.
        known: ids of the sentences without unknown words. If None, a sentence is known if its row has no `<unk>`.
    """
    if known is None:
        known = {row["id"] for row in rows if UNKNOWN_SYMBOL not in row["source"] + row["target"]}

    def rank(row: dict[str, Any]) -> tuple[bool, bool, bool, str]:
        outside = not DRAWN[0] <= row["length"] <= DRAWN[1]
        draw = hashlib.sha256(f"{SEED}\n{' '.join(row['source'])}".encode(errors="replace"))
        wrong = row["target"][:-1] != row["reference"]
        return outside, row["id"] not in known, wrong, draw.hexdigest()

    return [*rows[:1], *sorted(rows[1:], key=rank)[:3]]


def _panels(rows: Sequence[dict[str, Any]]) -> Drawing:
    """Draws one panel per sentence in at most two columns, with cells of equal size.

    A panel consists of the words and the square cells. Sizes are in inches. A figure with a side
    above `LARGEST` is scaled down.
    """
    # Widths and heights in inches (N sentences, 2): `cells` of all cells of a panel, `room` of its words
    cells = CELL * np.array([(len(row["source"]), len(row["target"])) for row in rows])
    words = [
        [max(len(shown(w)) for w in row[side]) for side in ("target", "source")] for row in rows
    ]
    room = LETTER * np.array(words) + 0.1
    sizes = cells + room + GAP
    columns = min(2, len(rows))
    widths = [sizes[column::columns, 0].max() for column in range(columns)]
    heights = [sizes[n : n + columns, 1].max() for n in range(0, len(rows), columns)]
    width = sum(widths) - GAP + SCALE
    height = sum(heights) - GAP
    scale = min(1.0, LARGEST / width, LARGEST / height)
    figure = Drawing(figsize=(width * scale, height * scale))

    def add_axes(left: float, top: float, across: float, down: float) -> Axes:
        corner = left / width, 1 - (top + down) / height
        return figure.add_axes((*corner, across / width, down / height))

    for number, row in enumerate(rows):
        line, column = divmod(number, columns)
        corner = room[number] + (sum(widths[:column]), sum(heights[:line]))
        _draw_cells(add_axes(*corner, *cells[number]), row, 7 * scale)
    bar = add_axes(width - SCALE + 0.15, room[0, 1], 0.09, min(1.2, cells[0, 1]))
    figure.colorbar(figure.axes[0].images[0], cax=bar, ticks=[0, 0.5, 1])
    bar.tick_params(labelsize=8 * scale, length=2 * scale, pad=1)
    bar.set_ylabel("attention weight", fontsize=8 * scale, labelpad=1)
    return figure


def _draw_cells(axes: Axes, row: dict[str, Any], points: float) -> None:
    weights = np.array(row["weights"], dtype=float)  # (T, S)
    axes.imshow(weights, cmap="gray", vmin=0, vmax=1, aspect="equal", interpolation="nearest")
    source, target = ([shown(word) for word in row[side]] for side in ("source", "target"))
    axes.set(xticks=[], yticks=[])  # drawing tick labels would take several times longer
    for index, word in enumerate(source):
        axes.text(index, EDGE, word, rotation=90, ha="center", va="bottom", fontsize=points)
    for index, word in enumerate(target):
        axes.text(EDGE, index, word, ha="right", va="center_baseline", fontsize=points)
    axes.spines[:].set_visible(True)
