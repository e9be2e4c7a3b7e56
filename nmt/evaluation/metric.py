"""Scores as torchmetrics metrics, exact for any number of processes.

Legend: B sentences of an update, N buckets.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torchmetrics import Metric

from nmt.config.keys import EDGES
from nmt.evaluation.alignment import COUNTS
from nmt.evaluation.bleu import WIDTH, bleu, sentence_statistics
from nmt.evaluation.buckets import assign, buckets
from nmt.evaluation.scores import REGISTERED, Score, score_of_name
from nmt.evaluation.scores.base import Record
from nmt.utils.arguments import as_list
from nmt.utils.errors import InputError


class BleuByLength(Metric):
    """Corpus BLEU of all sentences and of each length bucket.

    The state is integers, summed over updates and processes, so that the result does not depend on
    how sentences were shared out; the formula at the end is sacrebleu's (`nmt.evaluation.bleu`).

    Args:
        edges: last length of each bucket; longer sentences form the open bucket.

    >>> metric = BleuByLength(edges=[10, 20])
    >>> metric.update(torch.tensor([[6, 4, 2, 1, 7, 6, 5, 4, 7, 8]]), torch.tensor([9]))
    >>> {name: round(score, 4) for name, score in metric.compute().items()}
    {'all': 42.3837, '1-10': 42.3837}
    """

    full_state_update = False
    higher_is_better = True
    is_differentiable = False

    statistics: Tensor  # (N, 10) int64
    sentences: Tensor  # (N,) int64

    def __init__(self, edges: Sequence[int] = EDGES) -> None:
        super().__init__()
        self.edges = list(edges)
        self.buckets = buckets(self.edges)
        size = len(self.buckets)
        self.add_state(
            "statistics", torch.zeros(size, WIDTH, dtype=torch.int64), dist_reduce_fx="sum"
        )
        self.add_state("sentences", torch.zeros(size, dtype=torch.int64), dist_reduce_fx="sum")

    def update(self, statistics: Tensor, lengths: Tensor) -> None:
        """Adds sentences.

        Args:
            statistics: (B, 10) integers of `sentence_statistics`.
            lengths: (B,) the length that each sentence is bucketed by.
        """
        device = self.statistics.device
        rows = torch.from_numpy(assign(lengths.cpu().numpy(), self.edges)).to(device)
        self.statistics.index_add_(0, rows, statistics.to(device, torch.int64))
        self.sentences.index_add_(0, rows, torch.ones_like(rows))

    def compute(self) -> dict[str, float]:
        """BLEU by name: `all`, then each bucket that holds a sentence (`1-10`, ..., `61+`)."""
        scores = {"all": bleu(self.statistics.sum(dim=0).tolist())}
        for bucket, counts, sentences in zip(
            self.buckets, self.statistics.tolist(), self.sentences.tolist(), strict=True
        ):
            if sentences:
                scores[bucket.name] = bleu(counts)
        return scores


class AlignmentErrorRate(Metric):
    """Alignment error rate (Och and Ney, 2003), precision and recall of links against gold links.

    The state is integers, summed over updates and processes.

    >>> metric = AlignmentErrorRate()
    >>> metric.update(torch.tensor([[4, 3, 2, 3, 0, 5], [4, 3, 3, 3, 1, 5]]))
    >>> {name: round(score, 4) for name, score in metric.compute().items()}
    {'alignment_error_rate': 0.2143, 'precision': 0.75, 'recall': 0.8333}
    """

    full_state_update = False
    higher_is_better = False
    is_differentiable = False

    counts: Tensor  # (6,) int64

    def __init__(self) -> None:
        super().__init__()
        zeros = torch.zeros(len(COUNTS), dtype=torch.int64)
        self.add_state("counts", zeros, dist_reduce_fx="sum")

    def update(self, counts: Tensor) -> None:
        """Adds sentences: (B, 6) integers of `nmt.evaluation.alignment.sentence_counts`."""
        self.counts += counts.to(self.counts).sum(dim=0)

    def compute(self) -> dict[str, float]:
        """The three scores by key; those without anything to count are absent."""
        counts = self.counts.cpu().numpy().astype(float)
        values = {
            key: float(REGISTERED[key].combine(counts))
            for key in ("alignment_error_rate", "precision", "recall")
        }
        return {key: value for key, value in values.items() if value == value}


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
