"""Classes of target words: punctuation, function words and content words, by frequency alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

CLASSES = ("function", "content", "punctuation")
HALF = 0.5  # share of the words of a text that its function words make up


def function_words(sentences: Iterable[Sequence[str]]) -> frozenset[str]:
    """The most frequent words of a text, which make up half of it; no punctuation marks.

    >>> sorted(function_words([["le", "chat", "."], ["le", "chien", "."], ["un", "chat", "."]]))
    ['chat', 'le']
    """
    counts = Counter(
        word for sentence in sentences for word in sentence if not is_punctuation(word)
    )
    chosen, left = set(), HALF * counts.total()
    for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if left <= 0:
            break
        chosen.add(word)
        left -= count
    return frozenset(chosen)


def class_of(word: str, function: frozenset[str]) -> str:
    """The class of a word, of `CLASSES`.

    >>> [class_of(word, frozenset({"le"})) for word in ("le", "chat", "...", "2")]
    ['function', 'content', 'punctuation', 'content']
    """
    if is_punctuation(word):
        return "punctuation"
    return "function" if word in function else "content"


def is_punctuation(word: str) -> bool:
    """Whether a word has neither letter nor digit."""
    return not any(sign.isalnum() for sign in word)
