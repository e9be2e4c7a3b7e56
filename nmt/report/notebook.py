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
from nmt.report.heatmap import heatmap_figure
from nmt.report.result_tables import headline, names_of, retention_table
from nmt.report.style import Drawing
from nmt.report.table import number

SHORTENED = 200  # maximum length of the headline in `repr`, in characters
MAX_SENTENCES = 100  # maximum number of sentences that are shown


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
        parts = [
            f"<p><b>{escape(headline(self, name))}</b></p>",
            figure_html(curves_figure(self, name, ["bleu"]), "BLEU by length"),
        ]
        table = retention_table(self, name)
        if len(table.frame):
            frame = table.frame.map(lambda cell: str(cell).replace(", ", ",\N{NO-BREAK SPACE}"))
            parts += [f"<p>{escape(table.title)}</p>", frame.to_html(index=False)]
        return "".join(parts)


def sentence_html(row: dict[str, Any], text: str) -> str:
    """Returns HTML with the source, the translation, its log-probability, and a heatmap of the attention.

    Args:
        row: a record of `alignments/<set>.jsonl`.
        text: the detokenised translation.
    """
    picture = ""
    if row["weights"] is not None:
        picture = figure_html(heatmap_figure(row, "Attention"), "attention weights")
    return words_html(row, text) + picture


def sentences_html(rows: Sequence[tuple[dict[str, Any], str]]) -> str:
    """Returns HTML of at most `MAX_SENTENCES` sentences, without attention."""
    parts = [words_html(row, text) for row, text in rows[:MAX_SENTENCES]]
    if more := len(rows) - len(parts):
        parts.append(f"<p>… and {more:,} more</p>")
    return "".join(parts)


def words_html(row: dict[str, Any], text: str) -> str:
    """Returns HTML with the source, the translation and its log-probability."""
    return (
        f'<div style="margin: .3em 0"><div>{escape(" ".join(row["source"][:-1]))}</div>'
        f"<div><b>{escape(text)}</b> "
        f'<small title="log-probability in nats">{number(row["log_probability"])}</small></div></div>'
    )


def figure_html(figure: Drawing, alternative: str) -> str:
    """Returns an HTML image of a figure, with an alternative text."""
    data, size = figure._repr_png_()
    content = base64.b64encode(data).decode("ascii")
    return (
        f'<img alt="{alternative}" style="max-width: 100%" width="{size["width"]}" '
        f'src="data:image/png;base64,{content}">'
    )
