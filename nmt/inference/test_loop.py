"""The test loop: a trained model over one test set.

Every sentence is force-decoded, translated, and translated without `<unk>`.

The batches are the same for any number of devices (rank r takes every N-th one), so that a
checkpoint's results do not depend on how many there are. On a CPU several batches are worked on at a
time, each by one thread, which changes no result either.

B batch, S source length, T target length.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nmt.data.batch import Batch, collate
from nmt.data.batches import evaluation_batches
from nmt.data.vocabulary import UNKNOWN, spelt, unknown_words, written_words
from nmt.evaluation.alignment import attention_entropy, eos_weight, sentence_counts
from nmt.evaluation.bleu import sentence_statistics
from nmt.evaluation.examples import Example
from nmt.evaluation.records import Record, in_order
from nmt.inference.force_decoding import (
    RUNNERS_UP,
    alignment_row,
    force_decode,
    weights_between_words,
)
from nmt.inference.trained import TrainedModel
from nmt.inference.unknown_words import replace_unknown_words
from nmt.layers import Likelihood
from nmt.search import Hypothesis, beam_search
from nmt.utils.environment import gather, rank_and_world
from nmt.utils.progress import unseen
from nmt.utils.workers import map_batches


def make_batches(trained: TrainedModel, examples: Sequence[Example]) -> list[Batch]:
    """This rank's share of a test set's batches, the longest sentences first."""
    codec, (rank, world) = trained.codec, rank_and_world()
    ids = [(codec.source.encode(e.source), codec.target.encode(e.target)) for e in examples]
    lengths, size = [len(source) for source, _ in ids], trained.config.search.batch_size
    return [
        collate([ids[row][0] for row in rows], [ids[row][1] for row in rows], rows)
        for rows in evaluation_batches(lengths, size, rank, world)
    ]


def run_test_set(
    trained: TrainedModel,
    examples: Sequence[Example],
    *,
    kept: Collection[int] = (),
    done: Callable[[list[Record]], object] = unseen,
) -> tuple[list[Record], list[Record]]:
    """Force-decodes and translates every sentence of a test set.

    Args:
        trained: the model; its device and its precision are the caller's.
        examples: the test set.
        kept: ids of the sentences whose alignment is kept step by step.
        done: is given the records of each batch that this rank has finished.

    Returns:
        On every rank a record of each sentence (`nmt.evaluation.records`) and a row of each one in
        `kept`, both in the order of the set.
    """
    step = _Step(trained, examples, frozenset(kept))
    records: list[Record] = []
    alignments: list[Record] = []
    filled = [batch for batch in make_batches(trained, examples) if len(batch)]
    for made, rows in map_batches(step, filled, trained.workers, trained.model.device):
        records += made
        alignments += rows
        done(made)
    parts = gather((records, alignments))
    return (
        in_order(record for made, _ in parts for record in made),
        in_order(row for _, rows in parts for row in rows),
    )


def mean_nll(
    trained: TrainedModel, batches: Iterable[Batch], done: Callable[[int], object] = unseen
) -> float:
    """NLL of given pairs in nats a sentence, their mean.

    Args:
        trained: the model.
        batches: this rank's share.
        done: is given the number of pairs of each batch that is finished.
    """
    device = trained.model.device

    def sums_of(batch: Batch) -> Tensor:
        nll = _likelihood(trained, batch.to(device)).nll.double().sum().cpu()
        return torch.stack([nll, torch.tensor(float(len(batch)))])

    sums = torch.zeros(2, dtype=torch.float64)  # NLL, sentences
    filled = [batch for batch in batches if len(batch)]
    for found in map_batches(sums_of, filled, trained.workers, device):
        sums += found
        done(int(found[1]))
    nll, sentences = torch.stack(gather(sums)).sum(0).tolist()
    return nll / max(sentences, 1)


def _likelihood(trained: TrainedModel, batch: Batch) -> Likelihood:
    likelihood: Likelihood = trained.model(
        batch.source, batch.source_mask, batch.target, batch.target_mask
    )
    return likelihood


@dataclass(frozen=True)
class _Step:
    """The processing of one batch of a test set."""

    trained: TrainedModel
    examples: Sequence[Example]
    kept: frozenset[int]

    def __call__(self, batch: Batch) -> tuple[list[Record], list[Record]]:
        """The records of the batch's sentences, and the alignments of those that are kept."""
        model, codec, search = self.trained.model, self.trained.codec, self.trained.config.search
        batch = batch.to(model.device)
        examples = [self.examples[row] for row in batch.rows.tolist()]
        decoded = _likelihood(self.trained, batch)
        nll = decoded.nll.double().sum(1).tolist()
        found = beam_search(model, batch.source, batch.source_mask, search)
        unknown = [unknown_words(codec.source, codec.target, e.source, e.target) for e in examples]
        free = [None if counts is None else not sum(counts) for counts in unknown]
        without = self._without_unknown(batch, free)
        weights = decoded.weights
        best = [hypotheses[0] for hypotheses in found]
        words, alignments = self._force_decode(batch, best, examples)
        records = []
        for place, example in enumerate(examples):
            record = self._record(example, best[place], words[place])
            record["nll"] = nll[place]
            record["no_unk"], record["unknown_words"] = free[place], unknown[place]
            if weights is not None:
                ends = int(batch.target_mask[place].sum()), int(batch.source_mask[place].sum())
                record |= self._attention(weights[place, : ends[0], : ends[1]], example)
            if free[place]:
                record["hypothesis_no_unk"] = without[place]
                free_stats = sentence_statistics(without[place], example.target)
                record["bleu_stats_no_unk"] = free_stats.tolist()
            records.append(record)
        return records, alignments

    def _without_unknown(self, batch: Batch, free: list[bool | None]) -> dict[int, list[str]]:
        """Translations with `<unk>` forbidden of the sentences that are free of unknown words."""
        places = [place for place, is_free in enumerate(free) if is_free]
        if not places:
            return {}
        mask = batch.source_mask[places]
        longest = int(mask.sum(1).max())
        found = beam_search(
            self.trained.model,
            batch.source[places, :longest],
            mask[:, :longest],
            self.trained.config.search,
            forbid_unknown=True,
        )
        decode = self.trained.codec.target.decode
        return {p: decode(h[0].tokens) for p, h in zip(places, found, strict=True)}

    def _attention(self, weights: Tensor, example: Example) -> Record:
        """Entropy of the attention to the reference, its weight on `</s>`, its links' counts."""
        ids = self.trained.codec.target.encode(example.target)
        between = weights_between_words(
            weights.float().cpu().numpy(), self.trained.codec, example.source, ids
        )
        scores: Record = {
            "attention_entropy": float(attention_entropy(between).mean()),
            "eos_weight": eos_weight(between),
        }
        if example.gold is not None:
            null = self.trained.config.evaluation.alignment.null
            scores["alignment_counts"] = sentence_counts(between, example.gold, null)
        return scores

    def _record(self, example: Example, best: Hypothesis, words: list[str | None]) -> Record:
        statistics, hypothesis = sentence_statistics(words, example.target), spelt(words)
        unknown = [place for place, word in enumerate(words) if word is None]
        return {
            "id": example.id,
            "source": list(example.source),
            "reference": list(example.target),
            "raw_reference": example.text,
            "hypothesis": hypothesis,
            "detokenised": self.trained.codec.detokenise(hypothesis),
            **({"unknown": unknown} if unknown else {}),
            "length": example.length(self.trained.config.evaluation.bucket_by),
            "score": best.score,
            "bleu_stats": statistics.tolist(),
        }

    def _force_decode(
        self, batch: Batch, best: list[Hypothesis], examples: list[Example]
    ) -> tuple[list[list[str | None]], list[Record]]:
        """Force-decodes the hypotheses whose attention is needed: for alignments and `<unk>`.

        Returns:
            The words of each hypothesis, None for an `<unk>` that is not replaced; the alignments of
            the sentences in `kept`.
        """
        trained, codec, search = self.trained, self.trained.codec, self.trained.config.search
        replace = search.replace_unk != "none"
        words = [written_words(codec.target, hypothesis.tokens) for hypothesis in best]
        alignments = []
        places = [
            place
            for place, (example, hypothesis) in enumerate(zip(examples, best, strict=True))
            if example.id in self.kept or (replace and UNKNOWN in hypothesis.tokens)
        ]
        sources = [batch.source[place][batch.source_mask[place]].tolist() for place in places]
        shown = any(examples[place].id in self.kept for place in places)
        decodings = force_decode(
            trained.model,
            sources,
            [best[place].tokens for place in places],
            runners_up=RUNNERS_UP if shown else 0,
        )
        for place, decoding in zip(places, decodings, strict=True):
            example = examples[place]
            if replace:
                words[place] = replace_unknown_words(
                    decoding, codec, example.source, search, trained.dictionary
                )
            if example.id in self.kept:
                row = alignment_row(
                    codec,
                    example.id,
                    example.source,
                    decoding,
                    score=best[place].score,
                    reference=example.target,
                )
                alignments.append(row)
        return words, alignments
