"""The special symbols and the vocabularies: a shortlist of words, or subwords.

Ids: 0 ends a sentence (`</s>`), 1 stands for every word outside the shortlist (`<unk>`), words or
subwords follow. The two special symbols are ids only and never parsed from text: a word of the text
that is spelt `<unk>` is a word like any other.
"""

from __future__ import annotations

import itertools
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

END = 0
UNKNOWN = 1
END_SYMBOL, UNKNOWN_SYMBOL = SPECIAL = ("</s>", "<unk>")
WORDS = "words"  # the kind of a shortlist of words
SPACE = re.compile(r"\s")
WORD_START = "Ġ"
DECODER = decoders.ByteLevel()


class Vocabulary(ABC):
    """What a shortlist of words and a set of subwords have in common."""

    kind: str

    def __init__(self, symbols: Sequence[str]) -> None:
        self._symbols = [*SPECIAL, *symbols]

    def __len__(self) -> int:
        """Number of ids, the two special ones included."""
        return len(self._symbols)

    @abstractmethod
    def encode(self, tokens: Sequence[str]) -> list[int]:
        """Ids of a sentence, END appended."""

    @abstractmethod
    def _words(self, ids: Iterable[int]) -> Iterator[tuple[str, int]]:
        """Words that the ids spell, with the number of ids of each; END is a word of its own."""

    @abstractmethod
    def unknown(self, tokens: Iterable[str]) -> int:
        """How many words of the sentence are unknown."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """All of it as plain containers, for checkpoints and files."""

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Words up to the first END; UNKNOWN becomes the word `<unk>`."""
        return [word for word, _ in self._words(until_end(ids))]

    def word_index(self, ids: Iterable[int]) -> list[int]:
        """For every id the number of the word it belongs to; END counts as a word of its own."""
        return [
            number for number, (_, length) in enumerate(self._words(ids)) for _ in range(length)
        ]

    def symbols(self, ids: Iterable[int]) -> list[str]:
        """Every id as people read it, `</s>` and `<unk>` included."""
        return [self._symbols[index] for index in map(int, ids)]


Vocabularies = tuple[Vocabulary, Vocabulary]  # of the source and of the target


class WordVocabulary(Vocabulary):
    """The shortlist of the most frequent words (section 4.1 of the paper).

    Args:
        words: distinct words, the most frequent first; word i has the id i + 2.
    """

    kind = WORDS

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__(words)
        self.words = list(words)
        self._ids = {word: index for index, word in enumerate(self.words, len(SPECIAL))}

    def encode(self, tokens: Sequence[str]) -> list[int]:
        ids = [self._ids.get(token, UNKNOWN) for token in tokens]
        ids.append(END)
        return ids

    def _words(self, ids: Iterable[int]) -> Iterator[tuple[str, int]]:
        return ((symbol, 1) for symbol in self.symbols(ids))

    def unknown(self, tokens: Iterable[str]) -> int:
        return sum(token not in self._ids for token in tokens)

    def state(self) -> dict[str, Any]:
        return {"kind": self.kind, "words": list(self.words)}


def rank_words(sentences: Iterable[str]) -> list[str]:
    """All words of tokenised sentences by decreasing frequency, ties in code point order.

    Tokens are separated by spaces; the first entries are a shortlist.
    """
    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(sentence.split())
    return sorted(counts, key=lambda word: (-counts[word], word))


class BpeVocabulary(Vocabulary):
    """Subwords by byte-pair encoding of one language, or of both (`tokenizer=bpe`).

    The pairs merged are of bytes, so that no word is unknown and every word is given back exactly.
    The first subword of a word carries the mark `Ġ`, which stands for the space before it; merges
    never cross a word's boundary.

    Args:
        model: the model as `tokenizers` writes it (JSON).
    """

    kind = "bpe"

    def __init__(self, model: str) -> None:
        self._model = Tokenizer.from_str(model)
        ids = self._model.get_vocab()
        self._subwords = sorted(ids, key=ids.__getitem__)
        super().__init__([_text(subword) or WORD_START for subword in self._subwords])

    @classmethod
    def learn(cls, sentences: Iterable[str], size: int) -> BpeVocabulary:
        """`size` subwords, or the 256 bytes, from sentences whose tokens are joined by spaces."""
        model = Tokenizer(models.BPE())
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False)
        model.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), byte_level]
        )
        trainer = trainers.BpeTrainer(
            vocab_size=size,
            show_progress=False,
            special_tokens=[],
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        )
        model.train_from_iterator(sentences, trainer)
        return cls(model.to_str())

    def encode(self, tokens: Sequence[str]) -> list[int]:
        encoding = self._model.encode(list(tokens), is_pretokenized=True)
        return [index + len(SPECIAL) for index in encoding.ids] + [END]

    def unknown(self, tokens: Iterable[str]) -> int:
        return 0

    def state(self) -> dict[str, Any]:
        return {"kind": self.kind, "model": self._model.to_str()}

    def _subword(self, index: int) -> str:
        return self._subwords[index - len(SPECIAL)]

    def _words(self, ids: Iterable[int]) -> Iterator[tuple[str, int]]:
        """Words that the ids spell, with the number of ids of each.

        Ids generated by a model can decode to half a character or to nothing. Such a word is written with
        U+FFFD, so that each group of ids stays one word.
        """
        ids = [int(index) for index in ids]
        starts = [
            place
            for place, index in enumerate(ids)
            if place == 0
            or index in (END, UNKNOWN)
            or ids[place - 1] in (END, UNKNOWN)
            or self._subword(index).startswith(WORD_START)
        ]
        for start, stop in itertools.pairwise([*starts, len(ids)]):
            if ids[start] in (END, UNKNOWN):
                yield SPECIAL[ids[start]], stop - start
            else:
                spelt = "".join(map(self._subword, ids[start:stop]))
                yield SPACE.sub("\ufffd", _text(spelt)) or "\ufffd", stop - start


def _text(symbols: str) -> str:
    return str(DECODER.decode([symbols.removeprefix(WORD_START)]))


def load_vocabulary(state: dict[str, Any]) -> Vocabulary:
    """The vocabulary that gave `state`, from a checkpoint or a cache."""
    if state["kind"] == WORDS:
        return WordVocabulary(state["words"])
    return BpeVocabulary(state["model"])


def written_words(vocabulary: Vocabulary, ids: Sequence[int]) -> list[str | None]:
    """Words up to the first END; None for UNKNOWN, unlike for a word spelt `<unk>`."""
    words: list[str | None] = list(vocabulary.decode(ids))
    for place, index in zip(vocabulary.word_index(ids), ids, strict=True):
        if index == UNKNOWN and place < len(words):
            words[place] = None
    return words


def spelt(words: Iterable[str | None]) -> list[str]:
    """Words of `written_words` as people read them."""
    return [UNKNOWN_SYMBOL if word is None else word for word in words]


def until_end(ids: Iterable[int]) -> Iterator[int]:
    """Ids before the first END."""
    return itertools.takewhile(lambda index: index != END, map(int, ids))
