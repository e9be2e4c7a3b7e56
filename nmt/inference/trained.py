"""`TrainedModel`: a model with its vocabularies and configuration, read from checkpoints."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from nmt.config import Config, EvaluationConfig, SearchConfig
from nmt.data.tokenise import tokeniser
from nmt.data.vocabulary import Vocabulary
from nmt.inference.wandb_checkpoint import PREFIX, check_references, download, is_reference
from nmt.layers import Attention, Intervention, LocalAttention, Network
from nmt.models.checkpoint import Checkpoint, read_checkpoint
from nmt.models.ensemble import Ensemble
from nmt.utils.devices import resolve_precision, use_threads, uses_gpu
from nmt.utils.errors import InputError


@dataclass(frozen=True)
class Codec:
    """The vocabularies of both sides, and the detokeniser of the target language."""

    source: Vocabulary
    target: Vocabulary
    detokenise: Callable[[Sequence[str]], str]


def make_codec(config: Config, source: Vocabulary, target: Vocabulary) -> Codec:
    """The vocabularies of a run, with the detokeniser of its target language."""
    moses = tokeniser(config.data.languages[1], config.tokenizer.normalise)
    return Codec(source, target, moses.detokenise)


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
    models = [first.translator(config).network, *(m.translator().network for m in others)]
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
    """The dictionary of the first of some models that has attention, if `search.replace_unk` asks for one.

    Raises:
        InputError: where it does and there is none, or `<unk>` is to be replaced without attention.
    """
    if search.replace_unk == "none":
        return None
    member = next((each for each in members if each.config.model.alignment is not None), None)
    if member is None:
        raise InputError(
            f"search.replace_unk={search.replace_unk}: {members[0].config.model.title} has no "
            "attention to replace <unk> with; use none"
        )
    if search.replace_unk == "copy":
        return None
    if member.dictionary is None:
        raise InputError(
            f"search.replace_unk=dictionary: {member.path} holds no dictionary; a run learns one "
            "at its end (evaluation.dictionary_sample) and keeps it in best.ckpt; or take copy"
        )
    return member.dictionary


def intervene(model: Network, settings: EvaluationConfig) -> None:
    """Replaces the weights of a model's attention as `evaluation.attention` says, if it does."""
    if settings.attention != "as_trained":
        context = model.decoder.context
        assert isinstance(context, Attention)
        changed = Intervention(context, settings.attention)
        model.decoder.context = changed  # type: ignore[assignment]  # an attention to a decoder's step
