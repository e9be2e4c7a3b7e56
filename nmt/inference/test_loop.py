"""One test set through a model, as `Trainer.test` runs it.

Every sentence is force-decoded, translated, and translated without `<unk>`.

The batches are the same for any number of devices (rank r takes every N-th one), so that a
checkpoint's results do not depend on how many there are.

B batch, S source length, T target length.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor
from torch.utils.data import DataLoader
from tqdm import tqdm

from nmt.config.schema import EvaluationConfig, SearchConfig
from nmt.data.batch import Batch, collate
from nmt.data.vocabulary import SPECIAL, UNKNOWN, all_known
from nmt.evaluation.alignment import Gold, sentence_counts, weight_on_end
from nmt.evaluation.bleu import sentence_statistics
from nmt.evaluation.records import Record
from nmt.evaluation.scores import spread
from nmt.inference.force_decoding import (
    Codec,
    alignment_row,
    read,
    replace_unknown_words,
    weights_between_words,
)
from nmt.models.base import Translator
from nmt.search import Hypothesis, beam_search
from nmt.utils.environment import gather

UNMATCHED = "\x00"  # no token holds a control character


@dataclass(frozen=True)
class Example:
    """A sentence pair of a test set.

    Attributes:
        id: number of the sentence in its set.
        source, target: words, without `</s>`.
        text: the reference as the file has it, for scores of detokenised text.
        gold: its gold alignment, where there is one.
    """

    id: int
    source: Sequence[str]
    target: Sequence[str]
    text: str | None = None
    gold: Gold | None = None


class Testing(pl.LightningModule):
    """Runs the protocol over one test set with `Trainer.test`.

    Afterwards, on every rank, `records` holds a record of each sentence (`nmt.evaluation.records`)
    and `alignments` a row of each sentence in `kept`, both in the order of the set.

    Args:
        model: the trained model.
        examples: the test set.
        kept: ids of the sentences whose alignment is kept step by step.
        dictionary: translation of source words, for `search.replace_unk=dictionary`.
    """

    def __init__(
        self,
        model: Translator,
        codec: Codec,
        examples: Sequence[Example],
        search: SearchConfig,
        evaluation: EvaluationConfig,
        *,
        kept: Collection[int] = (),
        dictionary: Mapping[str, str] | None = None,
        progress: str | None = None,
    ) -> None:
        super().__init__()
        self.model = model
        self.codec = codec
        self.examples = list(examples)
        self.search = search
        self.evaluation = evaluation
        self.kept = set(kept)
        self.dictionary = dictionary
        self.progress = progress
        self.records: list[Record] = []
        self.alignments: list[Record] = []
        self._bar: Any = None

    def loader(self, rank: int, world: int) -> DataLoader[Batch]:
        """This rank's share of the batches, sentences of like length together, the longest first.

        What does not fit in memory then shows at once, and the time left is not underestimated.
        """
        encode = [
            (self.codec.source.encode(e.source), self.codec.target.encode(e.target))
            for e in self.examples
        ]
        order = sorted(range(len(encode)), key=lambda row: (len(encode[row][0]), row))
        size = self.search.batch_size
        batches = [order[start : start + size] for start in range(0, len(order), size)][::-1]

        def read(rows: list[int]) -> Batch:
            return collate([encode[row][0] for row in rows], [encode[row][1] for row in rows], rows)

        mine = [read(rows) for rows in batches[rank::world] or [[]]]  # a rank may have none
        return DataLoader(mine, batch_size=None, shuffle=False)  # type: ignore[arg-type]

    def on_test_start(self) -> None:
        self.records, self.alignments = [], []
        if self.progress and self.trainer.is_global_zero:
            self._bar = tqdm(
                total=len(self.examples), desc=self.progress, unit="sentence", dynamic_ncols=True
            )

    def test_step(self, batch: Batch, index: int) -> None:
        if not len(batch):
            return
        examples = [self.examples[row] for row in batch.rows.tolist()]
        nll = self.model(batch)
        sentence_nll = nll.nll.double().sum(1).tolist()
        found = beam_search(self.model, batch.source, batch.source_mask, self.search)
        free = [
            all_known(self.codec.source, self.codec.target, e.source, e.target) for e in examples
        ]
        without = self._without_unknown(batch, free)
        weights = nll.forced.weights
        outcomes = self._read_again(batch, [hypotheses[0] for hypotheses in found], examples)
        for place, (example, hypotheses, outcome) in enumerate(
            zip(examples, found, outcomes, strict=True)
        ):
            record = self._record(example, hypotheses[0], outcome)
            record["nll"] = sentence_nll[place]
            record["no_unk"] = free[place]
            if weights is not None:
                ends = int(batch.target_mask[place].sum()), int(batch.source_mask[place].sum())
                record |= self._attention(weights[place, : ends[0], : ends[1]], example)
            if free[place]:
                words = without[place]
                record["hypothesis_no_unk"] = words
                statistics = sentence_statistics(words, example.target)
                record["bleu_stats_no_unk"] = statistics.tolist()
            self.records.append(record)
        if self._bar is not None:
            self._bar.update(len(batch) * self.trainer.world_size)

    def on_test_epoch_end(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        parts = gather((self.records, self.alignments))
        self.records = [record for records, _ in parts for record in records]
        self.alignments = [row for _, rows in parts for row in rows]
        self.records.sort(key=lambda record: record["id"])
        self.alignments.sort(key=lambda row: row["id"])

    def _without_unknown(self, batch: Batch, free: list[bool | None]) -> dict[int, list[str]]:
        """Translations with `<unk>` forbidden of the sentences that are free of unknown words."""
        places = [place for place, is_free in enumerate(free) if is_free]
        if not places:
            return {}
        mask = batch.source_mask[places]
        longest = int(mask.sum(1).max())
        found = beam_search(
            self.model, batch.source[places, :longest], mask[:, :longest], self.search, True
        )
        decode = self.codec.target.decode
        return {p: decode(h[0].tokens) for p, h in zip(places, found, strict=True)}

    def _attention(self, weights: Tensor, example: Example) -> Record:
        """Spread and weight on `</s>` of the reading of the reference, and its links' counts."""
        ids = self.codec.target.encode(example.target)
        between = weights_between_words(
            weights.float().cpu().numpy(), self.codec, example.source, ids
        )
        scores: Record = {
            "spread": float(spread(between).mean()),
            "end_weight": weight_on_end(between),
        }
        if example.gold is not None:
            null = self.evaluation.alignment.null
            scores["alignment_counts"] = sentence_counts(between, example.gold, null)
        return scores

    def _record(self, example: Example, best: Hypothesis, words: list[str]) -> Record:
        statistics = sentence_statistics(matchable(words, best.tokens), example.target)
        side = example.source if self.evaluation.bucket_by == "source" else example.target
        return {
            "id": example.id,
            "source": list(example.source),
            "reference": list(example.target),
            "raw_reference": example.text,
            "hypothesis": words,
            "detokenised": self.codec.detokenise(words),
            "length": len(side),
            "score": best.score,
            "bleu_stats": statistics.tolist(),
        }

    def _read_again(
        self, batch: Batch, best: list[Hypothesis], examples: list[Example]
    ) -> list[list[str]]:
        """The hypotheses' words; those kept or holding `<unk>` are read once more for attention."""
        replace = self.search.replace_unk != "none"
        words = [self.codec.target.decode(hypothesis.tokens) for hypothesis in best]
        places = [
            place
            for place, (example, hypothesis) in enumerate(zip(examples, best, strict=True))
            if example.id in self.kept or (replace and UNKNOWN in hypothesis.tokens)
        ]
        sources = [batch.source[place][batch.source_mask[place]].tolist() for place in places]
        readings = read(self.model, sources, [best[place].tokens for place in places])
        for place, reading in zip(places, readings, strict=True):
            example = examples[place]
            if replace:
                words[place] = replace_unknown_words(
                    reading, self.codec, example.source, self.search, self.dictionary
                )
            if example.id in self.kept:
                row = alignment_row(
                    self.codec,
                    example.id,
                    example.source,
                    reading,
                    score=best[place].score,
                    reference=example.target,
                )
                self.alignments.append(row)
        return words


def matchable(words: list[str], tokens: Sequence[int]) -> list[str]:
    """Words as they are scored: an `<unk>` the model wrote matches nothing, not even that text."""
    if UNKNOWN not in tokens:
        return words
    return [word if word != SPECIAL[UNKNOWN] else UNMATCHED for word in words]


class Likelihood(pl.LightningModule):
    """Sums the NLL of given pairs with `Trainer.test`.

    Afterwards, on every rank, `nll_per_sentence` is their mean in nats.
    """

    def __init__(self, model: Translator) -> None:
        super().__init__()
        self.model = model
        self.sums = torch.zeros(2, dtype=torch.float64)
        self.nll_per_sentence = float("nan")

    def on_test_start(self) -> None:
        self.sums = torch.zeros(2, dtype=torch.float64)

    def test_step(self, batch: Batch, index: int) -> None:
        if not len(batch):
            return
        nll = self.model(batch).nll.double().sum().cpu()
        self.sums += torch.stack([nll, torch.tensor(float(len(batch)))])

    def on_test_epoch_end(self) -> None:
        parts = gather(self.sums)
        nll, sentences = torch.stack(parts).sum(0).tolist()
        self.nll_per_sentence = nll / max(sentences, 1)
