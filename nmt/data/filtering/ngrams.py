"""n-gram language models by Thot (extra `thot`), learnt from tokenised sentences.

Thot's model interpolates the relative frequencies of all orders down to a uniform distribution
(Jelinek and Mercer 1980). It reads a file of counts, which is written here from arrays of word
numbers, so that memory holds about 50 bytes for each word of the text that is learnt from.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nmt.data.vocabulary import END_SYMBOL, UNKNOWN_SYMBOL
from nmt.utils.errors import RunError

BEGIN = "<s>"
SYMBOLS = (BEGIN, END_SYMBOL, UNKNOWN_SYMBOL)  # as Thot spells them
BUCKETS = 3, 10  # Thot's weights depend on how often a history was seen: so many ranges, so wide
WEIGHT = 0.5  # of an order against all lower ones, in each range: what sil-machine starts from


def frequent_words(sentences: Iterable[str]) -> frozenset[str]:
    """Words that occur more than once; those spelt like Thot's own symbols are left out."""
    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(sentence.split(" "))
    return frozenset(word for word, count in counts.items() if count > 1).difference(SYMBOLS)


def closed(words: Sequence[str], vocabulary: frozenset[str]) -> list[str]:
    """The sentence with `<unk>` for every word outside the vocabulary."""
    return [word if word in vocabulary else UNKNOWN_SYMBOL for word in words]


def write_model(
    sentences: Iterable[str], vocabulary: frozenset[str], order: int, path: Path
) -> None:
    """Counts the n-grams of tokenised sentences and writes what `cross_entropy` reads.

    Args:
        sentences: tokens joined by spaces.
        vocabulary: words told apart; all others count as `<unk>`.
        order: longest n-gram.
        path: file of the counts: a line for each n-gram with the count of its history and its own;
            `<path>.weights` stands beside it.
    """
    names = [*SYMBOLS, *sorted(vocabulary)]
    numbers = {name: number for number, name in enumerate(names)}
    unknown = numbers[UNKNOWN_SYMBOL]
    pieces = [
        np.array(
            [
                0,
                *(numbers[w] if w in vocabulary else unknown for w in s.split(" ")),
                1,
            ],
            np.uint32,
        )
        for s in sentences
    ]
    lengths = np.array([len(piece) for piece in pieces])
    words = np.concatenate(pieces)
    del pieces
    left = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(words))  # words to the end
    history = np.zeros(len(words), np.uint64)  # number of the (n-1)-gram that starts at each word
    history_counts = np.array([len(words)])
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        for n in range(1, order + 1):
            starts = np.flatnonzero(left >= n)
            keys = (history[starts] << np.uint64(32)) | words[starts + n - 1]
            found, first, number, counts = np.unique(
                keys, return_index=True, return_inverse=True, return_counts=True
            )
            before = history_counts[(found >> np.uint64(32)).astype(np.int64)]
            for place, seen_before, seen in zip(
                starts[first].tolist(), before.tolist(), counts.tolist(), strict=True
            ):
                gram = " ".join(names[word] for word in words[place : place + n].tolist())
                stream.write(f"{gram} {seen_before} {seen}\n")
            history = np.zeros(len(words), np.uint64)
            history[starts] = number
            history_counts = counts
    weights = " ".join([str(WEIGHT)] * (order * BUCKETS[0]))
    Path(f"{path}.weights").write_text(f"{order} {BUCKETS[0]} {BUCKETS[1]} {weights}\n")


@functools.lru_cache(maxsize=1)
def load_model(path: Path) -> Any:
    """The model of a file of counts; one at a time is kept, for processes forked from this one."""
    from thot.common import NGramLanguageModel

    model = NGramLanguageModel()
    if not model.load(str(path)):
        raise RunError(f"{path}: Thot cannot load the counts")
    return model


def cross_entropy(model: Any, words: Sequence[str]) -> float:
    """Bits a word of a sentence, its end counted as a word."""
    return -float(model.get_sentence_log_probability(words)) / math.log10(2) / (len(words) + 1)
