"""Heatmaps of the attention on the same few development sentences at each validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.loggers import Logger

from nmt.data.batch import Batch
from nmt.data.pairs import Pairs
from nmt.evaluation.records import Record, choose_kept, in_order
from nmt.utils.environment import gather

PICTURED = 4  # sentences

LogHeatmaps = Callable[[Sequence[Logger], Sequence[Record], int], None]


class Heatmaps(pl.Callback):
    """Logs the attention with the reference force-decoded.

    Args:
        edges: of the length buckets, over which the sentences are spread.
        log_heatmaps: gets the loggers, the rows (`id`, `source`, `target` and `weights` (T, S)) and
            the update; it is called on rank 0.
    """

    def __init__(self, edges: Sequence[int], log_heatmaps: LogHeatmaps) -> None:
        self.edges, self.log_heatmaps = list(edges), log_heatmaps
        self.rows: list[Record] = []

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.valid: Pairs = trainer.datamodule.prepared.valid  # type: ignore[attr-defined]
        rows = [
            {"id": n, "source": pair["source"], "length": len(pair["source"])}
            for n, pair in enumerate(self.valid)
        ]
        self.pictured = set(choose_kept(rows, PICTURED, self.edges))

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
            self.rows.append(
                {
                    "id": row,
                    "source": self.valid.source_vocabulary.symbols(source),
                    "target": self.valid.target_vocabulary.symbols(target),
                    "weights": weights[place, : len(target), : len(source)].float().tolist(),
                }
            )

    def on_validation_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        rows = in_order(row for part in gather(self.rows) for row in part)
        self.rows = []
        if rows and trainer.is_global_zero:
            self.log_heatmaps(trainer.loggers, rows, trainer.global_step)
