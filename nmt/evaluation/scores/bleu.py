"""BLEU on tokens, its precisions, brevity penalty and length ratio, from the integers of `nmt.evaluation.bleu`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from nmt.evaluation.bleu import (
    HYPOTHESIS_LENGTH,
    REFERENCE_LENGTH,
    bleu_scores,
    brevity_penalties,
    enough_matches,
)
from nmt.evaluation.scores.base import Record, Score, quotient


class _OfNgrams(Score):
    """A score of the ten integers of BLEU."""

    field: ClassVar[str] = "bleu_stats"  # of the record, that holds the statistics

    def statistics(self, record: Record) -> Sequence[float] | None:
        return record.get(self.field)


class Bleu(_OfNgrams):
    """Corpus BLEU (Papineni et al., 2002) on tokens, case kept."""

    key = "bleu"
    title = "BLEU"
    unit = "points"

    def combine(self, sums: np.ndarray) -> np.ndarray:
        return bleu_scores(sums)

    def enough(self, sums: np.ndarray) -> np.ndarray:
        return enough_matches(sums)


class BleuNoUnk(Bleu):
    """BLEU of the sentences whose words are all in the shortlists, translated with `<unk>` forbidden (Table 1)."""

    key = "bleu_no_unk"
    title = "BLEU, no UNK"
    field = "bleu_stats_no_unk"


class BleuPrecisions(Bleu):
    """BLEU without its brevity penalty: the geometric mean of the precisions of 1- to 4-grams."""

    key = "bleu_precisions"
    title = "BLEU without brevity penalty"

    def combine(self, sums: np.ndarray) -> np.ndarray:
        return quotient(bleu_scores(sums), brevity_penalties(sums))


class BrevityPenalty(_OfNgrams):
    """BLEU's factor for short output, 0 to 1."""

    key = "brevity_penalty"
    title = "Brevity penalty"
    unit = "ratio"
    digits = 3

    def combine(self, sums: np.ndarray) -> np.ndarray:
        return brevity_penalties(sums)


class LengthRatio(_OfNgrams):
    """Words of the hypotheses for each word of the references."""

    key = "length_ratio"
    title = "Length ratio"
    unit = "ratio"
    digits = 3
    higher_is_better = None

    def combine(self, sums: np.ndarray) -> np.ndarray:
        return quotient(sums[..., HYPOTHESIS_LENGTH], sums[..., REFERENCE_LENGTH])
