"""Output of nmt.translate and nmt.score: columns, or a JSON object per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from nmt.evaluation.alignment import format_links, hard_links
from nmt.evaluation.records import Record
from nmt.inference.scoring import ScoredPair
from nmt.inference.translation import TranslatedLine, Translation


@dataclass(frozen=True)
class LineFormat:
    """The output format of nmt.translate.

    Attributes:
        numbers: the line's number before each translation.
        scores: the log-probability before each translation.
        detokenise: ordinary text; false: tokens separated by spaces.
        alignments: `pharaoh` adds a column of links, `json` makes an object of the line; None.
        null: largest weight on `</s>` of a linked word.
    """

    numbers: bool
    scores: bool
    detokenise: bool
    alignments: str | None
    null: float

    def lines(self, sentence: TranslatedLine) -> Iterator[str]:
        """The lines of output for one line of input, without their ends."""
        if self.alignments == "json":
            described = [self._object(found) for found in sentence.translations]
            record = {"line": sentence.number, "source": sentence.words, "translations": described}
            yield json.dumps(record, ensure_ascii=False, allow_nan=False)
            return
        number = [str(sentence.number)] if self.numbers else []
        rows = [[*number, *self._columns(found)] for found in sentence.translations]
        if not rows:  # an empty line: as many columns as any other
            rows = [[*number, *[""] * (1 + self.scores + bool(self.alignments))]]
        for columns in rows:
            yield "\t".join(column.replace("\t", " ") for column in columns)

    def _columns(self, found: Translation) -> list[str]:
        score = [f"{found.score:.4f}"] if self.scores else []
        text = found.text if self.detokenise else " ".join(found.words)
        links = [_links(found.row, self.null)] if self.alignments else []
        return [*score, text, *links]

    def _object(self, found: Translation) -> dict[str, Any]:
        return {
            "text": found.text,
            "tokens": found.words,
            "score": found.score,
            **_attention(found.row, self.null),
        }


def pair_line(pair: ScoredPair, mean: bool, alignments: str | None, null: float) -> str:
    """The line of output for one scored pair, without its end.

    Args:
        mean: the log-probability divided by the number of predicted symbols.
        alignments, null: as of `LineFormat`.
    """
    score = pair.score / pair.symbols if mean else pair.score
    if alignments == "json":
        record = {
            "line": pair.number,
            "source": pair.source,
            "tokens": pair.target,
            "score": score,
            **_attention(pair.row, null),
        }
        return json.dumps(record, ensure_ascii=False, allow_nan=False)
    links = [_links(pair.row, null)] if alignments else []
    return "\t".join([f"{score:.4f}", *links])


def _links(row: Record | None, null: float) -> str:
    """Links i-j from source word i to target word j, from 0; empty without attention."""
    weights = None if row is None else row["weights"]
    return "" if weights is None else format_links(hard_links(weights, null))


def _attention(row: Record | None, null: float) -> dict[str, Any]:
    """The entries of a JSON object on attention and probabilities."""
    assert row is not None
    return {
        "links": _links(row, null),
        "weights": row["weights"],
        "log_probability": row["log_probability"],
    }
