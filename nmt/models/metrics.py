"""What a validation or a test of a model measures, as sums that do not depend on devices.

B batch, S source length, T target length.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torchmetrics import MetricCollection, SumMetric

from nmt.config import Config, SearchConfig
from nmt.data.batch import Batch
from nmt.data.pairs import Pairs
from nmt.data.vocabulary import written_words
from nmt.evaluation.alignment import gold_links, sentence_counts, word_weights
from nmt.evaluation.metric import ScoreByLength
from nmt.evaluation.scores.bleu import sentence_statistics
from nmt.layers import Likelihood, Network
from nmt.search import beam_search

ATTENTION = ("eos_weight", "last_word_weight", "attention_entropy")
SUMS = ("nll", "words", "sentences", "attended", *ATTENTION)


def exact_sum() -> SumMetric:
    """A sum in float64, over all devices, in which NaN is kept."""
    metric = SumMetric(nan_strategy="disable")
    metric.set_dtype(torch.float64)
    return metric


class HeldOutMetrics(nn.Module):
    """NLL, greedy BLEU by length, and statistics of the attention, of one text.

    Each sentence is counted once, over all devices. `eos_weight` and `last_word_weight` are mean
    weights of attention on `</s>` and on the last source word, which are high as long as attention
    has not been learnt.

    Args:
        config: `evaluation`, `search.max_ratio` and the gold alignments of `data` are used.
        key: the section that describes the text, such as `data.valid`.
        translated: number of sentences, from the first, that are translated for BLEU; None: all.
    """

    def __init__(self, config: Config, key: str, translated: int | None) -> None:
        super().__init__()
        self.evaluation, self.key = config.evaluation, key
        name = key.removeprefix("data.test.")
        self.text = config.data.valid if key == "data.valid" else config.data.test[name]
        self.greedy = SearchConfig(beam_size=1, max_ratio=config.search.max_ratio)
        self.translated = translated
        metrics: dict[str, Any] = {name: exact_sum() for name in SUMS}
        metrics |= {
            "bleu": ScoreByLength("bleu", edges=config.evaluation.edges or ()),
            "alignment": ScoreByLength("alignment_error_rate", 6, []),
        }
        # no compute groups: each metric is updated with other arguments
        self.metrics = MetricCollection(metrics, compute_groups=False)

    def update(
        self, network: Network, batch: Batch, likelihood: Likelihood, split: Pairs | None
    ) -> None:
        """Adds a batch.

        Args:
            likelihood: of its target sentences.
            split: the text, whose words and gold alignments its rows name; None: only NLL and
                attention are measured.
        """
        self.metrics["nll"].update(likelihood.nll.double().sum())
        self.metrics["words"].update(batch.words)
        self.metrics["sentences"].update(len(batch))
        if likelihood.weights is not None:
            self._add_attention(batch, likelihood.weights.float())
        if split is None:
            return
        if likelihood.weights is not None:
            self._add_alignments(batch, likelihood.weights.float(), split)
        self._add_translations(network, batch, split)

    def scores(self) -> dict[str, float]:
        """The scores by name."""
        found = {name: metric.compute() for name, metric in self.metrics.items()}
        sums = {name: float(found[name]) for name in SUMS}
        nll = sums["nll"] / max(sums["words"], 1)
        scores = {
            "nll_per_word": nll,
            "nll_per_sentence": sums["nll"] / max(sums["sentences"], 1),
        }
        by_length = dict(found["bleu"])
        overall = by_length.pop("all")
        if by_length:
            scores["bleu"] = overall
            scores |= {f"bleu_by_length/{name}": score for name, score in by_length.items()}
        if sums["attended"]:
            scores |= {name: sums[name] / sums["attended"] for name in ATTENTION}
        if not math.isnan(found["alignment"]["all"]):
            scores["alignment_error_rate"] = found["alignment"]["all"]
        return scores

    def reset(self) -> None:
        self.metrics.reset()

    def _add_attention(self, batch: Batch, weights: Tensor) -> None:
        last = batch.source_mask.sum(1) - 1  # (B,) position of </s>
        for name, position in (("eos_weight", last), ("last_word_weight", (last - 1).clamp(min=0))):
            there = weights.gather(2, position[:, None, None].expand(-1, weights.shape[1], 1))
            self.metrics[name].update(there.double().sum())
        self.metrics["attention_entropy"].update(torch.special.entr(weights).double().sum())
        self.metrics["attended"].update(batch.target_mask.sum())

    def _add_alignments(self, batch: Batch, weights: Tensor, split: Pairs) -> None:
        """Counts links against gold ones, of sentences that have them."""
        for row, sentence in zip(batch.rows.tolist(), weights.cpu().numpy(), strict=True):
            pair = split[row]
            gold = gold_links(pair, self.text, self.key)
            if gold is None:
                continue
            source, target = pair["source_ids"], pair["target_ids"]
            words = word_weights(
                sentence[: len(target), : len(source)],
                split.source_vocabulary.word_index(source),
                split.target_vocabulary.word_index(target),
            )
            counts = sentence_counts(words, gold)
            self.metrics["alignment"].update(torch.tensor([counts]), torch.tensor([len(target)]))

    def _add_translations(self, network: Network, batch: Batch, split: Pairs) -> None:
        most = len(split) if self.translated is None else self.translated
        chosen = (batch.rows < most).nonzero().squeeze(1)
        if not len(chosen):
            return
        source, mask = batch.source[chosen], batch.source_mask[chosen]
        longest = int(mask.sum(1).max())
        found = beam_search(network, source[:, :longest], mask[:, :longest], self.greedy)
        statistics, lengths = [], []
        for row, hypotheses in zip(batch.rows[chosen].tolist(), found, strict=True):
            pair = split[row]
            written = written_words(split.target_vocabulary, hypotheses[0].tokens)
            statistics.append(sentence_statistics(written, pair["target"]))
            lengths.append(len(pair["source"]))
        self.metrics["bleu"].update(torch.from_numpy(np.stack(statistics)), torch.tensor(lengths))
