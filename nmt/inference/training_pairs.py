"""Applies a trained model to training pairs, to compute their likelihood or to learn a dictionary."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np

from nmt.config.commands import TrainConfig
from nmt.data.batches import Rows
from nmt.data.pairs import Pairs
from nmt.data.preparation import tokenise_text, training_pairs
from nmt.data.vocabulary import WORDS
from nmt.evaluation.alignment import Link, hard_links
from nmt.inference.model import Model
from nmt.layers import Network
from nmt.utils.errors import InputError, first_line
from nmt.utils.progress import Stage, timed
from nmt.utils.text import counted

log = logging.getLogger(__name__)

Result = TypeVar("Result")

# A dictionary entry is learnt from at least 10 training pairs that contain the source word. If there are
# fewer, the entry is learnt from all of them.
OCCURRENCES = 10  # more pairs would hardly change the dictionary
DICTIONARY_SAMPLE = 20_000  # number of training pairs sampled for the dictionary


def training_sample(train: Pairs, pairs: int) -> Rows:
    """Returns evenly spaced indices of training pairs, which are the same in each run on the same text."""
    return np.linspace(0, len(train) - 1, min(pairs, len(train))).astype(np.int64)


def sampled_nll(model: Model, train: Pairs, pairs: int) -> float:
    """Returns the mean NLL of a sample of `pairs` training pairs, in nats per sentence, on every rank."""
    rows = training_sample(train, pairs)

    def work(indices: list[int]) -> list[float]:
        batch = train.batch(rows[indices]).move_to(model.network.device)
        return list(model.network(*batch.pairs).nll.double().sum(1).tolist())

    losses = _map_pairs("likelihood of sampled training pairs", model, train, rows, work)
    return math.fsum(losses) / max(len(rows), 1)


def learn_dictionary(model: Model, train: Pairs) -> dict[str, str]:
    """Maps each source word to the target word that attention links to it most often.

    Every rank returns the same dictionary. It includes words outside the shortlists, but only words of a sample of
    `DICTIONARY_SAMPLE` pairs.

    Raises:
        InputError: if the model is an ensemble or has no attention, or if it uses subwords.
    """
    network = model.network
    if not isinstance(network, Network) or not network.attends or model.source.kind != WORDS:
        raise InputError(
            "search.replace_unk=dictionary: needs one model with attention and tokenizer=words; type "
            "search.replace_unk=none"
        )
    rows = pairs_of_rare_words(train, training_sample(train, DICTIONARY_SAMPLE))

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

    dictionary = count_links(_map_pairs("dictionary of unknown words", model, train, rows, work))
    words, pairs = counted(len(dictionary), "source word"), counted(len(rows), "pair")
    log.info("dictionary of unknown words: %s, learnt from %s", words, pairs)
    return dictionary


def learn_missing_dictionary(model: Model) -> dict[str, str]:
    """Learns the dictionary of a model whose checkpoint has none, from its training text.

    Raises:
        InputError: as `learn_dictionary`, or if the training text is missing or was changed.
    """
    config = model.config
    checkpoint = model.checkpoints[0] if model.checkpoints else "the model"
    given = None
    if isinstance(config, TrainConfig) and config.initial_checkpoint is not None:
        given = model.source, model.target
    try:
        text = tokenise_text(config.data.train, config.data, "data.train")
        train = training_pairs(text, config.data, config.tokenizer, given)
        if [each.state() for each in train.vocabularies] != [
            model.source.state(),
            model.target.state(),
        ]:
            raise InputError("data.train: its vocabularies differ from the model's")
    except InputError as error:
        raise InputError(
            f"search.replace_unk=dictionary: {checkpoint} holds no dictionary, and it cannot be learnt from the "
            f"training text ({first_line(error)}); type search.replace_unk=copy, or train with "
            "search.replace_unk=dictionary"
        ) from error
    log.info(
        "%s holds no dictionary of unknown words; learning it from the training text", checkpoint
    )
    return learn_dictionary(model, train)


def _map_pairs(
    title: str,
    model: Model,
    train: Pairs,
    rows: Rows,
    work: Callable[[list[int]], Sequence[Result]],
) -> list[Result]:
    """Applies `work` to batches of indices of `rows`, and shows the progress."""
    lengths = train.sizes[rows].max(axis=1).tolist()
    shown = model.config.trainer["enable_progress_bar"]
    with timed(title), Stage(title, len(rows), "sentence", shown=shown) as stage:
        return model.map_sentences(lengths, work, stage.advance, shared=True)


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
