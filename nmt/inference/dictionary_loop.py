"""A dictionary from the model's own attention, for words in place of `<unk>` (Luong et al., 2015).

B batch, S source length, T target length.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytorch_lightning as pl

from nmt.data.batch import Batch
from nmt.data.splits import Split
from nmt.evaluation.alignment import Link, hard_links
from nmt.inference.force_decoding import Codec, weights_between_words
from nmt.inference.unknown_words import learn_dictionary
from nmt.models.base import Translator
from nmt.utils.environment import gather

Aligned = tuple[Sequence[str], Sequence[str], list[Link]]


class Lexicon(pl.LightningModule):
    """Force-decodes given pairs with `Trainer.test` and counts which words attention links.

    Afterwards, on every rank, `dictionary` holds the target word that each source word is most
    often linked to; words are those of the text, the ones outside the shortlists among them.

    Args:
        model: a trained model with attention.
        codec: its vocabularies.
        pairs: the split that the batches' `rows` are numbers of.
        null: see `nmt.evaluation.alignment.hard_links`.
    """

    def __init__(self, model: Translator, codec: Codec, pairs: Split, null: float) -> None:
        super().__init__()
        self.model = model
        self.codec = codec
        self.pairs = pairs
        self.null = null
        self.dictionary: dict[str, str] = {}
        self._aligned: list[Aligned] = []

    def on_test_start(self) -> None:
        self._aligned = []

    def test_step(self, batch: Batch, index: int) -> None:
        if not len(batch):
            return
        # Not model(batch): the probabilities of words, most of the work, are not asked for.
        memory = self.model.encode(batch.source, batch.source_mask)
        forced = self.model.decoder(batch.target, batch.target_mask, memory)
        assert forced.weights is not None
        weights = forced.weights.float().cpu().numpy()  # (B, T, S)
        sources = batch.source_mask.sum(1).tolist()
        targets = batch.target_mask.sum(1).tolist()
        for place, row in enumerate(batch.rows.tolist()):
            pair = self.pairs[row]
            between = weights_between_words(
                weights[place, : targets[place], : sources[place]],
                self.codec,
                pair["source"],
                pair["target_ids"].tolist(),
            )
            self._aligned.append((pair["source"], pair["target"], hard_links(between, self.null)))

    def on_test_epoch_end(self) -> None:
        parts: list[list[Aligned]] = gather(self._aligned)
        self.dictionary = learn_dictionary(pair for part in parts for pair in part)
        self._aligned = []
