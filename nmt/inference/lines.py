"""Lines of `nmt.translate` and `nmt.score`: read from a stream, and written as columns or JSON."""

from __future__ import annotations

import json
import math
import queue
import threading
from collections.abc import Iterator
from typing import Any, BinaryIO

from nmt.data.lines import decode_line
from nmt.evaluation.alignment import format_links, hard_links
from nmt.inference.force_decoding import ScoredSentence
from nmt.utils.errors import InputError

WAIT_S = 0.05  # for a further line, before those at hand are yielded


def batches_of_lines(stream: BinaryIO, most: int) -> Iterator[list[str]]:
    """Lists of at most `most` lines; together they are all lines of the stream, in order.

    A batch is not waited for longer than `WAIT_S` when input is slow.

    Raises:
        InputError: if the stream cannot be read, or a line is not text as in `decode_line`; the
            lines before it are yielded first.
    """
    lines: queue.Queue[str | InputError | None] = queue.Queue(maxsize=4 * most)

    def read() -> None:
        name = "standard input"
        try:
            for number, line in enumerate(iter(stream.readline, b""), 1):
                lines.put(decode_line(line, name, number))
            lines.put(None)
        except InputError as error:
            lines.put(error)
        except Exception as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            lines.put(InputError(f"{name}: cannot be read ({reason})"))

    threading.Thread(target=read, daemon=True).start()
    while True:
        gathered: list[str] = []
        item: str | InputError | None = ""
        while isinstance(item, str) and len(gathered) < most:
            try:
                item = lines.get(timeout=WAIT_S if gathered else None)
            except queue.Empty:
                break
            if isinstance(item, str):
                gathered.append(item)
        if gathered:
            yield gathered
        if isinstance(item, InputError):
            raise item
        if item is None:
            return


def translation_lines(
    options: Any, number: int, best: ScoredSentence, numbered: bool
) -> Iterator[str]:
    """The lines that `nmt.translate` prints for line `number` of its input, without their ends.

    Args:
        options: `alignments`, `scores` and `detokenise` of `TranslateConfig`.
        number: from 1.
        best: the line's translation; an empty one gives empty columns.
        numbered: whether each translation follows the number of its line.
    """
    if options.alignments == "json":
        translations = [{"text": each.text, **_object(each, each.score)} for each in best.nbest]
        yield _json({"line": number, "source": best.source, "translations": translations})
        return
    for each in best.nbest or [best]:
        columns = [str(number)] if numbered else []
        if options.scores:
            columns.append("" if math.isnan(each.score) else f"{each.score:.4f}")
        columns.append(each.text if options.detokenise else " ".join(each.tokens))
        if options.alignments:
            columns.append(_links(each))
        yield "\t".join(column.replace("\t", " ") for column in columns)


def pair_line(options: Any, number: int, scored: ScoredSentence) -> str:
    """The line that `nmt.score` prints for a pair, without its end.

    Args:
        options: `alignments` of `ScoreConfig`.
        number: as of `translation_lines`.
        scored: the pair.
    """
    if options.alignments == "json":
        content = {"line": number, "source": scored.source, **_object(scored, scored.score)}
        return _json(content)
    links = [_links(scored)] if options.alignments else []
    return "\t".join([f"{scored.score:.4f}", *links])


def _object(sentence: ScoredSentence, score: float) -> dict[str, Any]:
    assert sentence.row is not None
    return {
        "tokens": sentence.tokens,
        "score": score,
        "links": _links(sentence),
        "weights": sentence.row["weights"],
        "log_probability": sentence.row["log_probability"],
    }


def _links(sentence: ScoredSentence) -> str:
    """Links i-j from source word i to target word j, from 0; empty without attention."""
    weights = sentence.weights
    return "" if weights is None else format_links(hard_links(weights))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
