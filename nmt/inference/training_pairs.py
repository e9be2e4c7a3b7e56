"""A trained model on pairs of its training text: their likelihood, and the dictionary they teach."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nmt.data.batches import Rows
from nmt.data.splits import Split
from nmt.evaluation.alignment import hard_links
from nmt.inference.decoding import in_batches
from nmt.inference.trained import TrainedModel
from nmt.inference.unknown_words import count_links
from nmt.layers import Network
from nmt.utils.environment import gather, rank_and_world


def training_sample(train: Split, pairs: int) -> Rows:
    """Numbers of the same training pairs for every run on a text, evenly spaced over the corpus."""
    return np.linspace(0, len(train) - 1, min(pairs, len(train))).astype(np.int64)


def mean_nll(
    trained: TrainedModel, train: Split, rows: Rows, done: Callable[[int], object] = lambda _: None
) -> float:
    """Mean NLL of training pairs in nats per sentence, the same on every rank.

    Args:
        trained: the model, on the device of this rank.
        train: training pairs.
        rows: numbers of the pairs.
        done: gets 1 for each pair of this rank.
    """

    def work(places: list[int]) -> list[float]:
        batch = train.batch(rows[places]).to(trained.model.device)
        words = batch.source, batch.source_mask, batch.target, batch.target_mask
        return list(trained.model(*words).nll.double().sum(1).tolist())

    total, sentences = 0.0, 0
    for _, nll in in_batches(trained, _longer(train, rows), work, *rank_and_world()):
        total, sentences = total + nll, sentences + 1
        done(1)
    parts = gather((total, sentences))
    return float(sum(part for part, _ in parts) / max(sum(count for _, count in parts), 1))


def learn_dictionary(
    trained: TrainedModel, train: Split, rows: Rows, done: Callable[[int], object] = lambda _: None
) -> dict[str, str]:
    """The target word that attention links most often to each source word, the same on every rank.

    Words are those of the text, the ones outside the shortlists among them.

    Args:
        trained: a model with attention, on the device of this rank.
        train, rows, done: as of `mean_nll`.
    """
    model, null = trained.model, trained.config.evaluation.alignment.null
    assert isinstance(model, Network)  # learnt at the end of a training

    def work(places: list[int]) -> list[list[tuple[int, int]]]:
        batch = train.batch(rows[places]).to(model.device)
        # Not model(batch): the probabilities of words are most of the work.
        memory = model.encode(batch.source, batch.source_mask)
        forced = model.decoder(batch.target, batch.target_mask, memory)
        assert forced.weights is not None
        weights = forced.weights.float().cpu().numpy()  # (B, T, S)
        links = []
        for place, row in enumerate(rows[places].tolist()):
            pair = train[row]
            source, target = len(pair["source_ids"]), len(pair["target_ids"])
            between = trained.codec.word_weights(
                weights[place, :target, :source], pair["source"], pair["target_ids"].tolist()
            )
            links.append(hard_links(between, null))
        return links

    aligned = []
    for place, links in in_batches(trained, _longer(train, rows), work, *rank_and_world()):
        pair = train[int(rows[place])]
        aligned.append((pair["source"], pair["target"], links))
        done(1)
    return count_links(pair for part in gather(aligned) for pair in part)


def _longer(train: Split, rows: Rows) -> list[int]:
    return list(train.sizes[rows].max(axis=1).tolist())
