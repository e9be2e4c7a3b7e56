"""Words in place of `<unk>`: the attended source word, or its translation (Luong et al., 2015).

The dictionary of translations is learnt from the model's own attention to the training pairs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from nmt.data.batches import Rows
from nmt.data.splits import Split
from nmt.evaluation.alignment import Link, attended_words

# A word's links are counted this often at least; more hardly change which target word wins.
OCCURRENCES = 10


def replace_unknown_words(
    words: Sequence[str | None],
    weights: np.ndarray | None,
    source: Sequence[str],
    dictionary: Mapping[str, str] | None = None,
) -> list[str | None]:
    """Writes a word where the model wrote `<unk>`: a translation of the attended word, or that word.

    `<unk>` stays where no source word is attended to, and without attention.

    Args:
        words: (I,) of a translation, without `</s>`; None for `<unk>`.
        weights: (T, S) of attention; with `<unk>` in a vocabulary of words, T = I + 1.
        source: words of the source, without `</s>`, as they were before the shortlist.
        dictionary: of `count_links`; names and numbers have no translation in it.

    >>> attention = np.array([[0.9, 0.1, 0], [0.2, 0.8, 0], [0, 0, 1]])
    >>> replace_unknown_words(["le", None], attention, ["the", "cat"])
    ['le', 'cat']
    """
    if weights is None or None not in words:
        return list(words)
    known = dictionary or {}
    return [
        known.get(source[j], source[j]) if word is None and j >= 0 else word
        for word, j in zip(words, attended_words(weights[: len(words)]).tolist(), strict=True)
    ]


def pairs_of_rare_words(pairs: Split, rows: Rows, occurrences: int = OCCURRENCES) -> Rows:
    """The rows that teach a dictionary something, in their order.

    A pair is left out if each of its source words stands in `occurrences` of the pairs taken before
    it: links of frequent words are then known, and most of a corpus is frequent words.

    Args:
        pairs: the split that `rows` are numbers of.
        rows: (N,) numbers of pairs.
        occurrences: pairs in which a word is wanted.
    """
    seen: Counter[str] = Counter()
    taken = []
    for row in rows.tolist():
        words = set(pairs.text(row)[0].split(" "))
        if any(seen[word] < occurrences for word in words):
            seen.update(words)
            taken.append(row)
    return np.array(taken, np.int64)


def count_links(
    pairs: Iterable[tuple[Sequence[str], Sequence[str], Iterable[Link]]],
) -> dict[str, str]:
    """The target word that each source word is most often linked to.

    Args:
        pairs: source words, target words and links (source word, target word) of each sentence.

    Returns:
        Source word to target word; among equally frequent ones the first in character order.

    >>> count_links([(["red", "cat"], ["chat", "rouge"], [(0, 1), (1, 0)])])
    {'red': 'rouge', 'cat': 'chat'}
    """
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for source, target, links in pairs:
        for j, i in links:
            counts[source[j]][target[i]] += 1
    return {
        word: min(seen, key=lambda translation: (-seen[translation], translation))
        for word, seen in counts.items()
    }
