"""Words to ids and back: the shortlist of the most frequent words (section 4.1 of the paper).

Ids: 0 ends a sentence (`</s>`), 1 stands for every word outside the shortlist (`<unk>`), words
follow by falling frequency. The two special symbols are ids only and never parsed from text: a word
of the text that is spelt `<unk>` is a word like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from nmt.errors import Refusal

END = 0
UNKNOWN = 1
SPECIAL = ("</s>", "<unk>")


class Encoding(Protocol):
    """What is common to a shortlist of words and a set of subwords."""

    kind: str

    def __len__(self) -> int:
        """Number of ids, the two special ones included."""

    def encode(self, tokens: Sequence[str]) -> list[int]:
        """Ids of a sentence, END appended."""

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Words up to the first END; UNKNOWN becomes the word `<unk>`."""

    def word_index(self, ids: Iterable[int]) -> list[int]:
        """For every id the number of the word it belongs to; END counts as a word of its own."""

    def symbols(self, ids: Iterable[int]) -> list[str]:
        """Every id as people read it, `</s>` and `<unk>` included."""

    def knows(self, tokens: Iterable[str]) -> bool:
        """Whether no word of the sentence is unknown."""

    def state(self) -> dict[str, Any]:
        """All of it as plain containers, for checkpoints and files."""


class Vocabulary:
    """A shortlist of words.

    Args:
        words: distinct words, the most frequent first; word i has the id i + 2.
    """

    kind = "words"

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)
        self._ids = {word: index for index, word in enumerate(self.words, len(SPECIAL))}
        if len(self._ids) != len(self.words):
            raise Refusal("vocabulary: a word occurs twice in the list")

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

    def knows(self, tokens: Iterable[str]) -> bool:
        return all(token in self._ids for token in tokens)

    def state(self) -> dict[str, Any]:
        return {"kind": self.kind, "words": list(self.words)}


def rank_words(sentences: Iterable[str], *, progress: bool = False) -> list[str]:
    """All words of tokenised sentences by falling frequency, ties in code point order.

    Tokens are separated by spaces; the first entries are a shortlist.

    Counted by the `tokenizers` library, in parallel; memory holds the distinct words, not the text.
    """
    counter = Tokenizer(models.WordLevel())
    counter.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordLevelTrainer(
        vocab_size=2**31 - 1, min_frequency=0, show_progress=progress, special_tokens=[]
    )
    counter.train_from_iterator(sentences, trainer)
    ids = counter.get_vocab()
    return sorted(ids, key=ids.__getitem__)


def all_known(
    source_vocabulary: Encoding,
    target_vocabulary: Encoding,
    source: Iterable[str],
    target: Iterable[str],
) -> bool | None:
    """Whether the shortlists have every word of a pair ("No UNK"); None without shortlists."""
    if source_vocabulary.kind != Vocabulary.kind:
        return None
    return source_vocabulary.knows(source) and target_vocabulary.knows(target)


def until_end(ids: Iterable[int]) -> Iterator[int]:
    """Ids before the first END."""
    for index in map(int, ids):
        if index == END:
            return
        yield index


def load_vocabulary(state: Any) -> Encoding:
    """The vocabulary that gave `state`.

    Raises:
        Refusal: where `state` is not what `Encoding.state` returns.
    """
    from nmt.data.subwords import Subwords

    kind = state.get("kind") if isinstance(state, dict) else None
    if kind == Vocabulary.kind:
        words = state.get("words")
        if isinstance(words, list) and all(isinstance(word, str) for word in words):
            return Vocabulary(words)
    if kind == Subwords.kind and isinstance(state.get("model"), str):
        return Subwords(state["model"])
    raise Refusal("vocabulary: neither a list of words nor a set of subwords")
