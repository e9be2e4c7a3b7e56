"""Text to text with a trained model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from nmt.config.schema import Config
from nmt.data.tokenise import split, tokeniser
from nmt.evaluation.records import Record
from nmt.inference.force_decoding import Codec, alignment_row, read, replace_unknown_words
from nmt.models.base import Translator
from nmt.search import Hypothesis, search_sentences
from nmt.utils.devices import resolve_precision, use_threads, uses_gpu


@dataclass(frozen=True)
class Translation:
    """One translation: its words, its text, log-probability, and how it was read (if asked for)."""

    words: list[str]
    text: str
    score: float
    row: Record | None = None


@dataclass(frozen=True)
class Sentence:
    """A line of input, its number from 1, its translations, best first (none if it was empty)."""

    number: int
    words: list[str]
    translations: list[Translation]


class Translations:
    """Translates lines in batches, and counts them.

    Args:
        model: in evaluation mode.
        tokenised: lines hold tokens separated by spaces.
        attention: force-decode each translation, for alignments and heatmaps.
        dictionary: for `search.replace_unk=dictionary`.
    """

    def __init__(
        self,
        model: Translator,
        codec: Codec,
        config: Config,
        *,
        tokenised: bool = False,
        attention: bool = False,
        dictionary: Mapping[str, str] | None = None,
    ) -> None:
        use_threads(config.trainer.threads)
        accelerator = config.trainer.accelerator
        self.device = torch.device("cuda" if uses_gpu(accelerator) else "cpu")
        precision = resolve_precision(config.trainer.precision, accelerator)
        self.bf16 = precision == "bf16-mixed"
        self.model = model.to(self.device)
        self.codec = codec
        self.config = config
        self.attention = attention or config.search.replace_unk != "none"
        self.dictionary = dictionary
        moses = tokeniser(config.data.languages[0], config.tokenizer.normalise)
        self.tokenise = split if tokenised else moses.tokenise
        self.lines = 0

    def of(self, lines: Sequence[str]) -> list[Sentence]:
        """The translations of some lines, in order."""
        words = [self.tokenise(line) for line in lines]
        filled = [place for place, found in enumerate(words) if found]
        sources = [self.codec.source.encode(words[place]) for place in filled]
        translations: dict[int, list[Translation]] = {}
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
            search = search_sentences(self.model, sources, self.config.search, device=self.device)
            for at, hypotheses in search:
                place = filled[at]
                number = self.lines + place + 1
                translations[place] = self._finish(number, words[place], sources[at], hypotheses)
        first = self.lines + 1
        self.lines += len(lines)
        return [
            Sentence(first + place, found, translations.get(place, []))
            for place, found in enumerate(words)
        ]

    def _finish(
        self, number: int, source: list[str], ids: list[int], hypotheses: list[Hypothesis]
    ) -> list[Translation]:
        """Words and text of the hypotheses of one sentence, read once more where asked for."""
        decode, detokenise = self.codec.target.decode, self.codec.detokenise
        if not self.attention:
            words = [decode(hypothesis.tokens) for hypothesis in hypotheses]
            return [
                Translation(found, detokenise(found), hypothesis.score)
                for found, hypothesis in zip(words, hypotheses, strict=True)
            ]
        finished = []
        readings = read(self.model, [ids] * len(hypotheses), [h.tokens for h in hypotheses])
        for hypothesis, reading in zip(hypotheses, readings, strict=True):
            found = replace_unknown_words(
                reading, self.codec, source, self.config.search, self.dictionary
            )
            row = alignment_row(self.codec, number, source, reading, score=hypothesis.score)
            row["target"] = [*found, "</s>"]
            finished.append(Translation(found, detokenise(found), hypothesis.score, row))
        return finished
