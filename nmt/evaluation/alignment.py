"""Word alignment read from attention, gold alignments, and the alignment error rate.

Links are pairs (source word, target word), both counted from 0. Legend: S source symbols and T
target symbols, both with `</s>` last; J source words and I target words, without `</s>`.
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
    """Gold alignment of a pair: sure links, and possible links (which include the sure links)."""

    sure: frozenset[Link]
    possible: frozenset[Link]


def parse_links(
    line: str, *, where: str = "alignment", lengths: tuple[int, int] | None = None
) -> Gold:
    """Reads one line of Pharaoh format: `j-i` is a sure link, `jpi` a possible link.

    Args:
        line: links separated by spaces, source word first; may be empty.
        where: file and line, for the error message.
        lengths: number of words of source and target, if known.

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
                f"{where}: '{item}' is not a link; j-i (sure) or jpi (possible) expected"
            )
        link = (int(match[1]), int(match[3]))
        if lengths is not None and (link[0] >= lengths[0] or link[1] >= lengths[1]):
            raise InputError(
                f"{where}: '{item}' lies outside the sentence of {lengths[0]} source and"
                f" {lengths[1]} target words, counted from 0"
            )
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return Gold(frozenset(sure), frozenset(possible))


def gold_links(pair: Mapping[str, Any], text: TextConfig, key: str) -> Gold | None:
    """Returns the gold links of a prepared pair; None if it has no alignment.

    Args:
        pair: a pair of a split (`nmt.data.pairs`).
        key: name of the section `text`, such as `data.valid`, for the message.

    Raises:
        InputError: as `parse_links`; the message names file and line.
    """
    if pair["alignment"] is None:
        return None
    where = f"{key}.alignment={text.alignment}:{pair['line'] + 1}"
    lengths = len(pair["source"]), len(pair["target"])
    return parse_links(pair["alignment"], where=where, lengths=lengths)


def format_links(links: Iterable[Link]) -> str:
    """Writes links in Pharaoh format, in ascending order.

    >>> format_links([(1, 2), (0, 0)])
    '0-0 1-2'
    """
    return " ".join(f"{j}-{i}" for j, i in sorted(links))


def word_weights(
    weights: np.ndarray, source_words: Sequence[int], target_words: Sequence[int]
) -> np.ndarray:
    """Computes attention between words from attention between subwords.

    The weight on a source word is the sum over its subwords; the weights of a target word are the
    mean over its subwords.

    Args:
        weights: (T, S), each row a distribution.
        source_words: (S,) index of the word that each source subword belongs to, ascending from 0
            without a gap; `</s>` is a word of its own (`Vocabulary.word_index`).
        target_words: (T,) index of the word that each target subword belongs to, likewise.

    Returns:
        (I + 1, J + 1) float64, each row still a distribution.

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
    """Returns the source word of largest weight for each row: (T, J + 1) -> (T,) int64.

    `</s>` (the last column) does not count as a word; -1 if the source has no words.
    """
    words = np.asarray(weights)[:, :-1]
    if words.shape[1] == 0:
        return np.full(len(words), -1, dtype=np.int64)
    return words.argmax(axis=1).astype(np.int64)


def hard_links(weights: np.ndarray, null: float = 0.5) -> list[Link]:
    """Returns the word alignment that attention implies.

    Each target word is linked to the source word of largest weight, or to none if `</s>` has more
    weight than `null`.

    Args:
        weights: (I + 1, J + 1) between words, `</s>` last on both axes.
        null: the largest weight on `</s>` that a linked target word may have.

    >>> hard_links(np.array([[.6, .3, .1], [.1, .2, .7], [0, 0, 1.]]))
    [(0, 0)]
    """
    rows = np.asarray(weights)[:-1]
    words = attended_words(rows)
    (linked,) = np.nonzero((rows[:, -1] <= null) & (words >= 0))
    return list(zip(words[linked].tolist(), linked.tolist(), strict=True))


def sentence_counts(weights: np.ndarray, gold: Gold, null: float = 0.5) -> list[int]:
    """Counts the links of one sentence: the `alignment_counts` of its record.

    Args:
        weights: (I + 1, J + 1) between words, from force-decoding the reference.

    Returns:
        Six counts: links, gold sure links, links that are sure, links that are possible, target
        words whose largest weight is on `</s>`, and target words.
    """
    weights = np.asarray(weights)
    links = set(hard_links(weights, null))
    hits = [len(links & gold.sure), len(links & gold.possible)]
    on_eos = int((weights[:-1].argmax(axis=1) == weights.shape[1] - 1).sum())
    return [len(links), len(gold.sure), *hits, on_eos, len(weights) - 1]


def eos_weight(weights: np.ndarray) -> float | None:
    """Returns the mean weight on the source `</s>` over target words: (I + 1, J + 1) -> 0 to 1.

    None if the target has no words.
    """
    rows = np.asarray(weights)[:-1, -1]
    return float(rows.mean()) if len(rows) else None


def attention_entropy(weights: np.ndarray) -> np.ndarray:
    """Returns the entropy of attention in nats: (..., S) -> (...).

    It is 0 if one word has all weight, and log S if all weights are equal. Each row is a
    distribution, as in `Likelihood`. Weights of 0 (padding) add nothing.

    >>> attention_entropy(np.array([[1.0, 0.0], [0.5, 0.5]])).round(4).tolist()
    [0.0, 0.6931]
    """
    weights = np.asarray(weights, dtype=np.float64)
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    # 0.0 - x instead of -x: no negative zero for a weight of exactly 1
    return 0.0 - (weights * logs).sum(axis=-1)
