"""A trained model on a test set.

Every sentence is force-decoded, translated, and translated without `<unk>` if its pair has only
known words. Rank r takes every N-th batch, so that the results do not depend on the number of
devices.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from nmt.data.vocabulary import unknown_words
from nmt.evaluation.alignment import attention_entropy, eos_weight, sentence_counts
from nmt.evaluation.bleu import sentence_statistics
from nmt.evaluation.examples import Example
from nmt.evaluation.records import Record, in_order
from nmt.inference.decoding import (
    ScoredSentence,
    describe,
    force_decode,
    in_batches,
    search,
)
from nmt.inference.trained import TrainedModel
from nmt.utils.environment import gather, rank_and_world


def run_test_set(
    trained: TrainedModel,
    examples: Sequence[Example],
    *,
    kept: Collection[int] = (),
    done: Callable[[Example], object] = lambda _: None,
) -> tuple[list[Record], list[Record]]:
    """Force-decodes and translates every sentence of a test set.

    Args:
        trained: the model, on the device of this rank.
        examples: the test set.
        kept: ids of the sentences whose alignment is kept step by step.
        done: gets each example that this rank has finished.

    Returns:
        On every rank the record of each sentence (`nmt.evaluation.records`) and the row of each one
        in `kept`, both in the order of the set.
    """
    lengths = [len(trained.codec.source.encode(example.source)) for example in examples]

    def work(places: list[int]) -> list[tuple[Record, Record | None]]:
        return decode(trained, [examples[place] for place in places], kept)

    mine = []
    for place, made in in_batches(trained, lengths, work, *rank_and_world()):
        mine.append(made)
        done(examples[place])
    everyone = [made for part in gather(mine) for made in part]
    rows = [row for _, row in everyone if row is not None]
    return in_order(record for record, _ in everyone), in_order(rows)


def decode(
    trained: TrainedModel, examples: Sequence[Example], kept: Collection[int]
) -> list[tuple[Record, Record | None]]:
    """The record of each sentence of a batch, with its row if it is kept."""
    codec = trained.codec
    sources = [codec.source.encode(example.source) for example in examples]
    targets = [codec.target.encode(example.target) for example in examples]
    references = force_decode(trained.model, sources, targets)
    best = [hypotheses[0] for hypotheses in search(trained, sources)]
    pairs = [(example.source, found) for example, found in zip(examples, best, strict=True)]
    with_rows = {place for place, example in enumerate(examples) if example.id in kept}
    translations = describe(trained, pairs, with_rows)
    unknown = [unknown_words(codec.source, codec.target, e.source, e.target) for e in examples]
    known = [
        place for place, counts in enumerate(unknown) if counts is not None and not sum(counts)
    ]
    found = search(trained, [sources[place] for place in known], forbid_unknown=True)
    without = {p: codec.target.decode(h[0].tokens) for p, h in zip(known, found, strict=True)}
    made = []
    for place, example in enumerate(examples):
        translation, forced = translations[place], references[place]
        record = _record(trained, example, translation)
        record["nll"] = -sum(forced.log_probabilities)
        record["unknown_words"] = unknown[place]
        record["no_unk"] = None if unknown[place] is None else place in without
        if forced.weights is not None:
            between = codec.word_weights(forced.weights, example.source, forced.ids)
            record |= _attention(trained, example, between)
        if place in without:
            record["hypothesis_no_unk"] = without[place]
            statistics = sentence_statistics(without[place], example.target)
            record["bleu_stats_no_unk"] = statistics.tolist()
        row = translation.row
        if row is not None:
            row = {"id": example.id, **row, "reference": list(example.target)}
        made.append((record, row))
    return made


def _record(trained: TrainedModel, example: Example, translation: ScoredSentence) -> Record:
    words: list[str | None] = list(translation.tokens)
    for place in translation.unknown:  # matches no word of a reference
        words[place] = None
    unknown = list(translation.unknown)
    return {
        "id": example.id,
        "source": list(example.source),
        "reference": list(example.target),
        "raw_reference": example.text,
        "hypothesis": translation.tokens,
        "detokenised": translation.text,
        **({"unknown": unknown} if unknown else {}),
        "length": example.length(trained.config.evaluation.bucket_by),
        "score": translation.score,
        "bleu_stats": sentence_statistics(words, example.target).tolist(),
    }


def _attention(trained: TrainedModel, example: Example, weights: np.ndarray) -> Record:
    """Entropy of the attention to the reference, its weight on `</s>`, the counts of its links."""
    scores: Record = {
        "attention_entropy": float(attention_entropy(weights).mean()),
        "eos_weight": eos_weight(weights),
    }
    if example.gold is not None:
        null = trained.config.evaluation.alignment.null
        scores["alignment_counts"] = sentence_counts(weights, example.gold, null)
    return scores
