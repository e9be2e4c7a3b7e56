"""A trained model on pairs of its training text: their likelihood, and the dictionary they teach."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from nmt.data.batches import Rows
from nmt.data.pairs import Pairs
from nmt.evaluation.alignment import Link, hard_links, word_weights
from nmt.inference.model import Model
from nmt.layers import Network

# Pairs in which the links of a word are counted; more hardly change which target word wins.
OCCURRENCES = 10

Advance = Callable[[int], object]  # is given the number of pairs done


def training_sample(train: Pairs, pairs: int) -> Rows:
    """Numbers of the same training pairs for every run on a text, evenly spaced over the corpus."""
    return np.linspace(0, len(train) - 1, min(pairs, len(train))).astype(np.int64)


def mean_nll(model: Model, train: Pairs, rows: Rows, advance: Advance = lambda _: None) -> float:
    """Mean NLL of training pairs in nats per sentence, the same on every rank.

    Args:
        model: on the device of this rank.
        train: training pairs.
        rows: numbers of the pairs.
        advance: counts the progress.
    """

    def work(places: list[int]) -> list[float]:
        batch = train.batch(rows[places]).to(model.network.device)
        words = batch.source, batch.source_mask, batch.target, batch.target_mask
        return list(model.network(*words).nll.double().sum(1).tolist())

    lengths = train.sizes[rows].max(axis=1).tolist()
    losses = model.map_sentences(lengths, work, advance, shared=True)
    return math.fsum(losses) / max(len(rows), 1)


def learn_dictionary(
    model: Model, train: Pairs, rows: Rows, advance: Advance = lambda _: None
) -> dict[str, str]:
    """The target word that attention links most often to each source word, the same on every rank.

    Words outside the shortlists are among them.

    Args:
        model: with attention, on the device of this rank.
        train, rows, advance: as of `mean_nll`.
    """
    network = model.network
    assert isinstance(network, Network)  # an ensemble is not trained

    def work(places: list[int]) -> list[tuple[list[str], list[str], list[Link]]]:
        batch = train.batch(rows[places]).to(network.device)
        # Not network(batch): the probabilities of words are most of the work.
        memory = network.encode(batch.source, batch.source_mask)
        _, attention, _ = network.decoder(batch.target, batch.target_mask, memory)
        assert attention is not None
        weights = attention.float().cpu().numpy()  # (B, T, S)
        aligned = []
        for place, row in enumerate(rows[places].tolist()):
            pair = train[row]
            source, target = pair["source_ids"], pair["target_ids"]
            between = word_weights(
                weights[place, : len(target), : len(source)],
                model.source.word_index(source),
                model.target.word_index(target),
            )
            aligned.append((pair["source"], pair["target"], hard_links(between)))
        return aligned

    lengths = train.sizes[rows].max(axis=1).tolist()
    return count_links(model.map_sentences(lengths, work, advance, shared=True))


def pairs_of_rare_words(pairs: Pairs, rows: Rows, occurrences: int = OCCURRENCES) -> Rows:
    """The rows that teach a dictionary something, in their order.

    A pair is left out if each of its source words stands in `occurrences` of the pairs taken before
    it: links of frequent words are then known, and most of a corpus is frequent words.

    Args:
        pairs: the split that `rows` are numbers of.
        rows: (N,) numbers of pairs.
        occurrences: pairs in which a word is wanted.
    """
    seen: Counter[str] = Counter()
    kept = []
    for row in rows.tolist():
        words = set(pairs.text(row)[0].split(" "))
        if any(seen[word] < occurrences for word in words):
            seen.update(words)
            kept.append(row)
    return np.array(kept, np.int64)


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
    counts = Counter((source[j], target[i]) for source, target, links in pairs for j, i in links)
    # the last entry of a source word stays: its most frequent translation
    ranked = sorted(counts, key=lambda link: link[1], reverse=True)
    return dict(sorted(ranked, key=counts.__getitem__))
