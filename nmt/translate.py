"""Translates standard input line by line, and prints the translations.

    python -m nmt.translate checkpoint=FILE < source.txt > translation.txt
    python -m nmt.translate checkpoint=FILE search.nbest=5 scores=true alignments=pharaoh < source.txt

`search.nbest=N` prints up to N translations per input line, best first. If N is above 1, the first column
is the line number. `scores=true` and `alignments=pharaoh` add tab-separated columns. The score is the
log-probability in nats. `search.length_penalty=p` divides it by L^p for a translation of L symbols.
`alignments=json` prints one JSON object per input line. With `tokenised=true`, the input and the
translations are tokens with spaces between them. `checkpoint=[a,b,c]` loads an ensemble. In a terminal,
each line is translated as soon as you enter it.
"""

from __future__ import annotations

import json
import logging
import math
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from nmt.cli.application import command
from nmt.config.commands import TranslateConfig

if TYPE_CHECKING:
    from nmt.config.schema import SearchConfig
    from nmt.inference.sentence import ScoredSentence

log = logging.getLogger(__name__)


@command("translate")
def main(composed: TranslateConfig) -> None:
    from nmt.inference.load import load_for_command
    from nmt.text.lines import batches_of_lines
    from nmt.text.tokenise import MAX_WORDS, count_words, tokeniser
    from nmt.utils.errors import InputError
    from nmt.utils.progress import Stage

    if sys.stdin is None:
        raise InputError("standard input: closed; give it text, such as `< source.txt`")
    model = load_for_command(composed)
    config = model.config
    source_tokeniser = tokeniser(config.data.languages[0])

    def symbols(line: str) -> int:
        words = count_words(line, source_tokeniser.characters)
        short = len(line) <= MAX_WORDS  # a line has no more tokens than characters
        is_counted = short or words > MAX_WORDS or composed.tokenised
        return words if is_counted else len(source_tokeniser.tokenise(line))

    number = 0
    interactive = sys.stdin.isatty()
    if interactive:
        log.info("translating each line you type; Ctrl-D ends")
        ask(config.data.languages[0])
    shown = config.trainer["enable_progress_bar"] and not interactive
    with Stage("translating", unit="line", shown=shown) as stage:
        for lines in batches_of_lines(sys.stdin.buffer, most=16 * config.search.batch_size):
            counts = [symbols(line) for line in lines]
            too_long = next((n for n, words in enumerate(counts) if words > MAX_WORDS), None)
            for best in model.translate(
                lines[:too_long],
                tokenised=composed.tokenised,
                attention=composed.alignments is not None,
            ):
                number += 1
                for line in printed_lines(composed, config.search, number, best):
                    print(line)
                stage.advance()
            sys.stdout.flush()
            if too_long is not None:
                words = f"{counts[too_long]:,} words; a line may have {MAX_WORDS:,}"
                advice = "put each sentence on a line of its own"
                raise InputError(f"standard input:{number + 1}: {words}: {advice}")
            if interactive:
                ask(config.data.languages[0])
    if interactive:
        print(file=sys.stderr)


def printed_lines(
    options: TranslateConfig, search: SearchConfig, number: int, best: ScoredSentence
) -> Iterator[str]:
    """Yields the output for input line `number` (from 1); an empty line has empty columns."""
    if options.alignments == "json":
        translations = [{"text": each.text, **each.to_json()} for each in best.nbest]
        record = {"line": number, "source": best.source, "translations": translations}
        yield json.dumps(record, ensure_ascii=False)
        return
    from nmt.search.beam import normalised

    for each in best.nbest or [best]:
        columns = [str(number)] if search.nbest > 1 else []
        if options.scores:
            score = normalised(each.log_probability, each.symbols or 1, search.length_penalty)
            columns.append("" if math.isnan(score) else f"{score:.4f}")
        columns.append(" ".join(each.tokens) if options.tokenised else each.text)
        if options.alignments:
            columns.append(each.links)
        yield "\t".join(column.replace("\t", " ") for column in columns)


def ask(language: str) -> None:
    """Prints a prompt for the next line to stderr, since stdout is for translations only."""
    print(f"{language}> ", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
