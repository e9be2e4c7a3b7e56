"""Scores as torchmetrics metrics, exact for any number of processes.

Legend: B sentences of an update, F statistics of a sentence, N buckets.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torchmetrics import Metric

from nmt.config.keys import EDGES
from nmt.evaluation.bleu import WIDTH, sentence_statistics
from nmt.evaluation.buckets import assign, buckets
from nmt.evaluation.scores import REGISTERED, Score, score_of_name
from nmt.evaluation.scores.base import Record
from nmt.utils.arguments import as_list
from nmt.utils.errors import InputError


class ScoreByLength(Metric):
    """A score of all sentences and of each length bucket, from integer statistics.

    The state is integers, summed over updates and processes, so that the result does not depend on
    how sentences were shared out.

    Args:
        score: key of a score whose statistics are integers, such as `alignment_error_rate`.
        width: F, the number of its statistics.
        edges: last length of each bucket; longer sentences form the open bucket.

    >>> metric = ScoreByLength(edges=[10, 20])
    >>> metric.update(torch.tensor([[6, 4, 2, 1, 7, 6, 5, 4, 7, 8]]), torch.tensor([9]))
    >>> {name: round(score, 4) for name, score in metric.compute().items()}
    {'all': 42.3837, '1-10': 42.3837}
    """

    full_state_update = False
    is_differentiable = False

    counts: Tensor  # (N, F) int64
    sentences: Tensor  # (N,) int64

    def __init__(
        self, score: str = "bleu", width: int = WIDTH, edges: Sequence[int] = EDGES
    ) -> None:
        super().__init__()
        self.score, self.edges = REGISTERED[score], list(edges)
        self.buckets = buckets(self.edges)
        zeros = torch.zeros(len(self.buckets), width, dtype=torch.int64)
        self.add_state("counts", zeros, dist_reduce_fx="sum")
        self.add_state("sentences", zeros[:, 0].clone(), dist_reduce_fx="sum")

    def update(self, counts: Tensor, lengths: Tensor) -> None:
        """Adds sentences: their statistics (B, F), and the lengths (B,) that they are bucketed by."""
        rows = torch.from_numpy(assign(lengths.cpu().numpy(), self.edges)).to(self.counts.device)
        self.counts.index_add_(0, rows, counts.to(self.counts))
        self.sentences.index_add_(0, rows, torch.ones_like(rows))

    def compute(self) -> dict[str, float]:
        """The score by name: `all`, then each bucket that holds a sentence (`1-10`, ..., `61+`)."""
        counts, held = self.counts.cpu().numpy(), self.sentences.cpu().numpy() > 0
        names = ["all", *(bucket.name for bucket in self.buckets)]
        sums = np.concatenate([counts.sum(axis=0, keepdims=True), counts])
        scores = self.score.combine(sums.astype(np.float64)).tolist()
        shown = zip(names, scores, [True, *held], strict=True)
        return {name: score for name, score, holds in shown if holds}


class CorpusScore(Metric):
    """A score of translations on their own, without a run: all sentences of it are one text.

    The state is the sums of the score's statistics over updates and processes.

    Args:
        score: `bleu`, `sacrebleu`, `chrf`, `ter`, `length_ratio`, `brevity_penalty`,
            one of your own as MODULE.NAME, or an object of
            `nmt.evaluation.scores.Score`.

    Raises:
        InputError: for another name, or a score that needs a model.

    >>> metric = CorpusScore("chrf")
    >>> metric.update(["Un chat dort."], ["Un chat noir dort."])
    >>> metric.update(["Il chante."], ["Il chante."])
    >>> round(float(metric.compute()), 2)
    65.65
    """

    full_state_update = False
    is_differentiable = False

    sums: Tensor  # (F,) float64

    def __init__(self, score: str | Score = "bleu") -> None:
        super().__init__()
        self.score = score_of_name(score, "score") if isinstance(score, str) else score
        width = len(self.score.statistics(self._records(["a"], ["a"])[0]) or [])
        if not width:
            raise InputError(f"{self.score.key}: not a score of translations and references alone")
        self.add_state("sums", torch.zeros(width, dtype=torch.float64), dist_reduce_fx="sum")

    def update(self, hypotheses: Sequence[str], references: Sequence[str]) -> None:
        """Adds sentences.

        Args:
            hypotheses: translations, one sentence each. `sacrebleu`, `chrf` and `ter` take
                ordinary text; tokens of the others are what stands between spaces.
            references: what they should be, in the same form.

        Raises:
            ValueError: for other numbers of them.
        """
        table = self.score.table(self._records(as_list(hypotheses), as_list(references)))
        self.sums += torch.from_numpy(np.nansum(table, axis=0)).to(self.sums)

    def compute(self) -> Tensor:
        """The score of all sentences; NaN before there is one, where it is undefined."""
        return torch.tensor(float(self.score.combine(self.sums.cpu().numpy())))

    @staticmethod
    def _records(hypotheses: Sequence[str], references: Sequence[str]) -> list[Record]:
        """What `nmt.evaluation.records` has of a sentence, as far as its two texts say it."""
        return [
            {
                "id": number,
                "hypothesis": hypothesis.split(),
                "reference": reference.split(),
                "detokenised": hypothesis,
                "raw_reference": reference,
                "bleu_stats": sentence_statistics(hypothesis.split(), reference.split()).tolist(),
            }
            for number, (hypothesis, reference) in enumerate(
                zip(hypotheses, references, strict=True)
            )
        ]
