"""Text to text with a trained model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nmt.data.tokenise import split, tokeniser
from nmt.data.vocabulary import END_SYMBOL, spelt
from nmt.evaluation.records import Record
from nmt.inference.force_decoding import alignment_row, force_decode
from nmt.inference.trained import TrainedModel
from nmt.inference.unknown_words import replace_unknown_words
from nmt.search import Hypothesis, search_sentences


@dataclass(frozen=True)
class Translation:
    """One translation: its words, its text, log-probability, and its alignment (if asked for)."""

    words: list[str]
    text: str
    score: float
    row: Record | None = None


@dataclass(frozen=True)
class TranslatedLine:
    """A line of input, its number from 1, its translations, best first (none if it was empty)."""

    number: int
    words: list[str]
    translations: list[Translation]


class LineTranslator:
    """Translates lines in batches, and counts them.

    Args:
        trained: the model; it is moved to the device of `trainer.accelerator`.
        tokenised: lines hold tokens separated by spaces.
        attention: force-decode each translation, for alignments and heatmaps.
    """

    def __init__(
        self, trained: TrainedModel, *, tokenised: bool = False, attention: bool = False
    ) -> None:
        config = trained.config
        self.device = trained.place()
        self.trained = trained
        self.search = config.search
        self.attention = attention or config.search.replace_unk != "none"
        moses = tokeniser(config.data.languages[0], config.tokenizer.normalise)
        self.tokenise = split if tokenised else moses.tokenise
        self.lines = 0

    def translate(self, lines: Sequence[str]) -> list[TranslatedLine]:
        """The translations of some lines, in order."""
        words = [self.tokenise(line) for line in lines]
        filled = [place for place, found in enumerate(words) if found]
        sources = [self.trained.codec.source.encode(words[place]) for place in filled]
        translations: dict[int, list[Translation]] = {}
        with self.trained.autocast():
            search = search_sentences(
                self.trained.model, sources, self.search, self.device, self.trained.workers
            )
            for at, hypotheses in search:
                place = filled[at]
                number = self.lines + place + 1
                translations[place] = self._finish(number, words[place], sources[at], hypotheses)
        first = self.lines + 1
        self.lines += len(lines)
        return [
            TranslatedLine(first + place, found, translations.get(place, []))
            for place, found in enumerate(words)
        ]

    def _finish(
        self, number: int, source: list[str], ids: list[int], hypotheses: list[Hypothesis]
    ) -> list[Translation]:
        """Words and text of the hypotheses of one sentence, force-decoded where asked for."""
        codec = self.trained.codec
        decode, detokenise = codec.target.decode, codec.detokenise
        if not self.attention:
            words = [decode(hypothesis.tokens) for hypothesis in hypotheses]
            return [
                Translation(found, detokenise(found), hypothesis.score)
                for found, hypothesis in zip(words, hypotheses, strict=True)
            ]
        finished = []
        decodings = force_decode(
            self.trained.model, [ids] * len(hypotheses), [h.tokens for h in hypotheses]
        )
        for hypothesis, decoding in zip(hypotheses, decodings, strict=True):
            found = spelt(
                replace_unknown_words(decoding, codec, source, self.search, self.trained.dictionary)
            )
            row = alignment_row(codec, number, source, decoding, score=hypothesis.score)
            row["target"] = [*found, END_SYMBOL]
            finished.append(Translation(found, detokenise(found), hypothesis.score, row))
        return finished
