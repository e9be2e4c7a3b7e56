"""A torchmetrics metric for scores by sentence length, exact for any number of processes.

Sizes: B sentences per call of `update`, F statistics per sentence, N buckets.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchmetrics import Metric

from nmt.config.keys import EDGES
from nmt.evaluation.buckets import assign, bucket_name, buckets
from nmt.evaluation.scores import REGISTERED
from nmt.evaluation.scores.bleu import WIDTH


class ScoreByLength(Metric):
    """Computes a score of all sentences and of each length bucket, from statistics of each sentence.

    The state has the sums of these statistics in float64, for each bucket. Sums of integers are exact,
    so the result does not depend on which process has which sentence.

    Args:
        score: key of a score, such as `alignment_error_rate`.
        width: F, the number of statistics per sentence that this score needs.
        edges: maximum length of each bucket. Longer sentences are in one last bucket.

    >>> metric = ScoreByLength(edges=[10, 20])
    >>> metric.update(torch.tensor([[6, 4, 2, 1, 7, 6, 5, 4, 7, 8]]), torch.tensor([9]))
    >>> {name: round(score, 4) for name, score in metric.compute().items()}
    {'all': 42.3837, '1-10': 42.3837}
    """

    full_state_update = False
    is_differentiable = False

    sums: Tensor  # (N, F)
    sentences: Tensor  # (N,)

    def __init__(
        self, score: str = "bleu", width: int = WIDTH, edges: Sequence[int] = EDGES
    ) -> None:
        super().__init__()
        self.score = REGISTERED[score]
        self.edges = list(edges)
        zeros = torch.zeros(len(buckets(self.edges)), width, dtype=torch.float64)
        self.add_state("sums", zeros, dist_reduce_fx="sum")
        self.add_state("sentences", zeros[:, 0].clone(), dist_reduce_fx="sum")

    def update(self, statistics: Tensor, lengths: Tensor) -> None:
        """Adds B sentences with statistics (B, F). Their lengths (B,) select the buckets."""
        rows = torch.from_numpy(assign(lengths.cpu().numpy(), self.edges)).to(self.sums.device)
        self.sums.index_add_(0, rows, statistics.to(self.sums))
        self.sentences.index_add_(0, rows, torch.ones_like(rows).to(self.sentences))

    def compute(self) -> Any:
        """Returns scores by name: `all`, then each bucket that has sentences (`1-10`, ..., `61+`)."""
        sums = self.sums.cpu().numpy()
        held = self.sentences.cpu().numpy() > 0
        names = ["all", *(bucket_name(*each) for each in buckets(self.edges))]
        scores = self.score.combine(np.concatenate([sums.sum(axis=0, keepdims=True), sums]))
        shown = zip(names, scores.tolist(), [True, *held], strict=True)
        return {name: score for name, score, holds in shown if holds}
