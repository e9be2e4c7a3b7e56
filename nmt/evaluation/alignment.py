"""Word alignments from attention, gold alignments, and the alignment error rate.

A link is a pair (index of the source word, index of the target word). In array shapes, S and T are the
numbers of source and target symbols, including `</s>`. J and I are the numbers of words, without `</s>`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nmt.config.schema import TextConfig
from nmt.utils.errors import InputError

Link = tuple[int, int]


@dataclass(frozen=True)
class Gold:
    """Gold alignment of a sentence pair; the possible links include the sure links."""

    sure: frozenset[Link]
    possible: frozenset[Link]


def parse_links(
    line: str, *, where: str = "alignment", lengths: tuple[int, int] | None = None
) -> Gold:
    """Parses a line in Pharaoh format, such as `3-4 5p6`: `3-4` is a sure link, `5p6` only a possible link.

    Args:
        line: links separated by spaces, with the source word first; may be empty.
        where: file and line number, for the error message.
        lengths: numbers of source and target words, if known.

    Raises:
        InputError: if an item is not a link, or if a link lies outside the sentence.

    >>> sorted(parse_links("0-0 1p2").possible)
    [(0, 0), (1, 2)]
    """
    sure, possible = set(), set()
    for item in line.split():
        match = re.fullmatch(r"([0-9]+)([-p])([0-9]+)", item)
        if match is None:
            raise InputError(
                f"{where}: '{item}' is not a link; type 3-4 (sure) or 3p4 (possible):"
                " the index of a source word, then of a target word"
            )
        link = (int(match[1]), int(match[3]))
        if lengths is not None and (link[0] >= lengths[0] or link[1] >= lengths[1]):
            raise InputError(
                f"{where}: '{item}' lies outside the sentence of {lengths[0]} source and"
                f" {lengths[1]} target words; indices start at 0"
            )
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return Gold(frozenset(sure), frozenset(possible))


def gold_links(pair: Mapping[str, Any], text: TextConfig, key: str) -> Gold | None:
    """Returns the gold links of a sentence pair, or None if the pair has no alignment.

    Args:
        pair: a sentence pair (`nmt.data.pairs`).
        key: configuration key of `text`, such as `data.valid`, for the error message.

    Raises:
        InputError: as in `parse_links`; the message names the file and the line.
    """
    if pair["alignment"] is None:
        return None
    where = f"{key}.alignment={text.alignment}:{pair['line'] + 1}"
    lengths = len(pair["source"]), len(pair["target"])
    return parse_links(pair["alignment"], where=where, lengths=lengths)


def format_links(links: Iterable[Link]) -> str:
    """Formats links in Pharaoh format, in ascending order.

    >>> format_links([(1, 2), (0, 0)])
    '0-0 1-2'
    """
    return " ".join(f"{j}-{i}" for j, i in sorted(links))


def word_weights(
    weights: np.ndarray, source_words: Sequence[int], target_words: Sequence[int]
) -> np.ndarray:
    """Converts attention between subwords to attention between words.

    Weights are summed over the subwords of a source word, and averaged over those of a target word.

    Args:
        weights: (T, S) attention weights. Each row is a distribution.
        source_words: (S,) word index of each source symbol, ascending: [0, 0, 1] (`Vocabulary.word_index`).
        target_words: (T,) word index of each target symbol. In both lists, `</s>` counts as a word.

    Returns:
        (I + 1, J + 1) float64. Each row is a distribution.

    >>> word_weights(np.array([[.5, .3, .2], [.1, .1, .8]]), [0, 0, 1], [0, 1]).round(2).tolist()
    [[0.8, 0.2], [0.2, 0.8]]
    """
    weights = np.asarray(weights, dtype=np.float64)
    weights = np.add.reduceat(weights, first_symbols(source_words), axis=1)
    first = first_symbols(target_words)
    symbol_counts = np.diff(first, append=len(weights))
    return np.add.reduceat(weights, first, axis=0) / symbol_counts[:, None]


def first_symbols(words: Sequence[int]) -> np.ndarray:
    """Returns the position of the first symbol of each word, given the word index of each symbol.

    >>> first_symbols([0, 0, 1, 2, 2]).tolist()
    [0, 2, 3]
    """
    return np.flatnonzero(np.diff(words, prepend=-1))


def attended_words(weights: np.ndarray) -> np.ndarray:
    """Returns the index of the source word with the largest weight in each row: (T, J + 1) -> (T,) int64.

    The last column, `</s>`, is ignored. The result is -1 if the source has no words.
    """
    words = np.asarray(weights)[:, :-1]
    if words.shape[1] == 0:
        return np.full(len(words), -1, dtype=np.int64)
    return words.argmax(axis=1).astype(np.int64)


def hard_links(weights: np.ndarray) -> list[Link]:
    """Derives a word alignment from attention.

    Each target word is linked to the source word with the largest weight. A target word has no link if its
    weight on the source `</s>` is above 0.5.

    Args:
        weights: (I + 1, J + 1) attention between words. `</s>` is the last row and column.

    >>> hard_links(np.array([[.6, .3, .1], [.1, .2, .7], [0, 0, 1.]]))
    [(0, 0)]
    """
    rows = np.asarray(weights)[:-1]
    words = attended_words(rows)
    (linked,) = np.nonzero((rows[:, -1] <= 0.5) & (words >= 0))
    return list(zip(words[linked].tolist(), linked.tolist(), strict=True))


def sentence_counts(weights: np.ndarray, gold: Gold) -> list[int]:
    """Counts the links of one sentence; its record stores these counts in `alignment_counts`.

    Args:
        weights: (I + 1, J + 1) attention between words, from forced decoding of the reference.

    Returns:
        Six counts: predicted links, sure gold links, predicted links that are sure, predicted links
        that are possible, target words whose largest weight is on `</s>`, and all target words.
    """
    weights = np.asarray(weights)
    links = set(hard_links(weights))
    hits = [len(links & gold.sure), len(links & gold.possible)]
    on_eos = int((weights[:-1].argmax(axis=1) == weights.shape[1] - 1).sum())
    return [len(links), len(gold.sure), *hits, on_eos, len(weights) - 1]


def eos_weight(weights: np.ndarray) -> float | None:
    """Averages the weight on the source `</s>` over the target words, given weights (I + 1, J + 1).

    Returns None if the target has no words.
    """
    rows = np.asarray(weights)[:-1, -1]
    return float(rows.mean()) if len(rows) else None


def attention_entropy(weights: np.ndarray) -> np.ndarray:
    """Returns the entropy of attention in nats: (..., S) -> (...).

    The entropy is 0 if one word has all the weight, and log S if all weights are equal. Each row of
    weights must be a distribution. Padding with weights of 0 does not change the entropy.

    >>> attention_entropy(np.array([[1.0, 0.0], [0.5, 0.5]])).round(4).tolist()
    [0.0, 0.6931]
    """
    weights = np.asarray(weights, dtype=np.float64)
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    # If one weight is 1, the sum is 0.0. Subtract it from 0.0, because `-sum` would be -0.0.
    return 0.0 - (weights * logs).sum(axis=-1)
