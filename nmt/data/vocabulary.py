"""The special symbols, and the interface of every vocabulary.

Ids: 0 ends a sentence (`</s>`), 1 stands for every word outside the shortlist (`<unk>`), words or
subwords follow. The two special symbols are ids only and never parsed from text: a word of the text
that is spelt `<unk>` is a word like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

END = 0
UNKNOWN = 1
END_SYMBOL, UNKNOWN_SYMBOL = SPECIAL = ("</s>", "<unk>")
WORDS = "words"  # the kind of a shortlist of words


class Vocabulary(Protocol):
    """What a shortlist of words and a set of subwords have in common."""

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

    def unknown(self, tokens: Iterable[str]) -> int:
        """How many words of the sentence are unknown."""

    def state(self) -> dict[str, Any]:
        """All of it as plain containers, for checkpoints and files."""


def unknown_words(
    source_vocabulary: Vocabulary,
    target_vocabulary: Vocabulary,
    source: Iterable[str],
    target: Iterable[str],
) -> list[int] | None:
    """How many words of each side of a pair the shortlists lack; None without shortlists."""
    if source_vocabulary.kind != WORDS:
        return None
    return [source_vocabulary.unknown(source), target_vocabulary.unknown(target)]


def written_words(vocabulary: Vocabulary, ids: Sequence[int]) -> list[str | None]:
    """Words up to the first END; None where UNKNOWN stands, which a word spelt `<unk>` does not."""
    numbered = zip(vocabulary.word_index(ids), ids, strict=True)
    unknown = {number for number, index in numbered if index == UNKNOWN}
    return [
        None if number in unknown else word for number, word in enumerate(vocabulary.decode(ids))
    ]


def spelt(words: Iterable[str | None]) -> list[str]:
    """Words of `written_words` as people read them."""
    return [UNKNOWN_SYMBOL if word is None else word for word in words]


def until_end(ids: Iterable[int]) -> Iterator[int]:
    """Ids before the first END."""
    for index in map(int, ids):
        if index == END:
            return
        yield index
