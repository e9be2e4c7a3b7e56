"""`Model`: a trained model that translates, scores and encodes sentences (`nmt.load`).

Test sets, `nmt.translate`, `nmt.score` and Python programs all take this path: batches of ids
become hypotheses (`Model.search`), likelihoods and attention (`force_decode`), and then sentences
of words (`Model.describe`).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, overload

import numpy as np
import torch

from nmt.config import Config, SearchConfig
from nmt.config.loading import section
from nmt.data.batch import pad
from nmt.data.batches import evaluation_batches
from nmt.data.tokenise import split
from nmt.data.vocabulary import UNKNOWN, spelt, written_words
from nmt.evaluation.alignment import attended_words
from nmt.evaluation.records import Record
from nmt.inference.force_decoding import Codec, ScoredSentence, force_decode
from nmt.layers import Network
from nmt.models.ensemble import Ensemble
from nmt.search import Hypothesis, beam_search
from nmt.utils.arguments import as_list
from nmt.utils.devices import resolve_precision, use_threads, uses_gpu
from nmt.utils.errors import InputError
from nmt.utils.workers import map_batches

RUNNERS_UP = 5  # other symbols per step in the rows that the page shows

Result = TypeVar("Result")


@dataclass(frozen=True, repr=False)
class Model:
    """A trained model with its vocabularies and configuration.

    Attributes:
        network: the `torch.nn.Module`, in evaluation mode.
        codec: vocabularies and tokenisers.
        config: `search`, `evaluation`, the languages, the device and the threads are used.
        dictionary: translations of source words, for `search.replace_unk=dictionary`.
        checkpoints: the file, or the files of an ensemble.
    """

    network: Network | Ensemble
    codec: Codec
    config: Config
    dictionary: Mapping[str, str] | None = None
    checkpoints: Sequence[Path] = ()

    def __repr__(self) -> str:
        source, target = self.languages
        files = ", ".join(map(str, self.checkpoints))
        return f"<{self.config.name}, {source} to {target}, {files}>"

    @property
    def languages(self) -> tuple[str, ...]:
        """Codes of the source and of the target language."""
        return tuple(self.config.data.languages)

    @overload
    def translate(self, sentences: str, **options: Any) -> ScoredSentence: ...

    @overload
    def translate(self, sentences: Sequence[str], **options: Any) -> list[ScoredSentence]: ...

    def translate(
        self,
        sentences: str | Sequence[str],
        *,
        beam: int | None = None,
        nbest: int | None = None,
        tokenised: bool = False,
        attention: bool = True,
        **search: Any,
    ) -> ScoredSentence | list[ScoredSentence]:
        """The best translation of each sentence, in order; of a single string, its translation.

        Args:
            sentences: ordinary text, one sentence each.
            beam: hypotheses that are kept (`search.beam_size`); None: as in the checkpoint.
            nbest: number of translations in `ScoredSentence.nbest`; the beam is as wide at least.
            tokenised: the sentences hold tokens separated by spaces.
            attention: force-decode the translations for attention and log-probabilities.
            search: other keys of the section `search`, such as `length_penalty=0.6`.

        Raises:
            InputError: naming the key, if one is unknown or its value out of bounds.
            RunError: if a probability is NaN.
        """
        model = self.searching(beam, nbest, search)
        model.place()
        words_of = split if tokenised else self.codec.tokenise[0]
        sources = [words_of(line) for line in as_list(sentences)]
        filled = [place for place, words in enumerate(sources) if words]
        ids = [self.codec.source.encode(sources[place]) for place in filled]

        def work(places: list[int]) -> list[list[ScoredSentence]]:
            hypotheses = model.search([ids[place] for place in places])
            words = [sources[filled[place]] for place in places]
            pairs = [
                (w, each) for w, nbest in zip(words, hypotheses, strict=True) for each in nbest
            ]
            described = iter(model.describe(pairs, range(len(pairs)) if attention else ()))
            return [list(itertools.islice(described, len(nbest))) for nbest in hypotheses]

        results = [ScoredSentence("", [], math.nan, []) for _ in sources]
        for place, best in model.in_batches([len(each) for each in ids], work):
            results[filled[place]] = dataclasses.replace(best[0], nbest=tuple(best))
        return results[0] if isinstance(sentences, str) else results

    def score(
        self,
        pairs: Sequence[Sequence[str]],
        *,
        tokenised: bool = False,
        attention: bool = True,
    ) -> list[ScoredSentence]:
        """The log-probability of given translations, and their alignment, in order.

        Args:
            pairs: (source, target), ordinary text, one sentence each. A target word outside the
                vocabulary has the probability of `<unk>`.
            tokenised: the sentences hold tokens separated by spaces.
            attention: also give attention and log-probabilities.

        Raises:
            RunError: if a probability is NaN.
            ValueError: for a pair that does not have two sentences.
        """
        self.place()
        codec, runners_up = self.codec, RUNNERS_UP if attention else 0
        source_words, target_words = (split, split) if tokenised else codec.tokenise
        words = [(source_words(source), target_words(target)) for source, target in pairs]
        ids = [
            (codec.source.encode(source), codec.target.encode(target)) for source, target in words
        ]

        def work(places: list[int]) -> list[ScoredSentence]:
            given = zip(*(ids[place] for place in places), strict=True)
            decodings = force_decode(self.network, *given, runners_up=runners_up)
            scored = []
            for place, decoding in zip(places, decodings, strict=True):
                source, target = words[place]
                total = sum(decoding.log_probabilities)
                row = decoding.row(codec, source, target, total) if attention else None
                text = codec.detokenise(target) if tokenised else pairs[place][1]
                symbols = len(decoding.ids)
                scored.append(ScoredSentence(text, target, total, source, symbols, row=row))
            return scored

        lengths = [max(len(source), len(target)) for source, target in ids]
        results = dict(self.in_batches(lengths, work))
        return [results[place] for place in range(len(ids))]

    def encode(
        self, sentences: Sequence[str], *, tokenised: bool = False
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """The vectors of each sentence that the decoder is given.

        Args:
            sentences: ordinary text, one sentence each.
            tokenised: the sentences hold tokens separated by spaces.

        Returns:
            For each sentence its annotations (S, A), one a symbol with `</s>`, and the vector (H,)
            that the first state is made from: for RNNencdec all that its decoder reads.

        Raises:
            TypeError: for an ensemble, whose models have no vectors in common.
        """
        network, device = self.network, self.place()
        if not isinstance(network, Network):
            raise TypeError("encode: an ensemble has no vectors of its own; load one checkpoint")
        words_of = split if tokenised else self.codec.tokenise[0]
        ids = [self.codec.source.encode(words_of(line)) for line in as_list(sentences)]

        @torch.no_grad()
        def work(places: list[int]) -> list[tuple[np.ndarray, np.ndarray]]:
            source, mask = (tensor.to(device) for tensor in pad([ids[place] for place in places]))
            memory = network.encode(source, mask)
            annotations, summary = memory.annotations.float().cpu(), memory.summary.float().cpu()
            return [
                (annotations[n, : len(ids[place])].numpy(), summary[n].numpy())
                for n, place in enumerate(places)
            ]

        results = dict(self.in_batches([len(each) for each in ids], work))
        return [results[place] for place in range(len(ids))]

    def searching(self, beam: int | None, nbest: int | None, search: Mapping[str, Any]) -> Model:
        """The model with other settings of the search; raises InputError as `translate`."""
        given = {**search, "beam_size": beam, "nbest": nbest}
        changes = {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in given.items()
            if value is not None
        }
        values = dataclasses.asdict(self.config.search) | changes
        settings = section(SearchConfig, values, "search.")
        settings.beam_size = max(settings.beam_size, settings.nbest)
        if settings.replace_unk == "dictionary" and self.dictionary is None:
            raise InputError(
                f"search.replace_unk=dictionary: {self.checkpoints[0]} holds no dictionary; a "
                "training with attention and tokenizer=words learns one; or "
                "take copy"
            )
        return dataclasses.replace(self, config=dataclasses.replace(self.config, search=settings))

    def place(self) -> torch.device:
        """Moves the network to the device of `trainer.accelerator`, and returns it."""
        use_threads(self.config.threads)
        device = torch.device("cuda" if uses_gpu(self.config.trainer["accelerator"]) else "cpu")
        self.network.to(device)
        return device

    def in_batches(
        self,
        lengths: Sequence[int],
        work: Callable[[list[int]], Sequence[Result]],
        rank: int = 0,
        world: int = 1,
    ) -> Iterator[tuple[int, Result]]:
        """Applies `work` to one rank's share of some sentences, in batches of like length.

        The batches are the same for any number of ranks, and the longest sentences come first. On
        a CPU each thread works on a batch of its own, which changes no result. The arithmetic is
        that of `trainer.precision`.

        Args:
            lengths: of the sentences.
            work: the positions of a batch's sentences to a result for each.

        Yields:
            Position of a sentence, its result.
        """
        options, threads, device = self.config.trainer, self.config.threads, self.network.device
        size = self.config.search.batch_size
        batches = [rows.tolist() for rows in evaluation_batches(lengths, size, rank, world)]
        batches = [places for places in batches if places]
        bf16 = resolve_precision(options["precision"], options["accelerator"]) == "bf16-mixed"
        workers = threads if isinstance(threads, int) else 1
        with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
            done = map_batches(work, batches, workers, device)
            for places, results in zip(batches, done, strict=True):
                yield from zip(places, results, strict=True)

    def search(
        self, sources: Sequence[Sequence[int]], *, forbid_unknown: bool = False
    ) -> list[list[Hypothesis]]:
        """The hypotheses of a batch of encoded sentences; see `beam_search`."""
        if not sources:
            return []
        source, mask = (tensor.to(self.network.device) for tensor in pad(sources))
        return beam_search(self.network, source, mask, self.config.search, forbid_unknown)

    def describe(
        self, pairs: Sequence[tuple[Sequence[str], Hypothesis]], with_rows: Collection[int]
    ) -> list[ScoredSentence]:
        """The words of hypotheses, `<unk>` replaced as `search.replace_unk` says.

        Args:
            pairs: source words, and a hypothesis of the search.
            with_rows: positions of the pairs that get a row; they are force-decoded.
        """
        codec, settings = self.codec, self.config.search
        replace = settings.replace_unk != "none"
        dictionary = self.dictionary if settings.replace_unk == "dictionary" else None
        words = [written_words(codec.target, hypothesis.tokens) for _, hypothesis in pairs]
        rows: dict[int, Record] = {}
        forced = [
            place
            for place, (_, hypothesis) in enumerate(pairs)
            if place in with_rows or (replace and UNKNOWN in hypothesis.tokens)
        ]
        for start in range(0, len(forced), settings.batch_size):
            places = forced[start : start + settings.batch_size]
            decodings = force_decode(
                self.network,
                [codec.source.encode(pairs[place][0]) for place in places],
                [pairs[place][1].tokens for place in places],
                runners_up=RUNNERS_UP if any(place in with_rows for place in places) else 0,
            )
            for place, decoding in zip(places, decodings, strict=True):
                source, hypothesis = pairs[place]
                if replace:
                    words[place] = replace_unknown_words(
                        words[place], decoding.weights, source, dictionary
                    )
                if place in with_rows:
                    target = spelt(words[place])
                    rows[place] = decoding.row(codec, source, target, hypothesis.score)
        return [
            ScoredSentence(
                text=codec.detokenise(spelt(words[place])),
                tokens=spelt(words[place]),
                score=hypothesis.score,
                source=list(source),
                symbols=len(hypothesis.tokens),
                unknown=tuple(at for at, word in enumerate(words[place]) if word is None),
                row=rows.get(place),
            )
            for place, (source, hypothesis) in enumerate(pairs)
        ]


def replace_unknown_words(
    words: Sequence[str | None],
    weights: np.ndarray | None,
    source: Sequence[str],
    dictionary: Mapping[str, str] | None = None,
) -> list[str | None]:
    """Writes the attended source word, or its translation, for each `<unk>` (Luong et al., 2015).

    `<unk>` stays where no source word is attended to, and without attention.

    Args:
        words: (I,) of a translation, without `</s>`; None for `<unk>`.
        weights: (T, S) of attention; with `<unk>` in a vocabulary of words, T = I + 1.
        source: words of the source, without `</s>`, as they were before the shortlist.
        dictionary: translations; a word that it lacks, such as a name or a number, is copied.

    >>> attention = np.array([[0.9, 0.1, 0], [0.2, 0.8, 0], [0, 0, 1]])
    >>> replace_unknown_words(["le", None], attention, ["the", "cat"])
    ['le', 'cat']
    """
    if weights is None or None not in words:
        return list(words)
    known = dictionary or {}
    return [
        known.get(source[j], source[j]) if word is None and j >= 0 else word
        for word, j in zip(words, attended_words(weights[: len(words)]).tolist(), strict=True)
    ]
