"""The likelihood of given translations, and how they align with their sources."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from nmt.data.batch import collate
from nmt.data.batches import evaluation_batches
from nmt.data.vocabulary import END_SYMBOL
from nmt.evaluation.records import Record
from nmt.inference.force_decoding import RUNNERS_UP, alignment_row, force_decode, source_mass
from nmt.inference.lines import LineProcessor
from nmt.search.candidates import NOT_NUMBERS
from nmt.utils.errors import RunError
from nmt.utils.workers import map_batches

Scored = tuple[float, Record | None, list[int] | None]  # score, row and unread of a `ScoredPair`


@dataclass(frozen=True)
class ScoredPair:
    """A pair of sentences with its likelihood.

    Attributes:
        number: of the pair, from 1.
        source, target: words, without `</s>`.
        symbols: that were predicted: words or subwords of the target, and `</s>`.
        score: log p(target | source) in nats: the sum over those symbols.
        row: as a line of alignments/<set>.jsonl; None where it was not asked for.
        unread: source words that no target word reads, by their place; None where attention was not
            asked for, or there is none.
    """

    number: int
    source: list[str]
    target: list[str]
    symbols: int
    score: float
    row: Record | None = None
    unread: list[int] | None = None


class PairScorer(LineProcessor):
    """Force-decodes pairs of lines in batches, and counts them; arguments as `LineProcessor`."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[ScoredPair]:
        """Some (source, target) lines with their likelihoods, in order.

        Raises:
            RunError: where a probability is NaN.
        """
        codec = self.trained.codec
        words = [(self.source_words(source), self.target_words(target)) for source, target in pairs]
        ids = [(codec.source.encode(s), codec.target.encode(t)) for s, t in words]
        first = self.lines + 1

        least = self.trained.config.evaluation.alignment.unread

        def work(places: list[int]) -> list[Scored]:
            sources, targets = zip(*(ids[place] for place in places), strict=True)
            if not self.attention:
                batch = collate(sources, targets).to(self.device)
                with torch.no_grad():
                    nll = self.trained.model(batch).nll.double().sum(1).tolist()
                if any(map(math.isnan, nll)):
                    raise RunError(NOT_NUMBERS)
                return [(-each, None, None) for each in nll]
            scored: list[Scored] = []
            decodings = force_decode(self.trained.model, sources, targets, runners_up=RUNNERS_UP)
            for place, decoding in zip(places, decodings, strict=True):
                score = sum(decoding.log_probabilities)
                source, target = words[place]
                row = alignment_row(codec, first + place, source, decoding, score=score)
                row["target"] = [*target, END_SYMBOL]  # as it was given, words unknown to it, too
                unread = None
                if decoding.weights is not None:
                    unread = np.flatnonzero(source_mass(codec, source, decoding) < least).tolist()
                scored.append((score, row, unread))
            return scored

        size = self.trained.config.search.batch_size
        lengths = [max(len(source), len(target)) for source, target in ids]
        batches = [each.tolist() for each in evaluation_batches(lengths, size) if len(each)]
        found: dict[int, Scored] = {}
        with self.trained.autocast():
            made = map_batches(work, batches, self.trained.workers, self.device)
            for places, scored in zip(batches, made, strict=True):
                found.update(zip(places, scored, strict=True))
        self.lines += len(pairs)
        return [
            ScoredPair(first + place, source, target, len(ids[place][1]), *found[place])
            for place, (source, target) in enumerate(words)
        ]
