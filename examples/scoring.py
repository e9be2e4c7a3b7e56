"""Trains one model with the paper's scoring function and one with `Distance`, in a Lightning Trainer.

    python examples/scoring.py
    python examples/scoring.py regime=laptop trainer.max_steps=400

All arguments are overrides of the configuration, as for `python -m nmt.train`.
"""

from __future__ import annotations

import sys

import pytorch_lightning as pl
from torch import Tensor, nn

import nmt
from nmt.data.module import TranslationData
from nmt.data.preparation import prepare
from nmt.models import build_model


class Distance(nn.Module):
    """e_ij = -|W_a s_{i-1} - U_a h_j|²: the nearer a key is to the query, the higher its score."""

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Returns the scores (B, K, S) of K queries (B, K, N) and S keys (B, S, N) for each of B sentences."""
        squares = query.square().sum(2).unsqueeze(2) + keys.square().sum(2).unsqueeze(1)
        return 2 * query @ keys.transpose(1, 2) - squares


def train(*overrides: str) -> dict[str, float]:
    """Trains a model and returns the scores of its last validation."""
    config = nmt.configure("+experiment=rnnsearch50", "regime=tiny", *overrides)
    text = prepare(config.data, config.tokenizer)
    pl.seed_everything(config.seed, verbose=False)
    model = build_model(config, len(text.vocabularies[0]), len(text.vocabularies[1]))
    steps = config.trainer["max_steps"]
    trainer = pl.Trainer(
        max_steps=steps,
        val_check_interval=steps,
        check_val_every_n_epoch=None,
        gradient_clip_val=config.trainer["gradient_clip_val"],
        use_distributed_sampler=False,  # the data module distributes batches to the ranks
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(model, TranslationData(text, config))
    return {name: float(value) for name, value in trainer.callback_metrics.items()}


if __name__ == "__main__":
    for scoring in ("nmt.layers.Additive", "scoring.Distance"):
        scores = train(*sys.argv[1:], f"model.scoring._target_={scoring}")
        print(
            f"{scoring}: NLL per word {scores['valid/nll_per_word']:.3f}, BLEU"
            f" {scores['valid/bleu']:.1f}, AER {scores['valid/alignment_error_rate']:.3f}"
        )
