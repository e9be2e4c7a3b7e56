"""Translates standard input to standard output: one line out for each line in.

    python -m nmt.translate checkpoint=FILE < source.txt > translation.txt
    python -m nmt.translate checkpoint=FILE search.nbest=5 scores=true alignments=pharaoh < source.txt
    python -m nmt.translate checkpoint=FILE heatmap=DIR page=FILE.html < source.txt

With `search.nbest` above 1 up to that many translations are printed per line, each preceded by the line's
number and a tab; `scores` and `alignments=pharaoh` add columns, separated by tabs.
`alignments=json` prints one JSON object per line. Several checkpoints, as `checkpoint=[a,b,c]`, are
an ensemble. At a terminal each line is answered when it is typed.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

from nmt.cli.command import command
from nmt.config import TranslateConfig

log = logging.getLogger(__name__)


@command("translate")
def main(composed: TranslateConfig) -> None:
    from nmt.inference.lines import batches_of_lines, translation_lines
    from nmt.inference.load import load_for_command
    from nmt.utils.errors import InputError
    from nmt.utils.progress import Stage

    if sys.stdin is None:
        raise InputError("standard input: closed; give it text, such as `< source.txt`")
    model = load_for_command(composed)
    config = model.config
    if composed.heatmap and not model.network.attends:
        raise InputError("heatmap: the model has no attention to draw; leave it out")
    drawn = bool(composed.heatmap or composed.page)
    numbered = config.search.nbest > 1
    rows: list[dict[str, Any]] = []
    number, typed = 0, sys.stdin.isatty()
    if typed:
        log.info("translating each line you type; Ctrl-D ends")
        ask(config.data.languages[0])
    with Stage(
        "translating", unit="line", shown=config.trainer["enable_progress_bar"] and not typed
    ) as stage:
        for lines in batches_of_lines(sys.stdin.buffer, most=16 * config.search.batch_size):
            for best in model.translate(
                lines,
                tokenised=composed.tokenised,
                attention=drawn or composed.alignments is not None,
            ):
                number += 1
                if drawn and best.row:
                    row = {"id": number, **best.row, "reference": []}
                    rows.append(row)
                    draw(row, composed.heatmap)
                for line in translation_lines(composed, number, best, numbered):
                    print(line)
                stage.advance()
            sys.stdout.flush()
            if typed:
                ask(config.data.languages[0])
    if typed:
        print(file=sys.stderr)
    if composed.page:
        from nmt.report.page import build_explorer

        build_explorer(rows, composed.page, label=config.name)


def ask(language: str) -> None:
    """Asks for the next line at a terminal, on stderr: stdout holds translations only."""
    print(f"{language}> ", end="", file=sys.stderr, flush=True)


def draw(row: dict[str, Any], folder: str | None) -> None:
    """Draws the alignment of a line's best translation in `folder`, if there is one."""
    if folder:
        from nmt.report.heatmap import heatmap_figure
        from nmt.report.style import draw_figure

        title = f"Attention: line {row['id']} and its translation"
        stem = Path(folder) / f"line-{row['id']}"
        draw_figure(lambda: heatmap_figure(row, title), stem, ["png"])


if __name__ == "__main__":
    main()
