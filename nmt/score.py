"""Scores given translations: one log-probability, in nats, for each pair of lines.

    python -m nmt.score checkpoint=FILE source=some.en target=some.fr > scores.txt
    python -m nmt.score checkpoint=FILE source=some.en target=some.fr mean=true alignments=pharaoh
    python -m nmt.score checkpoint=[a.ckpt,b.ckpt] source=some.en target=some.fr page=FILE.html

A target word outside the vocabulary has the probability of `<unk>`. `alignments=pharaoh` adds a
column of links, separated by a tab; `alignments=json` prints one JSON object per pair.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import islice
from typing import Any

from omegaconf import DictConfig

from nmt.cli.command import command

log = logging.getLogger(__name__)


@command("score")
def main(composed: DictConfig) -> None:
    import numpy as np

    from nmt.config import ScoreConfig
    from nmt.data.lines import check_file, read_parallel
    from nmt.inference.output import pair_line
    from nmt.inference.scoring import PairScorer
    from nmt.report.page import build_explorer
    from nmt.run import start
    from nmt.utils.progress import Stage

    files = [check_file(composed[side], side) for side in ("source", "target")]
    trained = start.trained_model(composed, ScoreConfig)
    config = trained.config
    described = bool(composed.page or composed.alignments)
    scorer = PairScorer(trained, tokenised=composed.tokenised, attention=described)
    layout = composed.mean, composed.alignments, config.evaluation.alignment.null
    rows: list[dict[str, Any]] = []
    total, symbols = 0.0, 0
    stage = Stage("scoring", unit="pair", shown=config.trainer["enable_progress_bar"])
    with stage:
        for pairs in pairs_at_a_time(read_parallel(files), 16 * config.search.batch_size):
            lines = []
            for pair in scorer.score(pairs):
                total, symbols = total + pair.score, symbols + pair.symbols
                lines.append(f"{pair_line(pair, *layout)}\n")
                if composed.page and pair.row is not None:
                    rows.append(pair.row)
            print("".join(lines), end="", flush=True)
            stage.advance(len(pairs))
    if composed.page:
        build_explorer(rows, composed.page, label=config.name)
    if scorer.lines:
        with np.errstate(over="ignore"):  # infinite, as it nearly is
            perplexity = np.exp(-total / symbols)
        log.info(
            "%d pairs: NLL/sentence %.3f, NLL/symbol %.4f, perplexity %.2f",
            scorer.lines, -total / scorer.lines, -total / symbols, perplexity
        )  # fmt: skip


def pairs_at_a_time(rows: Iterator[tuple[str, ...]], most: int) -> Iterator[list[tuple[str, str]]]:
    """Lists of at most `most` pairs, in order."""
    while chunk := [(source, target) for source, target in islice(rows, most)]:
        yield chunk


if __name__ == "__main__":
    main()
