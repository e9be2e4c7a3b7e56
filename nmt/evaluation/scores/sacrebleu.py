"""sacreBLEU (Post, 2018): BLEU of detokenised text with a tokeniser of its own (13a)."""

from __future__ import annotations

import numpy as np
from sacrebleu.metrics import BLEU

from nmt.evaluation.bleu import bleu_scores
from nmt.evaluation.scores.text import TextScore

# sacrebleu puts the two lengths first; `nmt.evaluation.bleu` puts them last
ORDER = [*range(2, 10), 0, 1]


class SacreBleu(TextScore):
    key = "sacrebleu"
    title = "sacreBLEU"
    unit = "points"
    slow = False

    def metric(self) -> BLEU:
        return BLEU(force=True)

    def combine(self, sums: np.ndarray) -> np.ndarray:
        return bleu_scores(sums[..., ORDER])
