"""Scores of detokenised text: sacreBLEU, chrF and TER, from sacrebleu's statistics of a sentence.

sacrebleu computes the statistics of one sentence only in undocumented methods:
`_preprocess_segment`, `_extract_reference_info`, `_compute_segment_statistics`. They are called here
and nowhere else.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.metrics.base import Metric

from nmt.evaluation.bleu import bleu_scores
from nmt.evaluation.scores.base import Record, Score, quotient

# sacrebleu puts the two lengths first; `nmt.evaluation.bleu` puts them last
SACREBLEU_ORDER = [*range(2, 10), 0, 1]
REMEMBERED = 1 << 14  # references whose n-grams are kept: runs on one test set share them


class TextScore(Score):
    """A metric of sacrebleu; sentences without the reference as the file has it are left out."""

    slow = True

    @abstractmethod
    def metric(self) -> Metric:
        """sacrebleu's object."""

    @cached_property
    def _metric(self) -> Metric:
        metric = self.metric()
        metric.num_refs = 1  # part of the signature, which scoring a corpus would set
        return metric

    @cached_property
    def _reference(self) -> Any:
        return lru_cache(maxsize=REMEMBERED)(self._count)

    def _count(self, reference: str) -> Mapping[str, Any]:
        return self._metric._extract_reference_info([self._metric._preprocess_segment(reference)])

    def statistics(self, record: Record) -> Sequence[float] | None:
        reference = record.get("raw_reference")
        if reference is None:
            return None
        hypothesis = self._metric._preprocess_segment(record["detokenised"])
        found: list[float] = self._metric._compute_segment_statistics(
            hypothesis, self._reference(reference)
        )
        return found

    @property
    def signature(self) -> str:
        return str(self._metric.get_signature())


class SacreBleu(TextScore):
    """BLEU of detokenised text with a tokeniser of its own, 13a (Post, 2018)."""

    key = "sacrebleu"
    title = "sacreBLEU"
    unit = "points"
    slow = False

    def metric(self) -> BLEU:
        return BLEU(force=True)

    def combine(self, sums: np.ndarray) -> np.ndarray:
        return bleu_scores(sums[..., SACREBLEU_ORDER])


class ChrF(TextScore):
    """chrF2 (Popović, 2015): F-score of character n-grams.

    The statistics are, for each order, the n-grams of the hypothesis, of the reference, and of both.
    """

    key = "chrf"
    title = "chrF"
    unit = "points"

    def metric(self) -> CHRF:
        return CHRF()

    def combine(self, sums: np.ndarray) -> np.ndarray:
        hypothesis, reference, shared = sums[..., 0::3], sums[..., 1::3], sums[..., 2::3]
        both = (hypothesis > 0) & (reference > 0)  # orders that count
        orders = both.sum(axis=-1)
        precision = np.where(both, quotient(shared, hypothesis), 0.0)
        recall = np.where(both, quotient(shared, reference), 0.0)
        p = precision.sum(axis=-1) / np.maximum(orders, 1)
        r = recall.sum(axis=-1) / np.maximum(orders, 1)
        weight = CHRF.BETA**2
        return 100 * np.nan_to_num(quotient((1 + weight) * p * r, weight * p + r), nan=0.0)


class Ter(TextScore):
    """TER (Snover et al., 2006): edits per word of the reference, shifts of phrases among them.

    The statistics are edits and words of the reference. Slow on long bad hypotheses, hence off by
    default.
    """

    key = "ter"
    title = "TER"
    unit = "points"
    higher_is_better = False
    default = False

    def metric(self) -> TER:
        return TER()

    def combine(self, sums: np.ndarray) -> np.ndarray:
        edits, words = sums[..., 0], sums[..., 1]
        without_words = np.where(edits > 0, 1.0, 0.0)
        return 100 * np.where(words > 0, edits / np.where(words > 0, words, 1), without_words)
