"""Counts the n-grams that sentences share with their references, for many sentences at once.

An n-gram is a 64-bit number: the index of its sentence in the upper bits, and a hash of its symbols in the others. So
one sorted array holds the n-grams of all sentences.

In array shapes, N is the number of sentences.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

# odd, with irregular bits, so that hashes of n-grams differ
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
BLOCK = 500  # number of sentences that scores count at once, which limits memory


class Texts(NamedTuple):
    """N sentences as numbers, which stand for their words or characters."""

    symbols: np.ndarray  # uint64, of all sentences one after another
    lengths: np.ndarray  # (N,) number of symbols of each sentence


def words(sentences: Sequence[Sequence[str | None]]) -> Texts:
    """Returns the hashes of words; None is a word of its own."""
    lengths = np.array(list(map(len, sentences)), dtype=np.int64)
    hashes = map(hash, chain.from_iterable(sentences))
    return Texts(np.fromiter(hashes, np.int64, int(lengths.sum())).view(np.uint64), lengths)


def characters(sentences: Sequence[str]) -> Texts:
    """Returns the code points of texts without their white space."""
    dense = ["".join(sentence.split()) for sentence in sentences]
    codes = np.frombuffer("".join(dense).encode("utf-32-le", "surrogatepass"), dtype="<u4")
    return Texts(codes.astype(np.uint64), np.array(list(map(len, dense)), dtype=np.int64))


class ReferenceNgrams:
    """The n-grams of references, which the n-grams of hypotheses are compared with.

    Args:
        references: the first references of N sentences, the second ones, and so on.
        orders: largest order.
    """

    def __init__(self, references: Sequence[Texts], orders: int) -> None:
        self.lengths = np.stack([each.lengths for each in references], axis=1)  # (N, references)
        self.shift = np.uint64(64 - max(1, len(self.lengths).bit_length()))
        # For each order, the distinct n-grams (ascending), and the largest number of each in a reference
        self.known: list[tuple[np.ndarray, np.ndarray]] = []
        for of_order in zip(
            *(_ngrams(each, orders, self.shift) for each in references), strict=True
        ):
            found = [np.unique(ngrams, return_counts=True) for ngrams in of_order]
            known, limits = found[0]
            if len(found) > 1:
                known = np.unique(np.concatenate([ngrams for ngrams, _ in found]))
                limits = np.zeros(len(known), dtype=np.int64)
                for ngrams, counts in found:
                    places = np.searchsorted(known, ngrams)
                    limits[places] = np.maximum(limits[places], counts)
            self.known.append((known, limits))

    def matches(self, hypotheses: Texts) -> np.ndarray:
        """Counts the n-grams of each hypothesis that its references have, too: (N, orders) int64.

        An n-gram counts at most as often as in the reference that has most of it (Papineni et al., 2002).
        """
        size = len(self.lengths)
        table = np.zeros((size, len(self.known)), dtype=np.int64)
        ngrams = _ngrams(hypotheses, len(self.known), self.shift)
        for order, (own, (known, limits)) in enumerate(zip(ngrams, self.known, strict=True)):
            if len(known):
                own.sort()  # this makes the search three times as fast
                places = np.minimum(np.searchsorted(known, own), len(known) - 1)
                counts = np.bincount(places[known[places] == own], minlength=len(known))
                sentence = (known >> self.shift).astype(np.int64)
                table[:, order] = np.bincount(sentence, np.minimum(counts, limits), size)
        return table


def _ngrams(texts: Texts, orders: int, shift: np.uint64) -> Iterator[np.ndarray]:
    """Yields all n-grams of each order from 1 to `orders`; the index of a sentence begins at bit `shift`."""
    symbols = texts.symbols
    sentence = np.repeat(np.arange(len(texts.lengths), dtype=np.uint64), texts.lengths)
    hashes = np.zeros(len(symbols), dtype=np.uint64)
    for order in range(orders):
        first = sentence[: max(len(symbols) - order, 0)]
        hashes = (hashes[: len(first)] + symbols[order:] + np.uint64(1)) * MULTIPLIER
        hashes ^= hashes >> np.uint64(32)
        ngrams = (first << shift) | (hashes >> (np.uint64(64) - shift))
        yield ngrams[first == sentence[order:]]
