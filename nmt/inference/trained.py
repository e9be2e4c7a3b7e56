"""`TrainedModel`: a model with its vocabularies and configuration, read from checkpoints."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from nmt.config import Config, EvaluationConfig, ScoreConfig, SearchConfig, TranslateConfig
from nmt.config.overrides import apply_typed, typed_paths
from nmt.config.validation import load
from nmt.data.tokenise import tokeniser
from nmt.data.vocabulary import Vocabulary
from nmt.evaluation.alignment import word_weights
from nmt.inference.wandb_checkpoint import PREFIX, check_references, download, is_reference
from nmt.layers import Attention, Intervention, LocalAttention, Network
from nmt.models.checkpoint import Checkpoint, read_checkpoint
from nmt.models.ensemble import Ensemble
from nmt.utils.devices import (
    check_accelerator,
    resolve_precision,
    resolve_threads,
    use_threads,
    uses_gpu,
)
from nmt.utils.errors import InputError


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


def make_codec(config: Config, source: Vocabulary, target: Vocabulary) -> Codec:
    """The vocabularies of a run, with the tokenisers of its languages."""
    options = config.tokenizer
    moses = [
        tokeniser(language, options.normalise, options.characters)
        for language in config.data.languages
    ]
    return Codec(source, target, (moses[0].tokenise, moses[1].tokenise), moses[1].detokenise)


@dataclass(frozen=True)
class TrainedModel:
    """A model that translates.

    Attributes:
        model: in evaluation mode wherever it is used.
        codec: its vocabularies and the detokeniser of its target language.
        config: `search`, `evaluation` and the languages of its text are used.
        dictionary: translations of source words, for `search.replace_unk=dictionary`.
    """

    model: Network | Ensemble
    codec: Codec
    config: Config
    dictionary: Mapping[str, str] | None = None

    @property
    def workers(self) -> int:
        """Batches that are worked on at a time on a CPU: as many as an update has threads."""
        threads = self.config.threads
        return threads if isinstance(threads, int) else 1

    def place(self) -> torch.device:
        """Moves the model to the device of `trainer.accelerator`, and returns it."""
        use_threads(self.config.threads)
        device = torch.device("cuda" if uses_gpu(self.config.trainer["accelerator"]) else "cpu")
        self.model.to(device)
        return device

    def autocast(self) -> torch.autocast:
        """The arithmetic of `trainer.precision`, on the device where the model is."""
        options = self.config.trainer
        bf16 = resolve_precision(options["precision"], options["accelerator"]) == "bf16-mixed"
        return torch.autocast(self.model.device.type, torch.bfloat16, enabled=bf16)


def load_for_command(
    composed: DictConfig, command: type[TranslateConfig | ScoreConfig]
) -> TrainedModel:
    """The model that `nmt.translate` or `nmt.score` applies.

    Its configuration is that of the checkpoint with what was typed.

    Raises:
        InputError: as `read_members` and `from_checkpoints`, and naming a key that is wrong.
    """
    members = read_members(composed.checkpoint, composed.trust)
    typed = HydraConfig.get().overrides.task
    paths = typed_paths(typed, command)
    stored = apply_typed(members[0].config, composed, typed, command)
    if command is TranslateConfig:
        if "search.beam_size" in paths and composed.nbest > stored.search.beam_size:
            raise InputError(
                f"nbest={composed.nbest}: must be at most search.beam_size={stored.search.beam_size}"
            )
        stored.search.nbest = composed.nbest
        stored.search.beam_size = max(composed.nbest, stored.search.beam_size)
    config = load(stored, training=False)
    if "trainer.accelerator" in paths:  # the stored one need not exist here
        check_accelerator(config.trainer["accelerator"])
    # the stored number of threads was chosen for another machine
    threads = config.threads if "threads" in paths else "auto"
    accelerator, units = config.trainer["accelerator"], config.model.hidden
    config.threads = resolve_threads(threads, accelerator, units, 1)
    return from_checkpoints(members, config)


def read_members(named: Any, trust: Sequence[str] = ()) -> list[Checkpoint]:
    """The checkpoints that `checkpoint=FILE` names, or the members of `checkpoint=[a,b,c]`.

    One of `wandb:entity/project/name:alias` is downloaded, and read like any other file.

    Raises:
        InputError: as `read_checkpoint`, `download` and `checkpoint_names`; and where the
            vocabularies, the languages or the tokenisation of two of them differ.
    """
    files = checkpoint_names(named)
    check_references(files)
    members = [_read(file, trust) for file in files]
    first, *others = members
    for other in others:
        for what, one, two in zip(
            ("source vocabulary", "target vocabulary", "languages", "tokenizer.normalise"),
            _shared(first),
            _shared(other),
            strict=True,
        ):
            if one != two:
                raise InputError(
                    f"checkpoint={other.path}: its {what} is not that of {first.path}; models are "
                    "averaged word by word, so that all must be trained on one prepared text"
                )
    return members


def checkpoint_names(named: Any) -> Sequence[str | Path]:
    """What `checkpoint=FILE` or `checkpoint=[a,b,c]` names; raises InputError for neither.

    A run folder stands for its best checkpoint.
    """
    files = [named] if isinstance(named, str | Path) else named
    if not isinstance(files, Sequence) or not files or "" in map(str, files):
        raise InputError(f"checkpoint={named}: must be a file, or several as [a,b,c]")
    best = [os.path.join(str(file), "checkpoints", "best.ckpt") for file in files]
    # os.path's answer is False for a name that no file can have, which reading refuses
    return [path if os.path.isfile(path) else file for file, path in zip(files, best, strict=True)]


def _read(file: str | Path, trust: Sequence[str]) -> Checkpoint:
    """A checkpoint from a file or from W&B."""
    if not is_reference(file):
        return read_checkpoint(str(file), trust)
    checkpoint = read_checkpoint(download(str(file)), trust)
    return dataclasses.replace(checkpoint, artifact=str(file).removeprefix(PREFIX))


def _shared(checkpoint: Checkpoint) -> tuple[Any, ...]:
    """What must be the same for all members of an ensemble."""
    config = checkpoint.config
    return (
        checkpoint.source_vocabulary.state(),
        checkpoint.target_vocabulary.state(),
        list(config.data.languages),
        config.tokenizer.normalise,
    )


def from_checkpoints(members: Sequence[Checkpoint], config: Config) -> TrainedModel:
    """The model of a checkpoint, or the ensemble of several, on the CPU.

    Args:
        members: of `read_members`.
        config: the first one's, with the settings of what it is to do.

    Raises:
        InputError: where a model cannot be built, its weights do not fit it,
            as `dictionary_of`, or `evaluation.attention` replaces weights and one of the models has none.
    """
    first, *others = members
    dictionary = dictionary_of(members, config.search)
    codec = make_codec(config, first.source_vocabulary, first.target_vocabulary)
    models = [first.network(config), *(member.network() for member in others)]
    attention = config.evaluation.attention
    for member, each in zip(members, models, strict=True):
        context = each.decoder.context
        global_attention = isinstance(context, Attention) and not isinstance(
            context, LocalAttention
        )
        if attention != "as_trained" and not global_attention:
            raise InputError(
                f"checkpoint={member.path}: {member.config.model.title} has no attention whose "
                f"weights could be replaced; leave out evaluation.attention={attention}"
            )
        intervene(each, config.evaluation)
    model = Ensemble(models).eval() if others else models[0]
    return TrainedModel(model, codec, config, dictionary)


def dictionary_of(members: Sequence[Checkpoint], search: SearchConfig) -> dict[str, str] | None:
    """The first model's dictionary if `search.replace_unk` asks for one.

    Raises:
        InputError: if it asks for one and no model has one.
    """
    if search.replace_unk != "dictionary":
        return None
    for member in members:
        if member.dictionary is not None:
            return member.dictionary
    raise InputError(
        f"search.replace_unk=dictionary: {members[0].path} holds no dictionary; a training with "
        "attention and evaluation.dictionary_sample above 0 learns one; or take copy"
    )


def intervene(model: Network, settings: EvaluationConfig) -> None:
    """Replaces the weights of a model's attention as `evaluation.attention` says, if it does."""
    if settings.attention != "as_trained":
        context = model.decoder.context
        assert isinstance(context, Attention)
        changed = Intervention(context, settings.attention)
        model.decoder.context = changed  # type: ignore[assignment]  # an attention to a decoder's step
