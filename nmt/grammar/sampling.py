"""Draws sentence pairs, each of which depends only on the seed, the split, a number k and the mean length."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from hashlib import blake2b

from nmt.grammar.draft import AlignedPair
from nmt.grammar.sentences import derive
from nmt.grammar.stream import RANGE, Draw, stream

# Part of the fingerprint of prepared text. Change it whenever the drawn sentence pairs change.
VERSION = "2"

# A hash assigns each source sentence to one of 16 shares. Each split has different shares.
_SHARES = {"train": range(0, 12), "valid": range(12, 14), "test": range(14, 16)}

# Quantiles k / 32 of a gamma distribution of shape 2.4, for sentence lengths divided by their mean
_QUANTILES = (
    0.06, 0.24, 0.32, 0.38, 0.44, 0.49, 0.54, 0.58, 0.63, 0.67, 0.72, 0.76, 0.80, 0.85, 0.89, 0.94,
    0.99, 1.03, 1.08, 1.14, 1.19, 1.25, 1.31, 1.38, 1.45, 1.53, 1.63, 1.73, 1.86, 2.03, 2.26, 2.66,
    4.6,
)  # fmt: skip
_LAST = len(_QUANTILES) - 1

_SHORTEST, _LONGEST = 3, 80  # number of words of a sentence, in either language
# Maximum words of each length bucket of `draw_by_length`, except the last
EDGES = (10, 20, 30, 40, 50, 60)


def share(source: Sequence[str]) -> int:
    """Returns the share (0 to 15) of a source sentence.

    `him` and `her` count as the same word, because `lui` can translate both. Otherwise two sentences with
    the same translation could be in different splits.
    """
    text = " ".join(["him" if word == "her" else word for word in source])
    return blake2b(text.encode(), digest_size=8).digest()[0] & 15


def split_share(split: str) -> range:
    """Returns the shares of a split; a suffix after a colon, as in `test:long`, has no effect."""
    base = split.partition(":")[0]
    if base not in _SHARES:
        raise ValueError(f"built-in corpus: no split {split!r}; there are train, valid and test")
    return _SHARES[base]


def _quantile(position: float) -> float:
    index = min(int(position), _LAST - 1)
    low, high = _QUANTILES[index], _QUANTILES[index + 1]
    return low + (high - low) * (position - index)


def _position(value: float) -> float:
    """The inverse of `_quantile`, clamped to the table."""
    index = min(max(bisect_right(_QUANTILES, value) - 1, 0), _LAST - 1)
    low, high = _QUANTILES[index], _QUANTILES[index + 1]
    return index + min(max((value - low) / (high - low), 0.0), 1.0)


def _pick_length(draw: Draw, mean: float) -> int:
    """Picks a sentence length."""
    low, high = _position(_SHORTEST / mean), _position((_LONGEST + 1) / mean)
    value = _quantile(low + (high - low) * (draw() / RANGE)) * mean
    return min(max(int(value), _SHORTEST), _LONGEST)


def draw(seed: int, split: str, k: int, *, mean_length: float = 22.0) -> AlignedPair:
    """Returns draw k of a split, which is the same on every machine and independent of other draws.

    Args:
        seed: seed of the corpus; another seed gives another sample of the same language.
        split: train, valid or test. A suffix after a colon (`test:long`) gives different draws
            from the same split.
        k: number of the draw, from 0.
        mean_length: mean number of source words, before truncation at 80 words.

    Raises:
        ValueError: if the split is unknown, or the mean length is not above 0.
    """
    shares = split_share(split)
    if mean_length <= 0:
        raise ValueError(f"built-in corpus: mean_length={mean_length}: must be above 0")
    numbers = stream(f"natural {seed} {split} {k}")
    while True:
        wanted = _pick_length(numbers, mean_length)
        pair = derive(numbers, wanted)
        if (
            _SHORTEST <= len(pair.source) <= _LONGEST
            and _SHORTEST <= len(pair.target) <= _LONGEST
            and share(pair.source) in shares
        ):
            return pair


def draw_by_length(seed: int, split: str, k: int, *, by_target: bool = False) -> AlignedPair:
    """Returns draw k of a split, where the draws go through the length buckets in turn.

    Draw k is in bucket number k mod (number of buckets).

    Args:
        by_target: whether the buckets are by target length instead of source length.

    Raises:
        ValueError: if the split is unknown.
    """
    shares = split_share(split)
    bounds = [_SHORTEST - 1, *EDGES, _LONGEST]
    bucket = k % (len(bounds) - 1)
    shortest = bounds[bucket] + 1
    longest = bounds[bucket + 1]
    numbers = stream(f"by_length {seed} {split} {k}")
    while True:
        wanted = shortest + numbers() % (longest - shortest + 1)
        pair = derive(numbers, wanted)
        measured, other = len(pair.source), len(pair.target)
        if by_target:
            measured, other = other, measured
        if shortest <= measured <= longest and other <= _LONGEST and share(pair.source) in shares:
            return pair
