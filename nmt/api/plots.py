"""The attention of one sentence as a matplotlib figure."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from nmt.inference.decoding import ScoredSentence
from nmt.report.heatmap import heatmap_figure
from nmt.report.style import save_figure, style
from nmt.utils.arguments import PATH, checked


def plot_alignment(
    result: ScoredSentence, file: str | Path | None = None, title: str = ""
) -> Figure:
    """The attention of one sentence as in the paper's Figure 3: source words along the top.

    Args:
        result: of `Model.translate` or `Model.score`.
        file: where it is also written, as .png, .svg or .pdf.
        title: above it; empty: the translation's text.

    Raises:
        ValueError: the model has no attention, or the line was empty.
        InputError: for another ending of the file.
        TypeError: for what is no sentence of a model, such as a list of them.
    """
    checked(result, "result", ScoredSentence)
    if result.row is None or result.weights is None:
        raise ValueError("plot_alignment: this result has no attention weights")
    with style():
        figure = heatmap_figure(dict(result.row), title or result.text)
        if file is not None:
            path = Path(checked(file, "file", PATH))
            save_figure(figure, path.with_suffix(""), [path.suffix.removeprefix(".")])
    return figure
