"""Lines of `nmt.translate` and `nmt.score`: read from a stream, and written as columns or JSON."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass
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


@dataclass(frozen=True)
class LineFormat:
    """The output format of nmt.translate and nmt.score.

    Attributes:
        alignments: `pharaoh` adds a column of links, `json` makes an object of the line; or None.
        null: largest weight on `</s>` of a linked word.
        numbers: the line's number before each translation.
        scores: the log-probability before each translation.
        detokenise: ordinary text; false: tokens separated by spaces.
        mean: of `nmt.score`: the log-probability divided by the number of predicted symbols.
    """

    alignments: str | None
    null: float
    numbers: bool = False
    scores: bool = False
    detokenise: bool = True
    mean: bool = False

    def translations(self, number: int, best: ScoredSentence) -> Iterator[str]:
        """The lines of output for line `number` of the input (from 1), without their ends."""
        if self.alignments == "json":
            objects = [{"text": each.text, **self._object(each, each.score)} for each in best.nbest]
            yield to_json({"line": number, "source": best.source, "translations": objects})
            return
        rows = [self._columns(each) for each in best.nbest]
        for columns in rows or [[""] * (1 + self.scores + bool(self.alignments))]:
            shown = [str(number), *columns] if self.numbers else columns
            yield "\t".join(column.replace("\t", " ") for column in shown)

    def pair(self, number: int, scored: ScoredSentence) -> str:
        """The line of output for one scored pair, without its end."""
        score = scored.score / scored.symbols if self.mean else scored.score
        if self.alignments == "json":
            content = {"line": number, "source": scored.source, **self._object(scored, score)}
            return to_json(content)
        links = [self._links(scored)] if self.alignments else []
        return "\t".join([f"{score:.4f}", *links])

    def _columns(self, sentence: ScoredSentence) -> list[str]:
        score = [f"{sentence.score:.4f}"] if self.scores else []
        text = sentence.text if self.detokenise else " ".join(sentence.tokens)
        return [*score, text, *([self._links(sentence)] if self.alignments else [])]

    def _object(self, sentence: ScoredSentence, score: float) -> dict[str, Any]:
        assert sentence.row is not None
        return {
            "tokens": sentence.tokens,
            "score": score,
            "links": self._links(sentence),
            "weights": sentence.row["weights"],
            "log_probability": sentence.row["log_probability"],
        }

    def _links(self, sentence: ScoredSentence) -> str:
        """Links i-j from source word i to target word j, from 0; empty without attention."""
        weights = sentence.weights
        return "" if weights is None else format_links(hard_links(weights, self.null))


def to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
