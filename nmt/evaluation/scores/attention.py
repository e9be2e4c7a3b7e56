"""Entropy of the attention and its weight on `</s>`, with the reference force-decoded."""

from __future__ import annotations

from collections.abc import Sequence

from nmt.evaluation.scores.base import Ratio, Record


class _Mean(Ratio):
    """The mean over sentences of what the record holds under the score's key."""

    higher_is_better = None

    def statistics(self, record: Record) -> Sequence[float] | None:
        value = record.get(self.key)
        return None if value is None else (value, 1)


class AttentionEntropy(_Mean):
    """Entropy of a target step's weights: 0 where one word has them all."""

    key = "attention_entropy"
    title = "Attention entropy"
    unit = "nats"


class EosWeight(_Mean):
    """Mean weight on the source `</s>` over the target words."""

    key = "eos_weight"
    title = "Attention on </s>"
    digits = 3
