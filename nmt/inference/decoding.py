"""Decoding: one path for test sets, `nmt.translate`, `nmt.score` and the Python interface.

Batches of ids become hypotheses (`search`), likelihoods and attention (`force_decode`), and then
sentences of words (`translate`, `score`).

S source symbols, T target symbols, both with `</s>`; J source words, I target words without it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import torch

from nmt.data.batch import collate, pad
from nmt.data.batches import evaluation_batches
from nmt.data.vocabulary import END, END_SYMBOL, UNKNOWN, spelt, written_words
from nmt.evaluation.alignment import attention_entropy, first_symbols
from nmt.evaluation.records import Record
from nmt.inference.trained import Codec, TrainedModel
from nmt.inference.unknown_words import replace_unknown_words
from nmt.layers import Network
from nmt.models.ensemble import Ensemble
from nmt.search import NOT_NUMBERS, Hypothesis, beam_search
from nmt.utils.errors import RunError
from nmt.utils.workers import map_batches

RUNNERS_UP = 5  # other symbols per step in the rows that the page shows

Words = Sequence[str]
Result = TypeVar("Result")


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
        nbest: the best translations found, this one first; empty for a given pair.
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


def search(
    trained: TrainedModel, sources: Sequence[Sequence[int]], *, forbid_unknown: bool = False
) -> list[list[Hypothesis]]:
    """The hypotheses of a batch of encoded sentences; see `beam_search`."""
    if not sources:
        return []
    source, mask = (tensor.to(trained.model.device) for tensor in pad(sources))
    return beam_search(trained.model, source, mask, trained.config.search, forbid_unknown)


def translate(
    trained: TrainedModel, sources: Sequence[Words], *, attention: bool = True
) -> list[list[ScoredSentence]]:
    """The translations of some sentences, best first; none for an empty sentence.

    Args:
        trained: the model; it is moved to the device of `trainer.accelerator`.
        sources: words of each sentence.
        attention: force-decode each translation for its row.

    Raises:
        RunError: if a probability is NaN.
    """
    trained.place()
    filled = [place for place, words in enumerate(sources) if words]
    ids = [trained.codec.source.encode(sources[place]) for place in filled]

    def work(places: list[int]) -> list[list[ScoredSentence]]:
        found = search(trained, [ids[place] for place in places])
        words = [sources[filled[place]] for place in places]
        pairs = [(w, each) for w, nbest in zip(words, found, strict=True) for each in nbest]
        sentences = iter(describe(trained, pairs, range(len(pairs)) if attention else ()))
        return [list(itertools.islice(sentences, len(nbest))) for nbest in found]

    translations: list[list[ScoredSentence]] = [[] for _ in sources]
    for place, nbest in in_batches(trained, [len(sentence) for sentence in ids], work):
        translations[filled[place]] = nbest
    return translations


def score(
    trained: TrainedModel, pairs: Sequence[tuple[Words, Words]], *, attention: bool = True
) -> list[ScoredSentence]:
    """The log-probability of given translations, in order.

    Args:
        trained: the model; it is moved to the device of `trainer.accelerator`.
        pairs: words of source and translation. A target word outside the vocabulary has the
            probability of `<unk>`.
        attention: also give their rows.

    Raises:
        RunError: if a probability is NaN.
    """
    trained.place()
    codec = trained.codec
    ids = [(codec.source.encode(source), codec.target.encode(target)) for source, target in pairs]

    def work(places: list[int]) -> list[ScoredSentence]:
        sources, targets = zip(*(ids[place] for place in places), strict=True)
        decodings = force_decode(
            trained.model, sources, targets, runners_up=RUNNERS_UP if attention else 0
        )
        return [
            _scored(codec, *pairs[place], decoding, attention)
            for place, decoding in zip(places, decodings, strict=True)
        ]

    lengths = [max(len(source), len(target)) for source, target in ids]
    scored = dict(in_batches(trained, lengths, work))
    return [scored[place] for place in range(len(pairs))]


def _scored(
    codec: Codec, source: Words, target: Words, decoding: ForcedDecoding, attention: bool
) -> ScoredSentence:
    total = sum(decoding.log_probabilities)
    row = alignment_row(codec, source, target, decoding, score=total) if attention else None
    text, words = codec.detokenise(target), list(target)
    return ScoredSentence(text, words, total, list(source), len(decoding.ids), row=row)


def in_batches(
    trained: TrainedModel,
    lengths: Sequence[int],
    work: Callable[[list[int]], Sequence[Result]],
    rank: int = 0,
    world: int = 1,
) -> Iterator[tuple[int, Result]]:
    """Applies `work` to one rank's share of some sentences, in batches of like length.

    The batches are the same for any number of ranks, and the longest sentences come first. On a CPU
    several batches are worked on at a time, each by one thread, which changes no result.

    Args:
        trained: its model, precision and `search.batch_size` are used.
        lengths: of the sentences.
        work: the positions of a batch's sentences to a result for each.

    Yields:
        Position of a sentence, its result.
    """
    size = trained.config.search.batch_size
    batches = [rows.tolist() for rows in evaluation_batches(lengths, size, rank, world)]
    batches = [places for places in batches if places]
    with trained.autocast():
        found = map_batches(work, batches, trained.workers, trained.model.device)
        for places, results in zip(batches, found, strict=True):
            yield from zip(places, results, strict=True)


def describe(
    trained: TrainedModel,
    pairs: Sequence[tuple[Words, Hypothesis]],
    with_rows: Collection[int],
) -> list[ScoredSentence]:
    """The words of hypotheses, `<unk>` replaced as `search.replace_unk` says.

    Args:
        pairs: source words, and a hypothesis of the search.
        with_rows: positions of the pairs that get a row; they are force-decoded.
    """
    codec, settings = trained.codec, trained.config.search
    replace = settings.replace_unk != "none"
    words = [written_words(codec.target, found.tokens) for _, found in pairs]
    rows: dict[int, Record] = {}
    forced = [
        place
        for place, (_, found) in enumerate(pairs)
        if place in with_rows or (replace and UNKNOWN in found.tokens)
    ]
    for start in range(0, len(forced), settings.batch_size):
        places = forced[start : start + settings.batch_size]
        decodings = force_decode(
            trained.model,
            [codec.source.encode(pairs[place][0]) for place in places],
            [pairs[place][1].tokens for place in places],
            runners_up=RUNNERS_UP if any(place in with_rows for place in places) else 0,
        )
        for place, decoding in zip(places, decodings, strict=True):
            source, found = pairs[place]
            if replace:
                words[place] = replace_unknown_words(
                    words[place], decoding.weights, source, trained.dictionary
                )
            if place in with_rows:
                rows[place] = alignment_row(
                    codec, source, spelt(words[place]), decoding, score=found.score
                )
    sentences = []
    for place, (source, found) in enumerate(pairs):
        tokens = spelt(words[place])
        unknown = tuple(at for at, word in enumerate(words[place]) if word is None)
        symbols, text = len(found.tokens), codec.detokenise(tokens)
        sentences.append(
            ScoredSentence(
                text, tokens, found.score, list(source), symbols, unknown, rows.get(place)
            )
        )
    return sentences


def alignment_row(
    codec: Codec, source: Words, target: Words, decoding: ForcedDecoding, *, score: float
) -> dict[str, Any]:
    """A line of alignments/<set>.jsonl, without `id` and `reference`; subwords become words."""
    first = first_symbols(codec.target.word_index(decoding.ids))
    ends = itertools.pairwise([*first, len(decoding.ids)])
    weights, normaliser = decoding.weights, decoding.log_normaliser
    if weights is not None:
        weights = codec.word_weights(weights, source, decoding.ids)
    return {
        "length": len(source),
        "source": [*source, END_SYMBOL],
        "target": [*target, END_SYMBOL],
        "score": score,
        "weights": None if weights is None else weights.tolist(),
        "log_normaliser": None if normaliser is None else [float(normaliser[at]) for at in first],
        "attention_entropy": None if weights is None else attention_entropy(weights).tolist(),
        "log_probability": [sum(decoding.log_probabilities[start:end]) for start, end in ends],
        "runners_up": [
            [
                [codec.target.symbols([symbol])[0], value]
                for symbol, value in decoding.runners_up[at]
            ]
            for at in first
        ],
    }
