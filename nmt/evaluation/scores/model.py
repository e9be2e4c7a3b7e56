"""Scores of the likelihood of references, of attention weights, and of alignments derived from these weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from nmt.evaluation.scores.base import Ratio, Sentence, quotient

LINKS, SURE, HITS_SURE, HITS_POSSIBLE, ON_EOS, WORDS = range(6)  # indices of `alignment_counts`
LARGEST = 700.0  # exp overflows above about 709


class NllPerWord(Ratio):
    """Negative log-likelihood per word of the reference; `</s>` counts as a word.

    Words are counted instead of subwords, so that runs with different tokenizers are comparable. The
    statistics are the NLL in nats, the number of words, and the number of sentences (1).
    """

    key = "nll_per_word"
    title = "NLL per word"
    unit = "nats"
    digits = 3
    higher_is_better = False
    best: ClassVar[float | None] = 0.0

    def statistics(self, record: Sentence) -> Sequence[float] | None:
        if record.get("nll") is None:
            return None
        return record["nll"], len(record["reference"]) + 1, 1


class NllPerSentence(NllPerWord):
    """Negative log-likelihood per sentence, including `</s>`, as in Table 2 of the paper."""

    key = "nll_per_sentence"
    title = "NLL per sentence"
    digits = 2
    by_length = False
    below = 2


class Perplexity(NllPerWord):
    """The exponential of the NLL per word."""

    key = "perplexity"
    title = "Perplexity"
    unit = ""
    best = 1.0
    digits = 2
    by_length = False

    def combine(self, sums: np.ndarray) -> np.ndarray:
        nats = super().combine(sums)
        return np.where(nats < LARGEST, np.exp(np.minimum(nats, LARGEST)), np.nan)


class AttentionEntropy(Ratio):
    """Entropy of attention, averaged over the target steps of a sentence, and then over sentences."""

    key = "attention_entropy"
    title = "Attention entropy"
    unit = "nats"
    higher_is_better = None

    def statistics(self, record: Sentence) -> Sequence[float] | None:
        value = record.get(self.key)
        return None if value is None else (value, 1)


class EosWeight(AttentionEntropy):
    """Weight on the source `</s>`, averaged over the target words of a sentence, and then over sentences."""

    key = "eos_weight"
    title = "Attention on </s>"
    unit = ""
    digits = 3


class AlignmentPrecision(Ratio):
    """|A∩P| / |A|, where A are the links derived from attention, and P the possible gold links."""

    key = "precision"
    title = "Alignment precision"
    digits = 3
    higher_is_better: ClassVar[bool | None] = True
    best: ClassVar[float | None] = 1.0
    worst: ClassVar[float | None] = 0.0
    field = "alignment_counts"
    above = HITS_POSSIBLE
    below = LINKS


class AlignmentRecall(AlignmentPrecision):
    """|A∩S| / |S|, where A are the links derived from attention, and S the sure gold links."""

    key = "recall"
    title = "Alignment recall"
    above = HITS_SURE
    below = SURE


class EosShare(AlignmentPrecision):
    """Share of target words whose largest weight is on the source `</s>`."""

    key = "eos_share"
    title = "Words that attend most to </s>"
    higher_is_better = None
    best = worst = None
    above = ON_EOS
    below = WORDS


class AlignmentErrorRate(AlignmentPrecision):
    """Alignment error rate (Och and Ney, 2003), 0 to 1: 1 - (|A∩S| + |A∩P|) / (|A| + |S|)."""

    key = "alignment_error_rate"
    title = "Alignment error rate"
    higher_is_better = False
    best = 0.0
    worst = 1.0

    def combine(self, sums: np.ndarray) -> np.ndarray:
        hits = sums[..., HITS_SURE] + sums[..., HITS_POSSIBLE]
        return 1.0 - quotient(hits, sums[..., LINKS] + sums[..., SURE])
