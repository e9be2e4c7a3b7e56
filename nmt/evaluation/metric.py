"""Scores as torchmetrics metrics, exact for any number of processes.

Legend: B sentences of an update, F statistics of a sentence, N buckets.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchmetrics import Metric

from nmt.config.keys import EDGES
from nmt.evaluation.buckets import assign, bucket_name, buckets
from nmt.evaluation.scores import REGISTERED, Score, score_of_name
from nmt.evaluation.scores.bleu import WIDTH, sentence_statistics
from nmt.utils.errors import InputError
from nmt.utils.text import as_list


class ScoreByLength(Metric):
    """A score of all sentences and of each length bucket, from statistics of sentences.

    The state is their sums over updates and processes, in float64: those of integers are exact, so
    that the result does not depend on how sentences were shared out.

    Args:
        score: a score, or its key, such as `alignment_error_rate`.
        width: F, the number of its statistics.
        edges: last length of each bucket; longer sentences form the open bucket.

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
        self, score: str | Score = "bleu", width: int = WIDTH, edges: Sequence[int] = EDGES
    ) -> None:
        super().__init__()
        self.score = REGISTERED[score] if isinstance(score, str) else score
        self.edges = list(edges)
        zeros = torch.zeros(len(buckets(self.edges)), width, dtype=torch.float64)
        self.add_state("sums", zeros, dist_reduce_fx="sum")
        self.add_state("sentences", zeros[:, 0].clone(), dist_reduce_fx="sum")

    def update(self, statistics: Tensor, lengths: Tensor) -> None:
        """Adds sentences: their statistics (B, F), and the lengths (B,) that they are bucketed by."""
        rows = torch.from_numpy(assign(lengths.cpu().numpy(), self.edges)).to(self.sums.device)
        self.sums.index_add_(0, rows, statistics.to(self.sums))
        self.sentences.index_add_(0, rows, torch.ones_like(rows).to(self.sentences))

    def compute(self) -> Any:
        """The score by name: `all`, then each bucket that holds a sentence (`1-10`, ..., `61+`)."""
        sums, held = self.sums.cpu().numpy(), self.sentences.cpu().numpy() > 0
        names = ["all", *(bucket_name(*each) for each in buckets(self.edges))]
        scores = self.score.combine(np.concatenate([sums.sum(axis=0, keepdims=True), sums]))
        shown = zip(names, scores.tolist(), [True, *held], strict=True)
        return {name: score for name, score, holds in shown if holds}


class CorpusScore(ScoreByLength):
    """A score of translations on their own, without a run: all sentences of it are one text.

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

    def __init__(self, score: str | Score = "bleu") -> None:
        chosen = score_of_name(score, "score") if isinstance(score, str) else score
        statistics = chosen.statistics(_record("a", "a"))
        if not statistics:
            raise InputError(f"{chosen.key}: not a score of translations and references alone")
        super().__init__(chosen, len(statistics), edges=())

    def update(self, hypotheses: Sequence[str], references: Sequence[str]) -> None:  # type: ignore[override]
        """Adds sentences.

        Args:
            hypotheses: translations, one sentence each. `sacrebleu`, `chrf` and `ter` take
                ordinary text; tokens of the others are what stands between spaces.
            references: what they should be, in the same form.

        Raises:
            ValueError: for other numbers of them.
        """
        pairs = zip(as_list(hypotheses), as_list(references), strict=True)
        table = torch.from_numpy(
            np.nan_to_num(self.score.table([_record(*pair) for pair in pairs]))
        )
        super().update(table, torch.ones(len(table)))

    def compute(self) -> Tensor:
        """The score of all sentences; NaN before there is one, where it is undefined."""
        return torch.tensor(super().compute()["all"])


def _record(hypothesis: str, reference: str) -> dict[str, Any]:
    """What `nmt.evaluation.records` has of a sentence, as far as its two texts say it."""
    words = hypothesis.split(), reference.split()
    return {
        "id": 0,
        "hypothesis": words[0],
        "reference": words[1],
        "detokenised": hypothesis,
        "raw_reference": reference,
        "bleu_stats": sentence_statistics(*words).tolist(),
    }
