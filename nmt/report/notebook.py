"""HTML of results for notebooks, with all text escaped."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Sequence
from html import escape
from textwrap import shorten
from typing import Any

from nmt.report.comparison import Comparison
from nmt.report.figures import curves_figure
from nmt.report.result_tables import headline, names_of, retention_table
from nmt.report.style import shown
from nmt.report.table import number

SHORTENED = 200  # maximum length of the headline in `repr`, in characters
MAX_SENTENCES = 100  # maximum number of sentences that are shown
CELL = 15  # side of a cell in pixels
LETTER = 6.5  # mean width of a letter in pixels
SMALLEST = 0.005  # smaller weights are not drawn
HEAT = "#2a6fb0"  # visible on white and on black


class NotebookComparison(Comparison):
    """A comparison that notebooks show as HTML, with retention and curves on the first test set."""

    @classmethod
    def of(cls, comparison: Comparison) -> NotebookComparison:
        """Converts a comparison to this class."""
        names = (each.name for each in dataclasses.fields(Comparison))
        return cls(**{name: getattr(comparison, name) for name in names})

    def __repr__(self) -> str:
        first = headline(self, self.sets[0]) if self.sets else ""
        return (
            f"Comparison of {names_of(self.groups)} on {', '.join(self.sets) or 'no test set'}\n"
            f"{shorten(first, SHORTENED, placeholder=' …')}"
        )

    def _repr_html_(self) -> str | None:
        if not self.sets:
            return None
        name = self.sets[0]
        data, size = curves_figure(self, name, ["bleu"])._repr_png_()
        content = base64.b64encode(data).decode("ascii")
        parts = [
            f"<p><b>{escape(headline(self, name))}</b></p>",
            f'<img alt="BLEU by length" style="max-width: 100%" width="{size["width"]}" ',
            f'src="data:image/png;base64,{content}">',
        ]
        table = retention_table(self, name)
        if len(table.frame):
            frame = table.frame.map(lambda cell: str(cell).replace(", ", ",\N{NO-BREAK SPACE}"))
            parts += [f"<p>{escape(table.title)}</p>", frame.to_html(index=False)]
        return "".join(parts)


def sentence_html(row: dict[str, Any], text: str, folded: bool = False) -> str:
    """Returns HTML with the source, the translation, its log-probability, and the attention as SVG.

    Args:
        row: a record of `alignments/<set>.jsonl`.
        text: the detokenised translation.
        folded: whether the attention is hidden until the user clicks.
    """
    parts = [
        f"<div>{escape(' '.join(row['source'][:-1]))}</div>",
        f"<div><b>{escape(text)}</b> ",
        f'<small title="log-probability in nats">{number(row["log_probability"])}</small></div>',
    ]
    if row["weights"] is not None:
        drawing = heatmap_svg(row)
        fold = f"<details><summary>attention</summary>{drawing}</details>"
        parts.append(fold if folded else drawing)
    return f'<div style="margin: .3em 0">{"".join(parts)}</div>'


def sentences_html(rows: Sequence[tuple[dict[str, Any], str]]) -> str:
    """Returns HTML of at most `MAX_SENTENCES` sentences; a click shows the attention of a sentence."""
    parts = [sentence_html(row, text, folded=True) for row, text in rows[:MAX_SENTENCES]]
    if more := len(rows) - len(parts):
        parts.append(f"<p>… and {more:,} more</p>")
    return "".join(parts)


def heatmap_svg(row: dict[str, Any]) -> str:
    """Draws the attention as SVG, with source words along the top."""
    source, target = ([shown(word) for word in row[side]] for side in ("source", "target"))
    left, top = (LETTER * max(map(len, words)) + 8 for words in (target, source))
    width, height = left + CELL * len(source), top + CELL * len(target)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        'font-size="11" font-family="sans-serif" fill="currentColor" role="img">'
    ]
    for j, word in enumerate(source):
        place = f"translate({left + CELL * (j + 0.75):.1f} {top - 5:.1f}) rotate(-90)"
        parts.append(f'<text transform="{place}">{escape(word)}</text>')
    for i, (word, weights) in enumerate(zip(target, row["weights"], strict=True)):
        y = top + CELL * i
        parts.append(f'<text x="{left - 5:.1f}" y="{y + 11:.1f}" text-anchor="end">')
        parts.append(f"{escape(word)}</text>")
        for j, weight in enumerate(weights):
            if weight >= SMALLEST:
                x = left + CELL * j
                parts.append(
                    f'<rect x="{x:.1f}" y="{y:.1f}" width="{CELL - 1}" height="{CELL - 1}" '
                    f'fill="{HEAT}" fill-opacity="{weight:.2f}"><title>{weight:.3f}</title></rect>'
                )
    parts.append("</svg>")
    return "".join(parts)
