"""Translation of lines of text with a trained model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nmt.data.vocabulary import END_SYMBOL, spelt
from nmt.evaluation.records import Record
from nmt.inference.force_decoding import RUNNERS_UP, alignment_row, force_decode
from nmt.inference.lines import LineProcessor
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


class LineTranslator(LineProcessor):
    """Translates lines in batches, and counts them; arguments as `LineProcessor`.

    With `attention`, or a replacement of unknown words, each translation is force-decoded.
    """

    def translate(self, lines: Sequence[str]) -> list[TranslatedLine]:
        """The translations of some lines, in order."""
        trained = self.trained
        words = [self.source_words(line) for line in lines]
        filled = [place for place, found in enumerate(words) if found]
        sources = [trained.codec.source.encode(words[place]) for place in filled]
        translations: dict[int, list[Translation]] = {}
        with trained.autocast():
            for at, hypotheses in search_sentences(
                trained.model, sources, trained.config.search, self.device, trained.workers
            ):
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
        settings = self.trained.config.search
        if not self.attention and settings.replace_unk == "none":
            words = [decode(hypothesis.tokens) for hypothesis in hypotheses]
            return [
                Translation(found, detokenise(found), hypothesis.score)
                for found, hypothesis in zip(words, hypotheses, strict=True)
            ]
        finished = []
        decodings = force_decode(
            self.trained.model,
            [ids] * len(hypotheses),
            [h.tokens for h in hypotheses],
            runners_up=RUNNERS_UP if self.attention else 0,
        )
        for hypothesis, decoding in zip(hypotheses, decodings, strict=True):
            dictionary = self.trained.dictionary
            found = spelt(replace_unknown_words(decoding, codec, source, settings, dictionary))
            row = None
            if self.attention:
                row = alignment_row(codec, number, source, decoding, score=hypothesis.score)
                row["target"] = [*found, END_SYMBOL]
            finished.append(Translation(found, detokenise(found), hypothesis.score, row))
        return finished
