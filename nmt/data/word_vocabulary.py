"""The shortlist of the most frequent words (section 4.1 of the paper)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from nmt.data.vocabulary import END, SPECIAL, UNKNOWN, WORDS, until_end
from nmt.utils.errors import InputError


class WordVocabulary:
    """A shortlist of words.

    Args:
        words: distinct words, the most frequent first; word i has the id i + 2.
    """

    kind = WORDS

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)
        self._ids = {word: index for index, word in enumerate(self.words, len(SPECIAL))}
        if len(self._ids) != len(self.words):
            raise InputError("vocabulary: a word occurs twice in the list")

    def __len__(self) -> int:
        return len(SPECIAL) + len(self.words)

    def encode(self, tokens: Sequence[str]) -> list[int]:
        ids = [self._ids.get(token, UNKNOWN) for token in tokens]
        ids.append(END)
        return ids

    def decode(self, ids: Iterable[int]) -> list[str]:
        return self.symbols(until_end(ids))

    def word_index(self, ids: Iterable[int]) -> list[int]:
        return [index for index, _ in enumerate(ids)]

    def symbols(self, ids: Iterable[int]) -> list[str]:
        return [
            SPECIAL[index] if index < len(SPECIAL) else self.words[index - len(SPECIAL)]
            for index in map(int, ids)
        ]

    def unknown(self, tokens: Iterable[str]) -> int:
        return sum(token not in self._ids for token in tokens)

    def state(self) -> dict[str, Any]:
        return {"kind": self.kind, "words": list(self.words)}


def rank_words(sentences: Iterable[str]) -> list[str]:
    """All words of tokenised sentences by decreasing frequency, ties in code point order.

    Tokens are separated by spaces; the first entries are a shortlist.

    Counted by the `tokenizers` library, in parallel; memory holds the distinct words, not the text.
    """
    counter = Tokenizer(models.WordLevel())
    counter.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordLevelTrainer(
        vocab_size=2**31 - 1, min_frequency=0, show_progress=False, special_tokens=[]
    )
    counter.train_from_iterator(sentences, trainer)
    ids = counter.get_vocab()
    return sorted(ids, key=ids.__getitem__)
