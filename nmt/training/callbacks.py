"""Callbacks for random seeds, attention heatmaps, a sample translation, monitored metrics and resumed runs."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl

from nmt.config.schema import SearchConfig
from nmt.data.batch import Batch
from nmt.data.pairs import Pairs
from nmt.evaluation.records import Record, in_order
from nmt.inference.held_out import choose_kept
from nmt.search import beam_search
from nmt.text.symbols import UNKNOWN
from nmt.training.result_logging import log_heatmaps
from nmt.utils.devices import seed_random_numbers
from nmt.utils.environment import gather
from nmt.utils.errors import InputError

log = logging.getLogger(__name__)

SHOWN = 4  # number of development pairs with a heatmap at each validation
SHORT = 8  # preferred number of source words of the sentence that `SampleTranslation` shows


class Seeds(pl.Callback):
    """Derives the seed of each micro-batch from its number, so that a resumed run draws the same dropout masks."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        entropy = [self.seed, trainer.fit_loop.total_batch_idx, trainer.global_rank]
        seed = int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0])
        seed_random_numbers(seed, pl_module.device)


class Heatmaps(pl.Callback):
    """Logs attention heatmaps of the same development pairs at each validation (teacher forcing).

    Args:
        edges: maximum source words of each bucket. Pairs are chosen from the buckets in turn.
    """

    def __init__(self, edges: Sequence[int]) -> None:
        self.edges = list(edges)
        self.rows: list[Record] = []

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.valid: Pairs = trainer.datamodule.prepared.valid  # type: ignore[attr-defined]
        rows = [
            {"id": n, "source": pair["source"], "length": len(pair["source"])}
            for n, pair in enumerate(self.valid)
        ]
        self.shown = set(choose_kept(rows, SHOWN, self.edges))

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
            if row not in self.shown:
                continue
            pair = self.valid[row]
            source, target = pair["source_ids"], pair["target_ids"]
            self.rows.append(
                {
                    "id": row,
                    "source": self.valid.vocabularies[0].symbols(source),
                    "target": self.valid.vocabularies[1].symbols(target),
                    "weights": weights[place, : len(target), : len(source)].float().tolist(),
                }
            )

    def on_validation_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        rows = in_order(row for part in gather(self.rows) for row in part)
        self.rows = []
        if rows and trainer.is_global_zero and not trainer.sanity_checking:
            log_heatmaps(trainer.loggers, rows, trainer.global_step)


class SampleTranslation(pl.Callback):
    """Logs BLEU and the translation of one development sentence after each validation.

    The sentence is the same at each validation and in each run on the same text. The search is greedy, as for
    `valid/bleu`.

    Args:
        max_ratio: `search.max_ratio`.
    """

    def __init__(self, max_ratio: float) -> None:
        self.greedy = SearchConfig(beam_size=1, max_ratio=max_ratio)

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.valid: Pairs = trainer.datamodule.prepared.valid  # type: ignore[attr-defined]
        self.row = choose_short(self.valid)

    # Averaged weights (`callbacks=ema`) are swapped back before `on_validation_end`.
    def on_validation_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.state.fn != "fit" or trainer.sanity_checking or not trainer.is_global_zero:
            return
        batch = self.valid.batch([self.row]).move_to(pl_module.device)
        with trainer.precision_plugin.val_step_context():
            [[best]] = beam_search(
                pl_module.network,  # type: ignore[arg-type]
                batch.source,
                batch.source_mask,
                self.greedy,
            )
        self.tokens = best.tokens

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.state.fn != "fit" or trainer.sanity_checking or not trainer.is_global_zero:
            return
        pair = self.valid[self.row]
        bleu = trainer.callback_metrics.get("valid/bleu")
        score = "" if bleu is None else f" BLEU {float(bleu):.1f},"
        log.info(
            "update %d:%s and the model translates\n  source       %s\n  reference    %s\n  translation  %s",
            trainer.global_step,
            score,
            " ".join(pair["source"]),
            " ".join(pair["target"]),
            " ".join(self.valid.vocabularies[1].decode(self.tokens)),
        )


def choose_short(pairs: Pairs) -> int:
    """Returns the index of a pair of about `SHORT` source words, if possible without unknown words."""
    ranked = np.argsort(np.abs(pairs.words[:, 0] - SHORT), kind="stable").tolist()
    known = (row for row in ranked if not any(UNKNOWN in ids for ids in pairs.ids(row)))
    return int(next(known, ranked[0]))


class CheckMonitors(pl.Callback):
    """Raises InputError before the first update if a callback monitors a metric that no validation logs.

    Metrics `train/…` and `lr-…` are not checked, because they are logged only during training.
    Lightning's ModelCheckpoint can monitor `step` and `epoch`, although nothing logs them.

    Args:
        callbacks: the section `callbacks` of the configuration.
    """

    def __init__(self, callbacks: Mapping[str, Any]) -> None:
        self.monitors = {name: given.get("monitor") for name, given in callbacks.items()}

    def on_sanity_check_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        logged = sorted(trainer.callback_metrics)
        for name, monitor in self.monitors.items():
            if not monitor or monitor.startswith(("train/", "lr-")):
                continue
            if monitor not in [*logged, "step", "epoch"]:
                near = difflib.get_close_matches(monitor, logged, n=3, cutoff=0.3)
                raise InputError(
                    f"callbacks.{name}.monitor={monitor}: no validation logs it; choose from "
                    f"{', '.join(near or logged)}"
                )


class RenameResults(pl.Callback):
    """Renames results.json when a finished run is resumed, because the run is then unfinished again."""

    def __init__(self, results: Path) -> None:
        self.results = results

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.is_global_zero and self.results.is_file():
            self.results.replace(self.results.with_name("results.earlier.json"))
