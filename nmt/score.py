"""Scores given translations: prints a log-probability in nats for each pair of lines.

    python -m nmt.score checkpoint=FILE source=some.en target=some.fr > scores.txt
    python -m nmt.score checkpoint=FILE source=some.en target=some.fr alignments=pharaoh
    python -m nmt.score checkpoint=[a.ckpt,b.ckpt] source=some.en target=some.fr

A target word outside the vocabulary has the probability of `<unk>`. `alignments=pharaoh` adds a
tab-separated column of alignment links. `alignments=json` prints one JSON object per pair.
"""

from __future__ import annotations

import json
import logging
import math
from itertools import islice
from typing import TYPE_CHECKING

from nmt.cli.application import command
from nmt.config.commands import ScoreConfig

if TYPE_CHECKING:
    from nmt.inference.sentence import ScoredSentence

log = logging.getLogger(__name__)


@command("score")
def main(composed: ScoreConfig) -> None:
    from nmt.inference.load import load_for_command
    from nmt.text.lines import check_file, read_parallel
    from nmt.text.tokenise import MAX_WORDS, count_words, tokeniser
    from nmt.utils.errors import InputError
    from nmt.utils.progress import Stage

    files = [check_file(getattr(composed, side), side) for side in ("source", "target")]
    model = load_for_command(composed)
    config = model.config
    tools = list(map(tokeniser, config.data.languages))
    total, symbol_count, number = 0.0, 0, 0
    pairs = read_parallel(files)
    with Stage("scoring", unit="pair", shown=config.trainer["enable_progress_bar"]) as stage:
        while lines := list(islice(pairs, 16 * config.search.batch_size)):
            for n, sides in enumerate(lines, number + 1):
                for file, line, tool in zip(files, sides, tools, strict=True):
                    if (words := count_words(line, tool.characters)) > MAX_WORDS:
                        raise InputError(
                            f"{file}:{n}: {words:,} words; a line may have {MAX_WORDS:,}"
                        )
            for scored in model.score(lines, tokenised=composed.tokenised):
                number += 1
                total += scored.log_probability
                symbol_count += scored.symbols
                print(printed_line(composed.alignments, number, scored), flush=number % 64 == 0)
            stage.advance(len(lines))
    if number:
        nll = -total / symbol_count
        perplexity = math.exp(nll) if nll < 700 else math.inf
        log.info(
            "%d pairs: NLL/sentence %.3f, NLL/symbol %.4f, perplexity %.2f",
            number, -total / number, nll, perplexity
        )  # fmt: skip


def printed_line(alignments: str | None, number: int, scored: ScoredSentence) -> str:
    """Returns the line to print for pair `number` (from 1)."""
    if alignments == "json":
        record = {"line": number, "source": scored.source, **scored.to_json()}
        return json.dumps(record, ensure_ascii=False)
    return "\t".join([f"{scored.log_probability:.4f}", *([scored.links] if alignments else [])])


if __name__ == "__main__":
    main()
