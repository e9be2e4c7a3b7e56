"""`ScoredSentence`: a translation with its log-probability and alignment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nmt.evaluation.alignment import attention_entropy, format_links, hard_links
from nmt.evaluation.records import Record
from nmt.evaluation.results import as_json
from nmt.text.symbols import END_SYMBOL

REPR_WIDTH = 100  # maximum characters per line of `repr`


@dataclass(eq=False, repr=False)
class ScoredSentence:
    """A target sentence of I words and its log-probability, given a source sentence of J words.

    Attributes:
        source: the J source words, without `</s>`.
        tokens: the I target words, without `</s>`.
        text: the target sentence as ordinary text.
        log_probability: log p(text | source) in nats, including `</s>`. NaN for an empty source
            sentence, which is not translated.
        symbols: number of predicted symbols (words or subwords), including `</s>`.
        unknown: positions of the `<unk>` symbols that are not replaced.
        word_log_probabilities: (I + 1,) log p of each word and of `</s>`, in nats; None if not computed.
        weights: (I + 1, J + 1) attention weights α_ij (equation 6 of the paper's section 3.1). Row i
            belongs to the step that predicts word i, and sums to 1. The last row and the last column
            belong to `</s>`. None without attention.
        log_normaliser: (I + 1,) log Z_i of the softmax over scores e_ij, so e_ij = log α_ij + log Z_i.
            None without attention.
        runners_up: (I + 1,) lists of the most probable alternative symbols, with log-probabilities.
        nbest: the best translations, starting with this one; empty for a given translation.
    """

    source: list[str]
    tokens: list[str]
    text: str
    log_probability: float
    symbols: int = 0
    unknown: tuple[int, ...] = ()
    word_log_probabilities: np.ndarray | None = None
    weights: np.ndarray | None = None
    log_normaliser: np.ndarray | None = None
    runners_up: list[list[tuple[str, float]]] = field(default_factory=list)
    nbest: tuple[ScoredSentence, ...] = ()

    @property
    def links(self) -> str:
        """Alignment links j-i from source word j to target word i (from 0); empty without attention."""
        return "" if self.weights is None else format_links(hard_links(self.weights))

    def row(self, number: int, reference: list[str] | None = None) -> Record:
        """Returns a line of `alignments/<set>.jsonl` (`nmt.evaluation.records.write_alignments`)."""
        entropy = None if self.weights is None else attention_entropy(self.weights)
        return {
            "id": number,
            "length": len(self.source),
            "source": [*self.source, END_SYMBOL],
            "target": [*self.tokens, END_SYMBOL],
            "log_probability": self.log_probability,
            "weights": as_json(self.weights),
            "log_normaliser": as_json(self.log_normaliser),
            "attention_entropy": as_json(entropy),
            "word_log_probabilities": as_json(self.word_log_probabilities),
            "runners_up": self.runners_up,
            "reference": reference or [],
        }

    def __repr__(self) -> str:
        lines = " ".join(self.source), self.text
        source, text = (
            each if len(each) <= REPR_WIDTH else f"{each[: REPR_WIDTH - 1]}…" for each in lines
        )
        return f"{source}\n-> {text} (log-probability {self.log_probability:.2f})"

    def _repr_html_(self) -> str:
        from nmt.report.notebook import sentence_html

        return sentence_html(self.row(1), self.text)

    def to_json(self) -> dict[str, Any]:
        """Returns the fields of a translation that `alignments=json` prints."""
        return {
            "tokens": self.tokens,
            "log_probability": self.log_probability,
            "links": self.links,
            "weights": as_json(self.weights),
            "word_log_probabilities": as_json(self.word_log_probabilities),
        }


class ScoredSentences(list[ScoredSentence]):
    """A list of sentences that notebooks display as HTML."""

    def _repr_html_(self) -> str:
        from nmt.report.notebook import sentences_html

        return sentences_html([(each.row(1), each.text) for each in self])
