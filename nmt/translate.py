"""Translates standard input to standard output: one line out for each line in.

    python -m nmt.translate checkpoint=FILE < source.txt > translation.txt
    python -m nmt.translate checkpoint=FILE nbest=5 scores=true alignments=pharaoh < source.txt
    python -m nmt.translate checkpoint=FILE heatmap=DIR page=FILE.html < source.txt

With `nbest` above 1 up to that many translations are printed per line, each preceded by the line's
number and a tab; `scores` and `alignments=pharaoh` add columns, separated by tabs.
`alignments=json` prints one JSON object per line. Several checkpoints, as `checkpoint=[a,b,c]`, are
an ensemble. At a terminal each line is answered when it is typed.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from nmt.cli.command import command

log = logging.getLogger(__name__)


@command("translate")
def main(composed: DictConfig) -> None:
    from nmt.inference.output import LineFormat
    from nmt.inference.stream import batches_of_lines
    from nmt.inference.translation import LineTranslator
    from nmt.report.page import build_explorer
    from nmt.run import start
    from nmt.utils.errors import InputError
    from nmt.utils.progress import Stage

    if sys.stdin is None:
        raise InputError("standard input: closed; give it text, such as `< source.txt`")
    trained = start.trained_model(composed)
    config = trained.config
    if composed.heatmap and not trained.model.attends:
        raise InputError("heatmap: the model has no attention to draw; leave it out")
    drawn = bool(composed.heatmap or composed.page)
    translator = LineTranslator(
        trained,
        tokenised=composed.tokenised,
        attention=drawn or composed.alignments is not None,
    )
    layout = LineFormat(
        numbers=composed.nbest > 1,
        scores=composed.scores,
        detokenise=composed.detokenise,
        alignments=composed.alignments,
        null=config.evaluation.alignment.null,
    )
    rows: list[dict[str, Any]] = []
    typed = sys.stdin.isatty()
    if typed:
        log.info("translating each line you type; Ctrl-D ends")
        ask(config.data.languages[0])
    most = 16 * config.search.batch_size
    shown = config.trainer["enable_progress_bar"] and not typed
    with Stage("translating", unit="line", shown=shown) as stage:
        for lines in batches_of_lines(sys.stdin.buffer, most=most):
            for sentence in translator.translate(lines):
                if sentence.translations and drawn:
                    row = sentence.translations[0].row
                    assert row is not None
                    draw_best(row, composed.heatmap, sentence.number)
                    rows.append(row)
                print("".join(f"{line}\n" for line in layout.lines(sentence)), end="", flush=True)
                stage.advance()
            if typed:
                ask(config.data.languages[0])
    if typed:
        print(file=sys.stderr)
    if composed.page:
        build_explorer(rows, composed.page, label=config.name)


def ask(language: str) -> None:
    """Asks the person at a terminal for the next line, on stderr: stdout holds translations only."""
    print(f"{language}> ", end="", file=sys.stderr, flush=True)


def draw_best(row: dict[str, Any], folder: str | None, number: int) -> None:
    """Draws the alignment of a line's best translation to `folder`, where one is given."""
    from nmt.report.heatmap import heatmap_figure
    from nmt.report.style import draw_figure

    if folder:
        title = f"Attention: line {number} and its translation"
        draw_figure(lambda: heatmap_figure(row, title), Path(folder) / f"line-{number}", ["png"])


if __name__ == "__main__":
    main()
