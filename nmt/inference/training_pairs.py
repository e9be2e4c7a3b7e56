"""A trained model on pairs of its training text: their likelihood, and the dictionary they teach."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from nmt.data.batches import Rows
from nmt.data.pairs import Pairs
from nmt.evaluation.alignment import Link, hard_links
from nmt.inference.model import Model
from nmt.layers import Network
from nmt.utils.environment import gather, rank_and_world

# Pairs in which the links of a word are counted; more hardly change which target word wins.
OCCURRENCES = 10


def training_sample(train: Pairs, pairs: int) -> Rows:
    """Numbers of the same training pairs for every run on a text, evenly spaced over the corpus."""
    return np.linspace(0, len(train) - 1, min(pairs, len(train))).astype(np.int64)


def mean_nll(
    model: Model, train: Pairs, rows: Rows, done: Callable[[int], object] = lambda _: None
) -> float:
    """Mean NLL of training pairs in nats per sentence, the same on every rank.

    Args:
        model: on the device of this rank.
        train: training pairs.
        rows: numbers of the pairs.
        done: gets 1 for each pair of this rank.
    """

    def work(places: list[int]) -> list[float]:
        batch = train.batch(rows[places]).to(model.network.device)
        words = batch.source, batch.source_mask, batch.target, batch.target_mask
        return list(model.network(*words).nll.double().sum(1).tolist())

    total, sentences = 0.0, 0
    for _, nll in model.in_batches(_lengths(train, rows), work, *rank_and_world()):
        total, sentences = total + nll, sentences + 1
        done(1)
    parts = gather((total, sentences))
    return float(sum(part for part, _ in parts) / max(sum(count for _, count in parts), 1))


def learn_dictionary(
    model: Model, train: Pairs, rows: Rows, done: Callable[[int], object] = lambda _: None
) -> dict[str, str]:
    """The target word that attention links most often to each source word, the same on every rank.

    Words outside the shortlists are among them.

    Args:
        model: with attention, on the device of this rank.
        train, rows, done: as of `mean_nll`.
    """
    network = model.network
    assert isinstance(network, Network)  # an ensemble is not trained

    def work(places: list[int]) -> list[list[Link]]:
        batch = train.batch(rows[places]).to(network.device)
        # Not network(batch): the probabilities of words are most of the work.
        memory = network.encode(batch.source, batch.source_mask)
        _, attention, _ = network.decoder(batch.target, batch.target_mask, memory)
        assert attention is not None
        weights = attention.float().cpu().numpy()  # (B, T, S)
        links = []
        for place, row in enumerate(rows[places].tolist()):
            pair = train[row]
            source, target = len(pair["source_ids"]), len(pair["target_ids"])
            between = model.codec.word_weights(
                weights[place, :target, :source], pair["source"], pair["target_ids"].tolist()
            )
            links.append(hard_links(between))
        return links

    aligned = []
    for place, links in model.in_batches(_lengths(train, rows), work, *rank_and_world()):
        pair = train[int(rows[place])]
        aligned.append((pair["source"], pair["target"], links))
        done(1)
    return count_links(pair for part in gather(aligned) for pair in part)


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


def _lengths(train: Pairs, rows: Rows) -> list[int]:
    """The length of the longer side of each pair."""
    return list(train.sizes[rows].max(axis=1).tolist())
