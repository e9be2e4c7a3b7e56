"""`Model`: a trained model that translates, scores and encodes sentences; `nmt.load` returns it.

The evaluation of test sets, `nmt.translate`, `nmt.score` and Python programs use this class. `Model.search`
finds the hypotheses of a batch of sentences. `Model.force_decode` computes likelihoods and attention.
`Model.describe` converts hypotheses to `ScoredSentence`s.

Shapes: S and T are the numbers of source and target symbols, with `</s>`; J and I of source and target words,
without `</s>`.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, overload

import numpy as np
import torch

from nmt.config.loading import section
from nmt.config.schema import Config, SearchConfig
from nmt.data.batch import collate, pad
from nmt.data.batches import evaluation_batches
from nmt.data.vocabulary import Vocabulary, mark_unknown, until_end
from nmt.evaluation.alignment import attended_words, first_symbols, word_weights
from nmt.inference.sentence import ScoredSentence, ScoredSentences
from nmt.layers import Network
from nmt.models.ensemble import Ensemble
from nmt.search import NOT_NUMBERS, Hypothesis, beam_search
from nmt.text.symbols import END, UNKNOWN
from nmt.text.tokenise import split, tokeniser
from nmt.utils.devices import map_batches, resolve_precision
from nmt.utils.environment import gather, rank_and_world
from nmt.utils.errors import InputError, RunError
from nmt.utils.text import as_list

RUNNERS_UP = 5  # number of alternative symbols that the HTML page lists for each target word

Words = Sequence[str]
Result = TypeVar("Result")


@dataclass(frozen=True, repr=False)
class Model:
    """A trained model with its vocabularies and configuration.

    Attributes:
        network: the `torch.nn.Module`, in evaluation mode.
        source, target: the vocabularies.
        config: the configuration, of which `search`, `evaluation`, languages, precision and threads are used.
        dictionary: translations of source words, for `search.replace_unk=dictionary`. None: `learn` learns it from the
            training text when needed.
        checkpoints: the checkpoint file, or the files of an ensemble.
        learn: a function that learns the dictionary of this model.
    """

    network: Network | Ensemble
    source: Vocabulary
    target: Vocabulary
    config: Config
    dictionary: Mapping[str, str] | None = None
    checkpoints: Sequence[Path] = ()
    learn: Callable[[Model], Mapping[str, str]] | None = None

    def __repr__(self) -> str:
        return f"<{self.config.name}, {', '.join(map(str, self.checkpoints))}>"

    def detokenise(self, words: Words) -> str:
        """Joins words of the target language into ordinary text."""
        return tokeniser(self.config.data.languages[1]).detokenise(words)

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
        """Returns the best translation of each sentence, in order, or a single result for a single string.

        Args:
            sentences: ordinary text, one sentence per string.
            beam: beam size (`search.beam_size`); None: as in the checkpoint.
            nbest: number of translations in `ScoredSentence.nbest`; a smaller beam size is raised to `nbest`.
            tokenised: whether the sentences are tokens separated by spaces.
            attention: whether to compute attention and the words' log-probabilities by teacher forcing.
            search: other keys of the configuration section `search`, such as `length_penalty=0.6`.

        Raises:
            InputError: if a key of `search` is unknown or its value is out of bounds, or if `replace_unk` is
                `dictionary` and the dictionary cannot be learnt.
            RunError: if a probability is NaN.
        """
        model = self.searching(beam_size=beam, nbest=nbest, **search)
        sources = self._words(as_list(sentences), tokenised)
        nonempty = [place for place, words in enumerate(sources) if words]

        def work(chosen: list[int]) -> list[tuple[ScoredSentence, ...]]:
            batch = [sources[nonempty[place]] for place in chosen]
            lists = model.search(batch)
            words = [source for source, best in zip(batch, lists, strict=True) for _ in best]
            hypotheses = list(itertools.chain.from_iterable(lists))
            described = iter(model.describe(words, hypotheses, range(len(words) * attention)))
            return [tuple(itertools.islice(described, len(best))) for best in lists]

        results = ScoredSentences(ScoredSentence([], [], "", math.nan) for _ in sources)
        lengths = [len(self.source.encode(sources[place])) for place in nonempty]
        for place, best in zip(nonempty, model.map_sentences(lengths, work), strict=True):
            results[place] = dataclasses.replace(best[0], nbest=best)
        return results[0] if isinstance(sentences, str) else results

    def score(
        self, pairs: Sequence[Sequence[str]], *, tokenised: bool = False
    ) -> list[ScoredSentence]:
        """Returns the log-probabilities and alignments of given translations, in order.

        Args:
            pairs: pairs (source, target) of sentences as ordinary text. A target word outside the
                vocabulary has the probability of `<unk>`.
            tokenised: whether the sentences are tokens separated by spaces.

        Raises:
            RunError: if a probability is NaN.
            ValueError: if a pair does not have two sentences.
        """
        sources = self._words([source for source, _ in pairs], tokenised)
        targets = self._words([target for _, target in pairs], tokenised, side=1)
        ids = [self.target.encode(words) for words in targets]

        def work(chosen: list[int]) -> list[ScoredSentence]:
            forced = self.force_decode([sources[n] for n in chosen], [ids[n] for n in chosen])
            for n, each in zip(chosen, forced, strict=True):
                each.tokens = targets[n]
                each.text = self.detokenise(targets[n]) if tokenised else pairs[n][1]
            return forced

        source_lengths = [len(self.source.encode(words)) for words in sources]
        lengths = list(map(max, source_lengths, map(len, ids)))
        return ScoredSentences(self.map_sentences(lengths, work))

    def encode(
        self, sentences: Sequence[str], *, tokenised: bool = False
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Returns the encoder's vectors for each sentence; see `translate` for the arguments.

        Returns:
            The annotations (S, A) and a summary vector (H,) of each sentence. Each of the S symbols has an
            annotation, a vector of size A. The decoder computes its initial state s_0 from the summary
            vector of size H. The decoder of RNNencdec does not use the annotations.

        Raises:
            TypeError: for an ensemble, since its models have different encoders.
        """
        network = self.network
        if not isinstance(network, Network):
            raise TypeError("encode: an ensemble has several encoders; load one checkpoint")
        words = self._words(as_list(sentences), tokenised)
        ids = [self.source.encode(each) for each in words]

        def work(chosen: list[int]) -> list[tuple[np.ndarray, np.ndarray]]:
            memory = network.encode(*self._padded([ids[place] for place in chosen]))
            annotations = memory.annotations.float().cpu()
            summary = memory.summary.float().cpu()
            return [
                (annotations[n, : len(ids[place])].numpy(), summary[n].numpy())
                for n, place in enumerate(chosen)
            ]

        return self.map_sentences(list(map(len, ids)), work)

    def searching(self, **search: Any) -> Model:
        """Returns a shallow copy of the model with changed keys of the section `search`; ignores keys with value None.

        Raises:
            InputError: as in `translate`.
        """
        changes = {key: value for key, value in search.items() if value is not None}
        values = dataclasses.asdict(self.config.search) | changes
        settings = section(SearchConfig, values, "search.")
        settings.beam_size = max(settings.beam_size, settings.nbest)
        dictionary = self.dictionary
        if settings.replace_unk == "dictionary" and dictionary is None:
            dictionary = self._learnt_dictionary
        config = dataclasses.replace(self.config, search=settings)
        return dataclasses.replace(self, config=config, dictionary=dictionary)

    @functools.cached_property
    def _learnt_dictionary(self) -> Mapping[str, str]:
        if self.learn is None:
            raise InputError("search.replace_unk=dictionary: the model has no dictionary; use copy")
        return self.learn(self)

    def map_sentences(
        self,
        lengths: Sequence[int],
        work: Callable[[list[int]], Sequence[Result]],
        advance: Callable[[int], object] = lambda _: None,
        *,
        shared: bool = False,
    ) -> list[Result]:
        """Applies `work` to batches of sentences of similar length; returns results in sentence order.

        The longest sentences come first. The batches are the same for any number of ranks. On a CPU,
        each thread computes whole batches, so that the results do not depend on the number of threads. No
        gradients are computed. The precision is `trainer.precision`.

        Args:
            work: maps the indices of a batch's sentences to one result per sentence.
            advance: called after each batch with the number of sentences finished since the last call.
            shared: whether to split the sentences among the ranks; every rank returns all results.
        """
        options = self.config.trainer
        threads = self.config.threads
        device = self.network.device
        rank, world = rank_and_world() if shared else (0, 1)
        size = self.config.search.batch_size
        batches = [rows.tolist() for rows in evaluation_batches(lengths, size, rank, world)]
        batches = [chosen for chosen in batches if chosen]
        bf16 = resolve_precision(options["precision"], options["accelerator"]) == "bf16-mixed"
        workers = threads if isinstance(threads, int) else 1

        def compute(chosen: list[int]) -> Sequence[Result]:
            with torch.no_grad(), torch.autocast(device.type, torch.bfloat16, enabled=bf16):
                return work(chosen)

        mine: dict[int, Result] = {}
        finished = map_batches(compute, batches, workers, device)
        for chosen, results in zip(batches, finished, strict=True):
            mine |= zip(chosen, results, strict=True)
            advance(len(chosen) * world)
        parts = gather(mine) if shared else [mine]
        combined = {place: each for part in parts for place, each in part.items()}
        return [combined[place] for place in range(len(lengths))]

    def search(
        self, sources: Sequence[Words], *, forbid_unknown: bool = False
    ) -> list[list[Hypothesis]]:
        """Returns the hypotheses of a batch of source sentences; see `beam_search`."""
        if not sources:
            return []
        ids = [self.source.encode(words) for words in sources]
        return beam_search(self.network, *self._padded(ids), self.config.search, forbid_unknown)

    @torch.no_grad()
    def force_decode(
        self, sources: Sequence[Words], targets: Sequence[Sequence[int]], runners_up: bool = False
    ) -> list[ScoredSentence]:
        """Computes likelihood and attention of given translations by teacher forcing.

        The log-probability of a word is the sum over its subwords. `text` is left empty.

        Args:
            sources: words of each sentence.
            targets: ids of each translation, with END.
            runners_up: whether to list the most probable alternative symbols; if so, the logits are computed twice.

        Raises:
            RunError: if a probability is NaN.
        """
        if not sources:
            return []
        ids = [self.source.encode(words) for words in sources]
        batch = collate(ids, targets).move_to(self.network.device)
        forced = self.network(*batch.pairs)
        nll = forced.nll.float().cpu().numpy()
        if np.isnan(nll).any():
            raise RunError(NOT_NUMBERS)
        if runners_up:
            scores = self.network.logits(forced.readout).float().log_softmax(2)
            scores = scores.scatter(2, batch.target.unsqueeze(2), -torch.inf)
            best = scores.topk(min(RUNNERS_UP, scores.shape[2] - 1), 2)
        if forced.weights is not None and forced.log_normaliser is not None:
            weights = forced.weights.float().cpu().numpy()
            log_normaliser = forced.log_normaliser.float().cpu().numpy()
        results = []
        for n, (words, source, target) in enumerate(zip(sources, ids, targets, strict=True)):
            index = self.target.word_index(target)
            first = first_symbols(index)  # index of the first symbol of each word
            log_p = -nll[n, : len(target)].astype(np.float64)
            sentence = ScoredSentence(
                source=list(words),
                tokens=self.target.decode(target),
                text="",
                log_probability=sum(log_p.tolist()),
                symbols=len(target),
                word_log_probabilities=np.add.reduceat(log_p, first),
            )
            if forced.weights is not None:
                attention = weights[n, : len(target), : len(source)]
                sentence.weights = word_weights(attention, self.source.word_index(source), index)
                sentence.log_normaliser = log_normaliser[n, first]
            if runners_up:
                likely = (part[n, first.tolist()].tolist() for part in (best.indices, best.values))
                sentence.runners_up = [
                    list(zip(self.target.symbols(symbols), values, strict=True))
                    for symbols, values in zip(*likely, strict=True)
                ]
            results.append(sentence)
        return results

    def describe(
        self,
        sources: Sequence[Words],
        hypotheses: Sequence[Hypothesis],
        attended: Collection[int] = (),
        runners_up: bool = False,
    ) -> list[ScoredSentence]:
        """Converts hypotheses to sentences, and replaces `<unk>` according to `search.replace_unk`.

        Args:
            sources: source words of each hypothesis.
            hypotheses: results of `search`.
            attended: indices of the hypotheses to force-decode, which gives their attention, log-probabilities
                of words and `runners_up`. Hypotheses with an `<unk>` to replace are always force-decoded.
            runners_up: as in `force_decode`.
        """
        settings = self.config.search
        replace = settings.replace_unk != "none"
        dictionary = self.dictionary if settings.replace_unk == "dictionary" else None
        results = [ScoredSentence(list(source), [], "", math.nan) for source in sources]
        forced = [
            place
            for place, hypothesis in enumerate(hypotheses)
            if place in attended or (replace and UNKNOWN in hypothesis.tokens)
        ]
        for start in range(0, len(forced), settings.batch_size):
            chosen = forced[start : start + settings.batch_size]
            ids = [[*until_end(hypotheses[place].tokens), END] for place in chosen]
            decoded = self.force_decode([sources[place] for place in chosen], ids, runners_up)
            for place, each in zip(chosen, decoded, strict=True):
                results[place] = each
        target_tokeniser = tokeniser(self.config.data.languages[1])
        for hypothesis, result in zip(hypotheses, results, strict=True):
            words = self.target.words_of(hypothesis.tokens)
            if replace:
                words = replace_unknown_words(words, result.weights, result.source, dictionary)
            result.tokens = mark_unknown(words)
            result.text = target_tokeniser.detokenise(result.tokens)
            result.log_probability = hypothesis.log_probability
            result.symbols = len(hypothesis.tokens)
            result.unknown = tuple(at for at, word in enumerate(words) if word is None)
        return results

    def _words(self, lines: Sequence[str], tokenised: bool, side: int = 0) -> list[list[str]]:
        """Splits lines of the source (side 0) or target (side 1) language into words."""
        side_tokeniser = tokeniser(self.config.data.languages[side])
        return [split(line) if tokenised else side_tokeniser.tokenise(line) for line in lines]

    def _padded(self, ids: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns padded ids (B, S) and mask (B, S) on the network's device."""
        source, mask = pad(ids)
        return source.to(self.network.device), mask.to(self.network.device)


def replace_unknown_words(
    words: Sequence[str | None],
    weights: np.ndarray | None,
    source: Sequence[str],
    dictionary: Mapping[str, str] | None = None,
) -> list[str | None]:
    """Replaces each `<unk>` with the source word of largest attention weight, or with its translation in `dictionary`.

    See Luong et al. (2015). `<unk>` is kept if the source has no words or the model has no attention.

    Args:
        words: (I,) words of a translation, without `</s>`; None for `<unk>`.
        weights: (I + 1, J + 1) attention weights.
        source: (J,) words of the source text, including words outside the shortlist.
        dictionary: translations of source words; words without a translation, such as names, are copied.

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
