"""A trained model in Python: translations and likelihoods, with their alignments."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from nmt.config import SearchConfig
from nmt.config.validation import load
from nmt.evaluation.records import Record
from nmt.inference.scoring import PairScorer
from nmt.inference.trained import TrainedModel, dictionary_of, from_checkpoints, read_members
from nmt.inference.translation import LineTranslator
from nmt.models.checkpoint import Checkpoint
from nmt.utils.arguments import PATH, listed, plain
from nmt.utils.devices import check_accelerator, resolve_threads
from nmt.utils.errors import InputError, first_line


@dataclass(frozen=True, eq=False)
class ScoredSentence:
    """A target sentence and what a model says of it; I target words, J source words.

    Attributes:
        text: the target sentence as ordinary text.
        tokens: its I words, without `</s>`.
        score: of a translation what the search ranks it by: log p(text | source) in nats, `</s>`
            included, divided by length^p with a length penalty. Of a given pair the
            log-probability. Not a number for an empty line, which is not translated.
        source: the J source words, without `</s>`.
        weights: (I + 1, J + 1) of attention; row i has the weights α_ij of the step that wrote
            word i (equation 6 of the paper's section 3.1), and sums to 1; the last row and column
            are `</s>`'s. None without attention.
        log_probabilities: (I + 1,) of each word and of `</s>`, in nats.
        nbest: the best translations found, this one first; empty for a given pair.
        row: all of it as a line of alignments/<set>.jsonl; None for an empty line.
    """

    text: str
    tokens: list[str]
    score: float
    source: list[str]
    weights: np.ndarray | None = dataclasses.field(default=None, repr=False)
    log_probabilities: np.ndarray | None = dataclasses.field(default=None, repr=False)
    nbest: tuple[ScoredSentence, ...] = dataclasses.field(default=(), repr=False)
    row: Record | None = dataclasses.field(default=None, repr=False)


class Model:
    """A trained model with its vocabularies, as `nmt.load` returns it.

    Attributes:
        trained: the model itself (`nmt.inference.trained.TrainedModel`); its `model` is a
            `torch.nn.Module`.
        languages: codes of the source and of the target language.
        checkpoints: the file, or those of an ensemble.
    """

    def __init__(self, members: Sequence[Checkpoint], config: DictConfig) -> None:
        self.trained = from_checkpoints(members, load(config.copy(), training=False))
        self.languages = tuple(self.trained.config.data.languages)
        self.checkpoints = [member.path for member in members]
        # the model has the weights
        self._members = [dataclasses.replace(member, weights={}) for member in members]
        self._config = config

    def __repr__(self) -> str:
        source, target = self.languages
        return f"<{self.trained.config.name}, {source} to {target}, {', '.join(map(str, self.checkpoints))}>"

    def translate(
        self,
        sentences: Sequence[str],
        *,
        beam: int | None = None,
        nbest: int = 1,
        tokenised: bool = False,
        **search: Any,
    ) -> list[ScoredSentence]:
        """The best translation of each sentence, in order.

        Args:
            sentences: ordinary text, one sentence each.
            beam: hypotheses that are kept (`search.beam_size`); None: as the checkpoint says.
            nbest: translations of each sentence in `ScoredSentence.nbest`; a beam is as wide at least.
            tokenised: the sentences hold tokens separated by spaces.
            search: other keys of the section `search`, such as `length_penalty=0.6`.

        Raises:
            InputError: naming the key, where one is unknown or its value out of bounds.
            TypeError: for a single string in place of a list, and for sentences that are none.
        """
        translator = LineTranslator(
            self._searching(beam, nbest, search), tokenised=tokenised, attention=True
        )
        found = []
        for line in translator.translate(listed(sentences, "sentences", str)):
            results = [
                _result(line.words, each.text, each.words, each.score, each.row)
                for each in line.translations
            ]
            best = results[0] if results else _result([], "", [], math.nan, None)
            found.append(dataclasses.replace(best, nbest=tuple(results)))
        return found

    def score(
        self, pairs: Sequence[tuple[str, str]], *, tokenised: bool = False
    ) -> list[ScoredSentence]:
        """The log-probability of given translations, and how they align, in order.

        Args:
            pairs: (source, target), ordinary text, one sentence each. A target word outside the
                vocabulary has the probability of `<unk>`.
            tokenised: they hold tokens separated by spaces.

        Raises:
            TypeError: for sentences that are no text.
            ValueError: for a pair that is not of two.
        """
        scorer = PairScorer(self.trained, tokenised=tokenised, attention=True)
        given = []
        for number, pair in enumerate(listed(pairs, "pairs")):
            sentences = listed(pair, f"pairs[{number}]", str)
            if len(sentences) != 2:
                raise ValueError(
                    f"pairs[{number}]: two sentences are expected, not {len(sentences)}"
                )
            given.append((sentences[0], sentences[1]))
        detokenise = self.trained.codec.detokenise
        return [
            _result(
                pair.source,
                detokenise(pair.target) if tokenised else target,
                pair.target,
                pair.score,
                pair.row,
            )
            for pair, (_, target) in zip(scorer.score(given), given, strict=True)
        ]

    def _searching(self, beam: int | None, nbest: int, search: dict[str, Any]) -> TrainedModel:
        """The model with other settings of the search."""
        named = {"nbest", "beam_size"}  # by arguments of their own
        known = [each.name for each in dataclasses.fields(SearchConfig) if each.name not in named]
        for name in search:
            if name not in known:
                raise InputError(
                    f"search.{name}: no such key; there are: beam, nbest, {', '.join(known)}"
                )
        config = self._config.copy()
        if beam is not None:
            search = {**search, "beam_size": beam}
        for name, value in {**search, "nbest": nbest}.items():
            try:
                config.search[name] = plain(value)
            except OmegaConfBaseException as error:
                raise InputError(f"search.{name}={value!r}: {first_line(error)}") from error
        if 0 < config.search.beam_size < config.search.nbest:
            config.search.beam_size = config.search.nbest
        settings = load(config, training=False)
        dictionary = dictionary_of(self._members, settings.search)
        return dataclasses.replace(self.trained, config=settings, dictionary=dictionary)


def open_model(
    path: str | Path | Sequence[str | Path],
    *,
    accelerator: str = "auto",
    threads: int | str = "auto",
    precision: str | None = None,
    trust: Sequence[str] = (),
) -> Model:
    """A trained model, ready to translate (`nmt.load`).

    Args:
        path: a checkpoint; a run folder, whose best one is taken; or a W&B artifact,
            `wandb:entity/project/name:alias`. Several are an ensemble, which averages the
            probabilities of each word (`nmt.models.ensemble`).
        accelerator: `auto` (a GPU where there is one), `gpu` or `cpu`.
        threads: of the CPU, or `auto`.
        precision: `32`, `bf16-mixed` or `auto`; None: as in training.
        trust: modules outside nmt that the checkpoint's configuration may name.

    Raises:
        InputError: naming the file, where it is missing, damaged, or no checkpoint of nmt, or
            where the vocabularies of several differ.
        TypeError: naming the argument, for what is no path.
    """
    paths = [path] if isinstance(path, str) or not isinstance(path, Sequence) else path
    members = read_members(listed(paths, "path", PATH), listed(trust, "trust", str))
    config = members[0].config.copy()
    check_accelerator(accelerator)
    if threads != "auto" and (isinstance(threads, bool) or not isinstance(threads, Integral)):
        raise InputError(f"threads={threads}: must be a whole number, or auto")
    config.trainer["accelerator"] = accelerator
    config.threads = resolve_threads(
        threads if isinstance(threads, str) else int(threads), accelerator, config.model.hidden, 1
    )
    if precision is not None:
        config.trainer["precision"] = precision
    return Model(members, config)


def _result(
    source: list[str], text: str, words: list[str], score: float, row: Record | None
) -> ScoredSentence:
    weights = None if row is None else row["weights"]
    return ScoredSentence(
        text=text,
        tokens=words,
        score=score,
        source=source,
        weights=None if weights is None else np.array(weights),
        log_probabilities=None if row is None else np.array(row["log_probability"]),
        row=row,
    )
