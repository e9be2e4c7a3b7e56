"""A trained model in Python (`nmt.load`): translations and likelihoods, with their alignments."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from nmt.config.validation import load
from nmt.data.batch import pad
from nmt.data.tokenise import split
from nmt.inference import decoding
from nmt.inference.decoding import ScoredSentence
from nmt.inference.trained import TrainedModel, dictionary_of, from_checkpoints, read_members
from nmt.layers import Network
from nmt.models.checkpoint import Checkpoint
from nmt.utils.arguments import as_list
from nmt.utils.devices import check_accelerator, resolve_threads
from nmt.utils.errors import InputError, first_line


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
        files = ", ".join(map(str, self.checkpoints))
        return f"<{self.trained.config.name}, {source} to {target}, {files}>"

    @overload
    def translate(
        self, sentences: str, *, beam: int | None = ..., nbest: int = ..., tokenised: bool = ...,
        **search: Any,
    ) -> ScoredSentence: ...  # fmt: skip

    @overload
    def translate(
        self, sentences: Sequence[str], *, beam: int | None = ..., nbest: int = ...,
        tokenised: bool = ..., **search: Any,
    ) -> list[ScoredSentence]: ...  # fmt: skip

    def translate(
        self,
        sentences: str | Sequence[str],
        *,
        beam: int | None = None,
        nbest: int = 1,
        tokenised: bool = False,
        **search: Any,
    ) -> ScoredSentence | list[ScoredSentence]:
        """The best translation of each sentence, in order; of a single string, its translation.

        Args:
            sentences: ordinary text, one sentence each.
            beam: hypotheses that are kept (`search.beam_size`); None: as in the checkpoint.
            nbest: number of translations in `ScoredSentence.nbest`; the beam is as wide at least.
            tokenised: the sentences hold tokens separated by spaces.
            search: other keys of the section `search`, such as `length_penalty=0.6`.

        Raises:
            InputError: naming the key, if one is unknown or its value out of bounds.
        """
        lines = as_list(sentences)
        trained = self._searching(beam, nbest, search)
        words_of = split if tokenised else trained.codec.tokenise[0]
        results = []
        for found in decoding.translate(trained, [words_of(line) for line in lines]):
            best = found[0] if found else ScoredSentence("", [], math.nan, [])
            results.append(dataclasses.replace(best, nbest=tuple(found)))
        return results[0] if isinstance(sentences, str) else results

    def score(
        self, pairs: Sequence[tuple[str, str]], *, tokenised: bool = False
    ) -> list[ScoredSentence]:
        """The log-probability of given translations, and their alignment, in order.

        Args:
            pairs: (source, target), ordinary text, one sentence each. A target word outside the
                vocabulary has the probability of `<unk>`.
            tokenised: the sentences hold tokens separated by spaces.

        Raises:
            ValueError: for a pair that does not have two sentences.
        """
        codec = self.trained.codec
        source_words, target_words = (split, split) if tokenised else codec.tokenise
        words = [(source_words(source), target_words(target)) for source, target in pairs]
        scored = decoding.score(self.trained, words)
        if tokenised:
            return scored
        given = zip(scored, pairs, strict=True)
        return [dataclasses.replace(each, text=target) for each, (_, target) in given]

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
        trained, codec = self.trained, self.trained.codec
        network, device = trained.model, trained.place()
        if not isinstance(network, Network):
            raise TypeError("encode: an ensemble has no vectors of its own; load one checkpoint")
        words_of = split if tokenised else codec.tokenise[0]
        ids = [codec.source.encode(words_of(line)) for line in as_list(sentences)]

        @torch.no_grad()
        def work(places: list[int]) -> list[tuple[np.ndarray, np.ndarray]]:
            source, mask = (tensor.to(device) for tensor in pad([ids[place] for place in places]))
            memory = network.encode(source, mask)
            annotations, summary = memory.annotations.float().cpu(), memory.summary.float().cpu()
            return [
                (annotations[n, : len(ids[place])].numpy(), summary[n].numpy())
                for n, place in enumerate(places)
            ]

        found = dict(decoding.in_batches(trained, [len(each) for each in ids], work))
        return [found[place] for place in range(len(ids))]

    def _searching(self, beam: int | None, nbest: int, search: dict[str, Any]) -> TrainedModel:
        """The model with other settings of the search."""
        config = self._config.copy()
        if beam is not None:
            search = {**search, "beam_size": beam}
        for name, value in {**search, "nbest": nbest}.items():
            try:
                config.search[name] = value.item() if hasattr(value, "item") else value
            except OmegaConfBaseException as error:
                raise InputError(f"search.{name}={value!r}: {first_line(error)}") from error
        if 0 < config.search.beam_size < config.search.nbest:
            config.search.beam_size = config.search.nbest
        settings = load(config, training=False)
        dictionary = dictionary_of(self._members, settings.search)
        return dataclasses.replace(self.trained, config=settings, dictionary=dictionary)


def load_model(
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
        accelerator: `auto` (a GPU if there is one), `gpu` or `cpu`.
        threads: of the CPU, or `auto`.
        precision: `32`, `bf16-mixed` or `auto`; None: as in training.
        trust: modules outside nmt that the checkpoint's configuration may name.

    Raises:
        InputError: naming the file, if it is missing, damaged, or not a checkpoint of nmt, or if
            the vocabularies of several differ.
    """
    members = read_members(as_list(path), as_list(trust))
    config = members[0].config.copy()
    check_accelerator(accelerator)
    config.trainer["accelerator"] = accelerator
    config.threads = resolve_threads(threads, accelerator, config.model.hidden, 1)
    if precision is not None:
        config.trainer["precision"] = precision
    return Model(members, config)
