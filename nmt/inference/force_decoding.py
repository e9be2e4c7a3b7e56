"""Force-decoding: likelihood and attention of given translations, by symbols and by words.

S source symbols, T target symbols, both with `</s>`; J source words, I target words without it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from nmt.config import Config
from nmt.data.batch import collate
from nmt.data.tokenise import tokeniser
from nmt.data.vocabulary import END, END_SYMBOL, Vocabulary
from nmt.evaluation.alignment import attention_entropy, first_symbols, word_weights
from nmt.evaluation.records import Record
from nmt.layers import Network
from nmt.models.ensemble import Ensemble
from nmt.search import NOT_NUMBERS
from nmt.utils.errors import RunError


@dataclass(frozen=True)
class Codec:
    """Text to words to ids and back: tokenisers and vocabularies of both sides.

    Attributes:
        source, target: vocabularies.
        tokenise: a line of text to words, for the source and for the target language.
        detokenise: words of the target language to a line of text.
    """

    source: Vocabulary
    target: Vocabulary
    tokenise: tuple[Callable[[str], list[str]], Callable[[str], list[str]]]
    detokenise: Callable[[Sequence[str]], str]

    @classmethod
    def of(cls, config: Config, source: Vocabulary, target: Vocabulary) -> Codec:
        """The vocabularies of a run, with the tokenisers of its languages."""
        options = config.tokenizer
        moses = [
            tokeniser(each, options.normalise, options.characters) for each in config.data.languages
        ]
        return cls(source, target, (moses[0].tokenise, moses[1].tokenise), moses[1].detokenise)

    def word_weights(
        self, weights: np.ndarray, source: Sequence[str], target_ids: Sequence[int]
    ) -> np.ndarray:
        """Attention (T, S) between symbols as attention (I + 1, J + 1) between words.

        Args:
            weights: (T, S), a row for each of the target ids.
            source: words of the source, without `</s>`.
            target_ids: (T,) with `</s>`.
        """
        symbols = self.source.word_index(self.source.encode(source))
        return word_weights(weights, symbols, self.target.word_index(target_ids))


@dataclass(frozen=True)
class ForcedDecoding:
    """A force-decoded translation of T symbols.

    Attributes:
        ids: (T,) the translation, `</s>` included.
        weights: (T, S) of attention, each row a distribution; None without attention.
        log_normaliser: (T,) log Z_i, so that e_ij = log α_ij + log Z_i; None without attention.
        log_probabilities: (T,) of each symbol, in nats.
        runners_up: (T,) the most probable other ids of each step with their log-probabilities.
    """

    ids: list[int]
    weights: np.ndarray | None
    log_normaliser: np.ndarray | None
    log_probabilities: list[float]
    runners_up: list[list[tuple[int, float]]]

    def row(
        self, codec: Codec, source: Sequence[str], target: Sequence[str], score: float
    ) -> dict[str, Any]:
        """A line of alignments/<set>.jsonl, without `id` and `reference`; subwords become words."""
        first = first_symbols(codec.target.word_index(self.ids)).tolist()
        ends = itertools.pairwise([*first, len(self.ids)])
        weights, normaliser = self.weights, self.log_normaliser
        if weights is not None:
            weights = codec.word_weights(weights, source, self.ids)
        return {
            "length": len(source),
            "source": [*source, END_SYMBOL],
            "target": [*target, END_SYMBOL],
            "score": score,
            "weights": None if weights is None else weights.tolist(),
            "log_normaliser": None if normaliser is None else normaliser[first].tolist(),
            "attention_entropy": None if weights is None else attention_entropy(weights).tolist(),
            "log_probability": [sum(self.log_probabilities[start:end]) for start, end in ends],
            "runners_up": [
                [[codec.target.symbols([i])[0], value] for i, value in self.runners_up[at]]
                for at in first
            ],
        }


@dataclass(frozen=True, eq=False)
class ScoredSentence:
    """A target sentence and its score by a model; I target words, J source words.

    Attributes:
        text: the target sentence as ordinary text.
        tokens: its I words, without `</s>`.
        score: for a translation the score that the search ranks by: log p(text | source) in nats,
            `</s>` included, divided by length^p with a length penalty. For a given pair the
            log-probability. NaN for an empty line, which is not translated.
        source: the J source words, without `</s>`.
        symbols: predicted symbols: words or subwords, and `</s>`.
        unknown: positions of the `<unk>` that were not replaced.
        row: likelihood and attention as a line of alignments/<set>.jsonl; None without them.
        nbest: the best translations, this one first; empty for a given pair.
    """

    text: str
    tokens: list[str]
    score: float
    source: list[str]
    symbols: int = 0
    unknown: tuple[int, ...] = ()
    row: Record | None = field(default=None, repr=False)
    nbest: tuple[ScoredSentence, ...] = field(default=(), repr=False)

    @property
    def weights(self) -> np.ndarray | None:
        """(I + 1, J + 1) of attention; row i has the weights α_ij of the step that wrote word i
        (equation 6 of the paper's section 3.1) and sums to 1; the last row and column are
        `</s>`'s. None without attention."""
        weights = None if self.row is None else self.row["weights"]
        return None if weights is None else np.array(weights)

    @property
    def log_probabilities(self) -> np.ndarray | None:
        """(I + 1,) of each word and of `</s>`, in nats; None for an empty line."""
        return None if self.row is None else np.array(self.row["log_probability"])


@torch.no_grad()
def force_decode(
    model: Network | Ensemble,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    *,
    runners_up: int = 0,
) -> list[ForcedDecoding]:
    """Force-decodes a batch of translations.

    Args:
        model: in evaluation mode.
        sources: ids of each sentence, END included.
        targets: ids of each translation; END is appended where it is missing.
        runners_up: number of other symbols per step; they cost the logits once more.

    Raises:
        RunError: if a probability is NaN.
    """
    if not sources:
        return []
    ids = [[*(symbol for symbol in target if symbol != END), END] for target in targets]
    batch = collate(sources, ids).to(model.device)
    forced = model(batch.source, batch.source_mask, batch.target, batch.target_mask)
    if runners_up:
        scores = model.logits(forced.readout).float().log_softmax(2)
        best = scores.topk(min(runners_up + 1, scores.shape[2]), 2)
    decodings = []
    for place, (source, target) in enumerate(zip(sources, ids, strict=True)):
        steps = len(target)
        weights = log_normaliser = None
        if forced.weights is not None and forced.log_normaliser is not None:
            weights = forced.weights[place, :steps, : len(source)].float().cpu().numpy()
            log_normaliser = forced.log_normaliser[place, :steps].float().cpu().numpy()
        others: list[list[tuple[int, float]]] = [[] for _ in target]
        if runners_up:
            likely = (top[place, :steps].tolist() for top in (best.indices, best.values))
            others = [
                [(i, v) for i, v in zip(indices, values, strict=True) if i != written][:runners_up]
                for written, indices, values in zip(target, *likely, strict=True)
            ]
        log_probabilities = (-forced.nll[place, :steps]).float().tolist()
        if any(map(math.isnan, log_probabilities)):
            raise RunError(NOT_NUMBERS)
        decodings.append(ForcedDecoding(target, weights, log_normaliser, log_probabilities, others))
    return decodings
