"""Log-likelihoods of given translations, and their alignments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nmt.data.vocabulary import END_SYMBOL
from nmt.evaluation.records import Record
from nmt.inference.force_decoding import (
    RUNNERS_UP,
    alignment_row,
    force_decode_pairs,
)
from nmt.inference.lines import LineProcessor


@dataclass(frozen=True)
class ScoredPair:
    """A pair of sentences with its likelihood.

    Attributes:
        number: of the pair, from 1.
        source, target: words, without `</s>`.
        symbols: number of predicted symbols: words or subwords of the target, and `</s>`.
        score: log p(target | source) in nats: the sum over those symbols.
        row: as a line of alignments/<set>.jsonl; None where it was not asked for.
    """

    number: int
    source: list[str]
    target: list[str]
    symbols: int
    score: float
    row: Record | None = None


class PairScorer(LineProcessor):
    """Force-decodes pairs of lines in batches, and counts them; arguments as `LineProcessor`."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[ScoredPair]:
        """Some (source, target) lines with their likelihoods, in order.

        Raises:
            RunError: where a probability is NaN.
        """
        codec = self.trained.codec
        words = [(self.source_words(source), self.target_words(target)) for source, target in pairs]
        decodings = force_decode_pairs(
            self.trained, words, runners_up=RUNNERS_UP if self.attention else 0
        )
        scored = []
        for (source, target), decoding in zip(words, decodings, strict=True):
            self.lines += 1
            score, row = sum(decoding.log_probabilities), None
            if self.attention:
                row = alignment_row(codec, self.lines, source, decoding, score=score)
                row["target"] = [
                    *target,
                    END_SYMBOL,
                ]  # as given: the row has `<unk>` for unknown words
            symbols = len(decoding.ids)
            scored.append(ScoredPair(self.lines, source, target, symbols, score, row))
        return scored
