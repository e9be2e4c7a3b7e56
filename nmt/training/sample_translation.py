"""Shows during training how the model translates one short sentence."""

from __future__ import annotations

import logging

import numpy as np
import pytorch_lightning as pl

from nmt.config.schema import SearchConfig
from nmt.data.pairs import Pairs
from nmt.search import beam_search
from nmt.text.symbols import UNKNOWN

log = logging.getLogger(__name__)

SHORT = 8  # preferred number of source words of the sentence


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

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
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
        pair = self.valid[self.row]
        bleu = trainer.callback_metrics.get("valid/bleu")
        score = "" if bleu is None else f" BLEU {float(bleu):.1f},"
        log.info(
            "update %d:%s and the model translates\n  source       %s\n  reference    %s\n  translation  %s",
            trainer.global_step,
            score,
            " ".join(pair["source"]),
            " ".join(pair["target"]),
            " ".join(self.valid.vocabularies[1].decode(best.tokens)),
        )


def choose_short(pairs: Pairs) -> int:
    """Returns the index of a pair of about `SHORT` source words, if possible without unknown words."""
    ranked = np.argsort(np.abs(pairs.words[:, 0] - SHORT), kind="stable").tolist()
    known = (row for row in ranked if not any(UNKNOWN in ids for ids in pairs.ids(row)))
    return int(next(known, ranked[0]))
