"""Output of nmt.translate and nmt.score: columns, or a JSON object per line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from nmt.evaluation.alignment import format_links, hard_links
from nmt.evaluation.records import Record
from nmt.inference.decoding import ScoredSentence


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

    def translations(
        self, number: int, source: Sequence[str], found: Sequence[ScoredSentence]
    ) -> Iterator[str]:
        """The lines of output for one line of input, without their ends.

        Args:
            number: of the line, from 1.
            source: its words.
            found: its translations; none for an empty line.
        """
        if self.alignments == "json":
            objects = [{"text": each.text, **self._object(each, each.score)} for each in found]
            yield to_json({"line": number, "source": list(source), "translations": objects})
            return
        rows = [self._columns(each) for each in found]
        for columns in rows or [[""] * (1 + self.scores + bool(self.alignments))]:
            shown = [str(number), *columns] if self.numbers else columns
            yield "\t".join(column.replace("\t", " ") for column in shown)

    def pair(self, number: int, scored: ScoredSentence) -> str:
        """The line of output for one scored pair, without its end."""
        score = scored.score / scored.symbols if self.mean else scored.score
        if self.alignments == "json":
            found = {"line": number, "source": scored.source, **self._object(scored, score)}
            return to_json(found)
        links = [self._links(scored.row)] if self.alignments else []
        return "\t".join([f"{score:.4f}", *links])

    def _columns(self, found: ScoredSentence) -> list[str]:
        score = [f"{found.score:.4f}"] if self.scores else []
        text = found.text if self.detokenise else " ".join(found.tokens)
        return [*score, text, *([self._links(found.row)] if self.alignments else [])]

    def _object(self, found: ScoredSentence, score: float) -> dict[str, Any]:
        assert found.row is not None
        return {
            "tokens": found.tokens,
            "score": score,
            "links": self._links(found.row),
            "weights": found.row["weights"],
            "log_probability": found.row["log_probability"],
        }

    def _links(self, row: Record | None) -> str:
        """Links i-j from source word i to target word j, from 0; empty without attention."""
        weights = None if row is None else row["weights"]
        return "" if weights is None else format_links(hard_links(weights, self.null))


def to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
