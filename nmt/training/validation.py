"""The validation callback: NLL, greedy BLEU and attention on the development set."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor
from torchmetrics import MetricCollection

from nmt.config import Config, SearchConfig
from nmt.data.batch import Batch
from nmt.data.prepare import Prepared
from nmt.data.vocabulary import written_words
from nmt.evaluation.alignment import Gold, gold_links, sentence_counts, word_weights
from nmt.evaluation.bleu import sentence_statistics
from nmt.evaluation.metric import AlignmentErrorRate, BleuByLength
from nmt.evaluation.records import choose_kept, in_order
from nmt.layers import Likelihood
from nmt.models.base import Translator, exact_sum
from nmt.report.heatmap import heatmap_figure
from nmt.report.style import style
from nmt.search import beam_search
from nmt.training.loggers import log_figure
from nmt.utils.environment import gather

ATTENTION = ("eos_weight", "last_word_weight", "attention_entropy")
PICTURED = 4  # sentences whose heatmap is logged at each validation
SUMS = ("nll", "words", "sentences", "attended", *ATTENTION)


class Validation(pl.Callback):
    """NLL, perplexity, greedy BLEU by length, and statistics of the attention.

    Scores are sums of all sentences, each counted once, over all devices; they are logged as
    `valid/…`, and are among the Trainer's `callback_metrics`. `eos_weight` and `last_word_weight`
    are mean weights of attention on `</s>` and on the last source word, which are high as long as
    attention has not been learnt.
    """

    def __init__(self, prepared: Prepared, config: Config) -> None:
        """Raises InputError for a gold alignment that does not fit."""
        self.prepared = prepared
        self.edges = list(config.evaluation.edges)
        self.bucket_by = config.evaluation.bucket_by
        self.null = config.evaluation.alignment.null
        self.translated = config.evaluation.valid_sentences
        self.greedy = SearchConfig(beam_size=1, max_ratio=config.search.max_ratio)
        metrics: dict[str, Any] = {name: exact_sum() for name in SUMS}
        metrics |= {"bleu": BleuByLength(self.edges), "alignment": AlignmentErrorRate()}
        # no compute groups: each metric is updated with other arguments
        self.metrics = MetricCollection(metrics, compute_groups=False)
        rows = []
        self.gold: dict[int, Gold] = {}  # by number of the pair
        for n, pair in enumerate(prepared.valid):
            rows.append({"id": n, "source": pair["source"], "length": len(pair["source"])})
            gold = gold_links(pair, config.data.valid, "data.valid")
            if gold is not None:
                self.gold[n] = gold
        self.pictured = set(choose_kept(rows, PICTURED, self.edges))
        self.heatmaps: list[dict[str, Any]] = []

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.metrics.to(pl_module.device)
        self.metrics.reset()
        self.heatmaps = []

    def on_validation_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: Any,
        outputs: Any,
        batch: Batch,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        if outputs is None:
            return  # this rank's share of the sentences is empty
        decoded: Likelihood = outputs["likelihood"]
        self.metrics["nll"].update(decoded.nll.double().sum())
        self.metrics["words"].update(batch.words)
        self.metrics["sentences"].update(len(batch))
        if decoded.weights is not None:
            self._attention(batch, decoded.weights.float())
            self._picture(batch, decoded.weights)
        self._translate(pl_module, batch)

    def _attention(self, batch: Batch, weights: Tensor) -> None:
        last = batch.source_mask.sum(1) - 1  # (B,) position of </s>
        for name, position in (("eos_weight", last), ("last_word_weight", (last - 1).clamp(min=0))):
            there = weights.gather(2, position[:, None, None].expand(-1, weights.shape[1], 1))
            self.metrics[name].update(there.double().sum())
        self.metrics["attention_entropy"].update(torch.special.entr(weights).double().sum())
        self.metrics["attended"].update(batch.target_mask.sum())
        split = self.prepared.valid
        for row, sentence in zip(batch.rows.tolist(), weights.cpu().numpy(), strict=True):
            if row not in self.gold:
                continue
            pair = split[row]
            source, target = pair["source_ids"], pair["target_ids"]
            words = word_weights(
                sentence[: len(target), : len(source)],
                self.prepared.source_vocabulary.word_index(source),
                self.prepared.target_vocabulary.word_index(target),
            )
            counts = sentence_counts(words, self.gold[row], self.null)
            self.metrics["alignment"].update(torch.tensor([counts]))

    def _picture(self, batch: Batch, weights: Tensor) -> None:
        """Keeps the attention of the same few sentences for heatmaps."""
        for place, row in enumerate(batch.rows.tolist()):
            if row not in self.pictured:
                continue
            pair = self.prepared.valid[row]
            source, target = pair["source_ids"], pair["target_ids"]
            self.heatmaps.append(
                {
                    "id": row,
                    "source": self.prepared.source_vocabulary.symbols(source),
                    "target": self.prepared.target_vocabulary.symbols(target),
                    "weights": weights[place, : len(target), : len(source)].float().tolist(),
                }
            )

    def _translate(self, model: Translator, batch: Batch) -> None:
        chosen = (batch.rows < self.translated).nonzero().squeeze(1)
        if not len(chosen):
            return
        source, mask = batch.source[chosen], batch.source_mask[chosen]
        longest = int(mask.sum(1).max())
        with model.trainer.precision_plugin.val_step_context():  # Lightning's own has ended
            found = beam_search(model.network, source[:, :longest], mask[:, :longest], self.greedy)
        statistics, lengths = [], []
        for row, hypotheses in zip(batch.rows[chosen].tolist(), found, strict=True):
            vocabulary, ids = self.prepared.target_vocabulary, hypotheses[0].tokens
            pair = self.prepared.valid[row]
            written = written_words(vocabulary, ids)
            statistics.append(sentence_statistics(written, pair["target"]))
            lengths.append(len(pair[self.bucket_by]))
        self.metrics["bleu"].update(torch.from_numpy(np.stack(statistics)), torch.tensor(lengths))

    def on_validation_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        found = {name: metric.compute() for name, metric in self.metrics.items()}
        sums = {name: float(found[name]) for name in SUMS}
        nll = sums["nll"] / max(sums["words"], 1)
        scores = {
            "nll_per_word": nll,
            "nll_per_sentence": sums["nll"] / max(sums["sentences"], 1),
            "perplexity": float(torch.tensor(nll).exp()),
        }
        if self.translated:
            by_length = dict(found["bleu"])
            scores["bleu"] = by_length.pop("all")
            scores |= {f"bleu_by_length/{name}": score for name, score in by_length.items()}
        if sums["attended"]:
            for name in ATTENTION:
                scores[name] = sums[name] / sums["attended"]
        if "alignment_error_rate" in found["alignment"]:
            scores["alignment_error_rate"] = found["alignment"]["alignment_error_rate"]
        for name, score in scores.items():
            pl_module.log(f"valid/{name}", score, prog_bar=name in ("nll_per_word", "bleu"))
        rows = in_order(row for part in gather(self.heatmaps) for row in part)
        for place, row in enumerate(rows, 1):
            with style():
                figure = heatmap_figure(row)
                caption = f"{' '.join(row['source'])} → {' '.join(row['target'])}"
                step = trainer.global_step
                log_figure(trainer.loggers, f"valid/alignment/{place}", figure, step, caption)
