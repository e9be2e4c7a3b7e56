"""Heatmaps of the attention on the same few development sentences at each validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytorch_lightning as pl

from nmt.data.batch import Batch
from nmt.data.pairs import Pairs
from nmt.evaluation.records import choose_kept, in_order
from nmt.report.heatmap import heatmap_figure
from nmt.report.style import style
from nmt.training.loggers import log_figure
from nmt.utils.environment import gather

PICTURED = 4  # sentences


class Heatmaps(pl.Callback):
    """Logs the attention with the reference force-decoded as `valid/alignment/1` and so on.

    Args:
        valid: the development pairs.
        edges: of the length buckets, over which the sentences are spread.
    """

    def __init__(self, valid: Pairs, edges: Sequence[int]) -> None:
        self.valid = valid
        rows = [
            {"id": n, "source": pair["source"], "length": len(pair["source"])}
            for n, pair in enumerate(valid)
        ]
        self.pictured = set(choose_kept(rows, PICTURED, list(edges)))
        self.found: list[dict[str, Any]] = []

    def on_validation_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Batch,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        weights = outputs["likelihood"].weights if outputs else None
        if weights is None or not trainer.loggers:
            return
        for place, row in enumerate(batch.rows.tolist()):
            if row not in self.pictured:
                continue
            pair = self.valid[row]
            source, target = pair["source_ids"], pair["target_ids"]
            self.found.append(
                {
                    "id": row,
                    "source": self.valid.source_vocabulary.symbols(source),
                    "target": self.valid.target_vocabulary.symbols(target),
                    "weights": weights[place, : len(target), : len(source)].float().tolist(),
                }
            )

    def on_validation_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        rows = in_order(row for part in gather(self.found) for row in part)
        self.found = []
        if not trainer.is_global_zero:
            return
        for place, row in enumerate(rows, 1):
            caption = f"{' '.join(row['source'])} → {' '.join(row['target'])}"
            name, step = f"valid/alignment/{place}", trainer.global_step
            with style():
                log_figure(trainer.loggers, name, heatmap_figure(row), step, caption)
