"""Negative log-likelihood of the references in nats, and perplexity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nmt.evaluation.scores.base import Ratio, Record, quotient

LARGEST = 700.0  # exp of more exceeds every float


class NllPerWord(Ratio):
    """Of a word of the reference, `</s>` counted as one of each sentence.

    Words, not subwords: runs with different tokenizers stay comparable. The statistics are nats,
    words and sentences.
    """

    key = "nll_per_word"
    title = "NLL per word"
    unit = "nats"
    digits = 3
    higher_is_better = False

    def statistics(self, record: Record) -> Sequence[float] | None:
        if record.get("nll") is None:
            return None
        return record["nll"], len(record["reference"]) + 1, 1


class NllPerSentence(NllPerWord):
    """Of a sentence with its `</s>`, as the paper's Table 2."""

    key = "nll_per_sentence"
    title = "NLL per sentence"
    digits = 2
    by_length = False

    def combine(self, sums: np.ndarray) -> np.ndarray:
        return quotient(sums[..., 0], sums[..., 2])


class Perplexity(NllPerWord):
    """exp of the NLL per word."""

    key = "perplexity"
    title = "Perplexity"
    unit = ""
    digits = 2
    by_length = False

    def combine(self, sums: np.ndarray) -> np.ndarray:
        nats = super().combine(sums)
        return np.where(nats < LARGEST, np.exp(np.minimum(nats, LARGEST)), np.nan)
