"""Applies a trained model to training pairs, to compute their likelihood or to learn a dictionary."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from nmt.data.batches import Rows
from nmt.data.pairs import Pairs
from nmt.evaluation.alignment import Link, hard_links
from nmt.inference.model import Model
from nmt.layers import Network

# A dictionary entry is learnt from at least 10 training pairs that contain the source word. If there are
# fewer, the entry is learnt from all of them.
OCCURRENCES = 10  # more pairs would hardly change the dictionary

Advance = Callable[[int], object]  # called with the number of finished pairs


def training_sample(train: Pairs, pairs: int) -> Rows:
    """Returns evenly spaced indices of training pairs, which are the same in each run on the same text."""
    return np.linspace(0, len(train) - 1, min(pairs, len(train))).astype(np.int64)


def mean_nll(model: Model, train: Pairs, rows: Rows, advance: Advance = lambda _: None) -> float:
    """Returns the mean NLL of the pairs `rows` of `train`, in nats per sentence, on every rank."""

    def work(indices: list[int]) -> list[float]:
        batch = train.batch(rows[indices]).move_to(model.network.device)
        return list(model.network(*batch.pairs).nll.double().sum(1).tolist())

    lengths = train.sizes[rows].max(axis=1).tolist()
    losses = model.map_sentences(lengths, work, advance, shared=True)
    return math.fsum(losses) / max(len(rows), 1)


def learn_dictionary(
    model: Model, train: Pairs, rows: Rows, advance: Advance = lambda _: None
) -> dict[str, str]:
    """Maps each source word to the target word that attention links to it most often.

    Every rank returns the same dictionary. It includes words outside the shortlists. The model must have
    attention, and must not use subwords.
    """
    network = model.network
    assert isinstance(network, Network)  # a model that was just trained is not an ensemble

    def work(indices: list[int]) -> list[tuple[list[str], list[str], list[Link]]]:
        batch = train.batch(rows[indices]).move_to(network.device)
        # `network(*batch.pairs)` would also compute word probabilities, which takes most of the time.
        memory = network.encode(batch.source, batch.source_mask)
        _, attention, _ = network.decoder(batch.target, batch.target_mask, memory)
        assert attention is not None
        weights = attention.float().cpu().numpy()  # (B, T, S)
        aligned = []
        for index, row in enumerate(rows[indices].tolist()):
            pair = train[row]
            target, source = len(pair["target_ids"]), len(pair["source_ids"])
            links = hard_links(weights[index, :target, :source])
            aligned.append((pair["source"], pair["target"], links))
        return aligned

    lengths = train.sizes[rows].max(axis=1).tolist()
    return count_links(model.map_sentences(lengths, work, advance, shared=True))


def pairs_of_rare_words(pairs: Pairs, rows: Rows, occurrences: int = OCCURRENCES) -> Rows:
    """Selects the `rows` (indices of `pairs`) from which to learn a dictionary.

    A pair is skipped if each of its source words already occurs in `occurrences` selected pairs. Most
    pairs of a corpus are skipped.
    """
    seen: Counter[str] = Counter()
    kept = []
    for row in rows.tolist():
        words = set(pairs[row]["source"])
        if any(seen[word] < occurrences for word in words):
            seen.update(words)
            kept.append(row)
    return np.array(kept, np.int64)


def count_links(
    pairs: Iterable[tuple[Sequence[str], Sequence[str], Iterable[Link]]],
) -> dict[str, str]:
    """Returns the target word that each source word is most often linked to.

    Args:
        pairs: source words, target words and links (source index, target index) of each sentence pair.

    Returns:
        The target word of each source word; of equally frequent target words, the first in sorted order.

    >>> count_links([(["red", "cat"], ["chat", "rouge"], [(0, 1), (1, 0)])])
    {'red': 'rouge', 'cat': 'chat'}
    """
    counts = Counter((source[j], target[i]) for source, target, links in pairs for j, i in links)
    # With counts in increasing order, the dict keeps the most frequent translation of each source word.
    ranked = sorted(counts, key=lambda link: link[1], reverse=True)
    return dict(sorted(ranked, key=counts.__getitem__))
