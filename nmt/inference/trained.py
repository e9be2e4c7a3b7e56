"""A trained model together with what turns words into ids and back, ready to translate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nmt.config import Config, EvaluationConfig
from nmt.data.tokenise import tokeniser
from nmt.data.vocabulary import Vocabulary
from nmt.layers import Attention, Intervention
from nmt.models.base import Translator
from nmt.models.checkpoint import Checkpoint


@dataclass(frozen=True)
class Codec:
    """What turns words into ids and back, and words into text."""

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

    model: Translator
    codec: Codec
    config: Config
    dictionary: Mapping[str, str] | None = None

    @property
    def workers(self) -> int:
        """Batches that are worked on at a time on a CPU: as many as an update has threads."""
        threads = self.config.trainer.threads
        return threads if isinstance(threads, int) else 1


def from_checkpoint(checkpoint: Checkpoint, config: Config) -> TrainedModel:
    """The model of a checkpoint, on the CPU, with the settings of `config`.

    Raises:
        InputError: where the model cannot be built, the weights do not fit it, or
            `search.replace_unk` asks for a dictionary that the checkpoint does not have.
    """
    dictionary = checkpoint.dictionary_for(config.search)
    codec = make_codec(config, checkpoint.source_vocabulary, checkpoint.target_vocabulary)
    model = checkpoint.translator(config)
    intervene(model, config.evaluation)
    return TrainedModel(model, codec, config, dictionary)


def intervene(model: Translator, settings: EvaluationConfig) -> None:
    """Replaces the weights of a model's attention as `evaluation.attention` says.

    Sentences are then read by the steps of a search, one word after the other.
    """
    context = model.decoder.context
    if settings.attention != "as_trained" and isinstance(context, Attention):
        changed = Intervention(context, settings.attention, settings.top_k)
        model.decoder.context = changed  # type: ignore[assignment]  # an attention to a decoder's step
        model.decoder.recurrence = "plain"
