"""BLEU by length as a torchmetrics Metric: exact under any number of processes.

Legend: B sentences of an update, N buckets.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torchmetrics import Metric

from nmt.evaluation.bleu import WIDTH, bleu
from nmt.evaluation.buckets import assign, buckets


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

    def __init__(self, edges: Sequence[int] = (10, 20, 30, 40, 50, 60)) -> None:
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
