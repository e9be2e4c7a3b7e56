"""The special symbols, and two kinds of vocabulary: a shortlist of words, or subwords.

Id 0 (`</s>`) marks the end of a sentence, and id 1 (`<unk>`) stands for every word outside the shortlist.
The ids of words or subwords start at 2. A `</s>` or `<unk>` in a text is an ordinary word: it has an id of 2
or more, or id 1 if it is outside the shortlist.
"""

from __future__ import annotations

import itertools
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from nmt.text.symbols import END, END_SYMBOL, SPECIAL, UNKNOWN, UNKNOWN_SYMBOL

WORDS = "words"  # `kind` of `WordVocabulary`
SPACE = re.compile(r"\s")
WORD_START = "Ġ"
DECODER = decoders.ByteLevel()


class Vocabulary(ABC):
    """Base class of vocabularies: a shortlist of words, or a set of subwords."""

    kind: str

    def __init__(self, symbols: Sequence[str]) -> None:
        self._symbols = [*SPECIAL, *symbols]

    def __len__(self) -> int:
        """Returns the number of ids, including the two special ids."""
        return len(self._symbols)

    @abstractmethod
    def encode(self, tokens: Sequence[str]) -> list[int]:
        """Returns the ids of a sentence, with END at the end."""

    @abstractmethod
    def _words(self, ids: Iterable[int]) -> Iterator[tuple[str | None, int]]:
        """Groups ids into words; yields each word (None for UNKNOWN) and the number of its ids."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Returns the vocabulary as plain containers, for checkpoints and files."""

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Returns the words before the first END; UNKNOWN becomes the word `<unk>`."""
        return mark_unknown(self.words_of(ids))

    def words_of(self, ids: Iterable[int]) -> list[str | None]:
        """Returns the words before the first END; UNKNOWN becomes None."""
        return [word for word, _ in self._words(until_end(ids))]

    def word_index(self, ids: Iterable[int]) -> list[int]:
        """Returns the index of the word to which each id belongs; END counts as a word."""
        return [
            number for number, (_, length) in enumerate(self._words(ids)) for _ in range(length)
        ]

    def symbols(self, ids: Iterable[int]) -> list[str]:
        """Returns the text of each id, including `</s>` and `<unk>`."""
        return [self._symbols[index] for index in map(int, ids)]


Vocabularies = tuple[Vocabulary, Vocabulary]  # source and target


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

    def _words(self, ids: Iterable[int]) -> Iterator[tuple[str | None, int]]:
        return ((None if index == UNKNOWN else self._symbols[index], 1) for index in ids)

    def state(self) -> dict[str, Any]:
        return {"kind": self.kind, "words": list(self.words)}


def rank_words(sentences: Iterable[str]) -> list[str]:
    """Returns the distinct words of sentences, sorted by decreasing frequency and then by code points.

    Words are separated by spaces. The first N distinct words form a shortlist of size N.
    """
    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(sentence.split())
    return sorted(counts, key=lambda word: (-counts[word], word))


class BpeVocabulary(Vocabulary):
    """The subwords of byte-pair encoding, for one language or for both (`tokenizer=bpe`).

    Merges start from bytes, so that every word can be encoded and decoded exactly. The first subword of a
    word starts with `Ġ`, which stands for the preceding space. Merges never cross word boundaries.

    Args:
        model: the model in the JSON format of `tokenizers`.
    """

    kind = "bpe"

    def __init__(self, model: str) -> None:
        self._model = Tokenizer.from_str(model)
        ids = self._model.get_vocab()
        self._subwords = sorted(ids, key=ids.__getitem__)
        super().__init__([_text(subword) or WORD_START for subword in self._subwords])

    @classmethod
    def learn(cls, sentences: Iterable[str], size: int) -> BpeVocabulary:
        """Learns up to `size` subwords, but at least the 256 single bytes, from tokens joined by spaces."""
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

    def state(self) -> dict[str, Any]:
        return {"kind": self.kind, "model": self._model.to_str()}

    def _subword(self, index: int) -> str:
        return self._subwords[index - len(SPECIAL)]

    def _words(self, ids: Iterable[int]) -> Iterator[tuple[str | None, int]]:
        """See `Vocabulary._words`.

        A model may generate ids that decode to invalid UTF-8, to white space or to no text. U+FFFD replaces
        such text, so that each group of ids is exactly one word.
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
                yield None if ids[start] == UNKNOWN else END_SYMBOL, stop - start
            else:
                subwords = "".join(map(self._subword, ids[start:stop]))
                yield SPACE.sub("\ufffd", _text(subwords)) or "\ufffd", stop - start


def _text(symbols: str) -> str:
    return str(DECODER.decode([symbols.removeprefix(WORD_START)]))


def load_vocabulary(state: dict[str, Any]) -> Vocabulary:
    """Rebuilds a vocabulary from its `state()`, as stored in a checkpoint or a cache."""
    if state["kind"] == WORDS:
        return WordVocabulary(state["words"])
    return BpeVocabulary(state["model"])


def mark_unknown(words: Iterable[str | None]) -> list[str]:
    """Replaces each None, which `Vocabulary.words_of` returns for an unknown word, with `<unk>`."""
    return [UNKNOWN_SYMBOL if word is None else word for word in words]


def until_end(ids: Iterable[int]) -> Iterator[int]:
    """Yields the ids before the first END."""
    return itertools.takewhile(lambda index: index != END, map(int, ids))
