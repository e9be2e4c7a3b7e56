"""The metrics of a validation or test, which do not depend on the number of devices.

Sizes: B batch, S source length, T target length.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn
from torchmetrics import Metric

from nmt.config.schema import Config, SearchConfig
from nmt.data.batch import Batch
from nmt.data.pairs import Pairs
from nmt.evaluation.alignment import gold_links, sentence_counts, word_weights
from nmt.evaluation.scores.bleu import all_statistics
from nmt.layers import Likelihood, Network
from nmt.models.score_by_length import ScoreByLength
from nmt.search import beam_search

ATTENTION = ("eos_weight", "last_word_weight", "attention_entropy")
SUMS = ("nll", "words", "sentences", "attended", *ATTENTION)


class Sums(Metric):
    """Computes `size` sums in float64, over all calls of `update` and over all devices."""

    values: Tensor  # (size,)

    def __init__(self, size: int) -> None:
        super().__init__()
        self.add_state("values", torch.zeros(size, dtype=torch.float64), dist_reduce_fx="sum")

    def update(self, *numbers: Tensor) -> None:
        """Adds `numbers[n]` to sum n. If there are fewer numbers than sums, the last sums do not change."""
        added = torch.stack([number.to(self.values) for number in numbers])
        self.values[: len(added)] += added

    def compute(self) -> Tensor:
        return self.values


class HeldOutMetrics(nn.Module):
    """NLL, BLEU by length (greedy search), and attention statistics of one data set.

    With several devices, each sentence is still counted once. `eos_weight` and `last_word_weight` are the mean
    attention weights on `</s>` and on the last source word. Both are high until attention is learnt.

    Args:
        config: configuration. Only `evaluation`, `search.max_ratio` and `data` are used.
        name: `valid`, or `test/NAME` for the test set NAME.
        split: the sentence pairs of the data set. `batch.rows` contains indices of these pairs. If
            None, BLEU and alignment error rate are not computed.
        translated: how many of the first sentences are translated for BLEU. None means all sentences.
    """

    def __init__(
        self, config: Config, name: str, split: Pairs | None, translated: int | None
    ) -> None:
        super().__init__()
        self.name = name
        self.split = split
        kind, _, own = name.partition("/")
        self.text = config.data.test[own] if kind == "test" else config.data.valid
        self.greedy = SearchConfig(beam_size=1, max_ratio=config.search.max_ratio)
        self.translated = translated
        self.sums = Sums(len(SUMS))
        self.bleu = ScoreByLength("bleu", edges=config.evaluation.edges or ())
        self.alignment = ScoreByLength("alignment_error_rate", 6, [])

    def update(self, network: Network, batch: Batch, likelihood: Likelihood) -> None:
        """Adds a batch and the likelihood of its target sentences."""
        sums = [likelihood.nll.double().sum(), batch.words, torch.tensor(len(batch.rows))]
        if likelihood.weights is not None:
            sums += _attention_sums(likelihood.weights.float(), batch)
        self.sums.update(*sums)
        if self.split is None:
            return
        if likelihood.weights is not None:
            self._add_alignments(batch, likelihood.weights.float().cpu().numpy(), self.split)
        if likelihood.nll.isfinite().all():  # otherwise the callback TrainingRecord ends the run
            self._add_translations(network, batch, self.split)

    def scores(self) -> dict[str, float]:
        """Returns the scores by name."""
        sums = dict(zip(SUMS, self.sums.compute().tolist(), strict=True))
        scores = {
            "nll_per_word": sums["nll"] / max(sums["words"], 1),
            "nll_per_sentence": sums["nll"] / max(sums["sentences"], 1),
        }
        by_length = self.bleu.compute()
        overall = by_length.pop("all")
        if by_length:
            scores["bleu"] = overall
            scores |= {f"bleu_by_length/{name}": score for name, score in by_length.items()}
        if sums["attended"]:
            scores |= {name: sums[name] / sums["attended"] for name in ATTENTION}
        error_rate = self.alignment.compute()["all"]
        if not math.isnan(error_rate):
            scores["alignment_error_rate"] = error_rate
        return scores

    def _add_alignments(self, batch: Batch, weights: np.ndarray, split: Pairs) -> None:
        """Compares attention with the gold alignment of each sentence that has one."""
        for row, sentence in zip(batch.rows.tolist(), weights, strict=True):
            pair = split[row]
            gold = gold_links(pair, self.text, f"data.{self.name.replace('/', '.')}")
            if gold is None:
                continue
            source, target = pair["source_ids"], pair["target_ids"]
            words = word_weights(
                sentence[: len(target), : len(source)],
                split.vocabularies[0].word_index(source),
                split.vocabularies[1].word_index(target),
            )
            counts = sentence_counts(words, gold)
            self.alignment.update(torch.tensor([counts]), torch.tensor([len(target)]))

    def _add_translations(self, network: Network, batch: Batch, split: Pairs) -> None:
        most = len(split) if self.translated is None else self.translated
        chosen = (batch.rows < most).nonzero().squeeze(1)
        if not len(chosen):
            return
        source = batch.source[chosen]
        mask = batch.source_mask[chosen]
        longest = int(mask.sum(1).max())
        lists = beam_search(network, source[:, :longest], mask[:, :longest], self.greedy)
        pairs = [split[row] for row in batch.rows[chosen].tolist()]
        words = [split.vocabularies[1].words_of(best.tokens) for best, *_ in lists]
        statistics = all_statistics(words, [[pair["target"]] for pair in pairs])
        lengths = torch.tensor([len(pair["source"]) for pair in pairs])
        self.bleu.update(torch.from_numpy(statistics), lengths)


def _attention_sums(weights: Tensor, batch: Batch) -> list[Tensor]:
    """Returns the number of target symbols, and the sum of each `ATTENTION` statistic, given weights (B, T, S)."""
    last = batch.source_mask.sum(1) - 1  # (B,) position of </s>
    shares = []
    for position in (last, (last - 1).clamp(min=0)):
        column = position[:, None, None].expand(-1, weights.shape[1], 1)
        shares.append(weights.gather(2, column).double().sum())
    entropy = torch.special.entr(weights).double().sum()
    return [batch.target_mask.sum(), *shares, entropy]
