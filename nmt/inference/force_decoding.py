"""Force-decoding: probabilities and attention of given translations.

S source symbols, T target symbols, both with `</s>`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from nmt.data.batch import collate
from nmt.data.batches import Rows, evaluation_batches
from nmt.data.vocabulary import END, END_SYMBOL
from nmt.evaluation.alignment import attention_entropy, first_symbols, word_weights
from nmt.evaluation.records import Record
from nmt.inference.trained import Codec, TrainedModel
from nmt.layers import Network
from nmt.models.ensemble import Ensemble
from nmt.search.candidates import NOT_NUMBERS
from nmt.utils.errors import RunError
from nmt.utils.progress import unseen
from nmt.utils.workers import map_batches

RUNNERS_UP = 5  # of a symbol in the rows that the page shows


@dataclass(frozen=True)
class ForcedDecoding:
    """A translation of T symbols, force-decoded.

    Attributes:
        ids: (T,) the translation, `</s>` included.
        weights: (T, S) of attention, each row a distribution; None without attention.
        log_normaliser: (T,) log Z_i, so that e_ij = log α_ij + log Z_i; None without attention.
        log_probabilities: (T,) of each symbol, in nats.
        others: (T,) the most probable other ids of each step with their log-probabilities; empty
            where none were asked for.
    """

    ids: list[int]
    weights: np.ndarray | None
    log_normaliser: np.ndarray | None
    log_probabilities: list[float]
    others: list[list[tuple[int, float]]]


def weights_between_words(
    weights: np.ndarray, codec: Codec, source: Sequence[str], target_ids: Sequence[int]
) -> np.ndarray:
    """Attention (T, S) between symbols as attention (I + 1, J + 1) between words."""
    return word_weights(
        weights,
        codec.source.word_index(codec.source.encode(source)),
        codec.target.word_index(target_ids),
    )


@torch.no_grad()
def force_decode(
    model: Network | Ensemble,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    *,
    runners_up: int = 0,
) -> list[ForcedDecoding]:
    """Force-decodes translations.

    Args:
        model: in evaluation mode.
        sources: ids of each sentence, END included.
        targets: ids of each translation; END is appended where it is missing.
        runners_up: how many others are given for each symbol; they cost the logits once more.

    Raises:
        RunError: where a probability is NaN.
    """
    if not sources:
        return []
    ids = [[*(symbol for symbol in target if symbol != END), END] for target in targets]
    batch = collate(sources, ids).to(model.device)
    forced = model(batch.source, batch.source_mask, batch.target, batch.target_mask)
    top = None
    if runners_up:
        scores = model.logits(forced.readout).float().log_softmax(2)
        top = scores.topk(min(runners_up + 1, scores.shape[2]), 2)
    decodings = []
    for place, (source, target) in enumerate(zip(sources, ids, strict=True)):
        steps = len(target)
        weights = log_normaliser = None
        if forced.weights is not None and forced.log_normaliser is not None:
            weights = forced.weights[place, :steps, : len(source)].float().cpu().numpy()
            log_normaliser = forced.log_normaliser[place, :steps].float().cpu().numpy()
        others: list[list[tuple[int, float]]] = [[] for _ in target]
        if top is not None:
            likely = zip(
                target,
                top.indices[place, :steps].tolist(),
                top.values[place, :steps].tolist(),
                strict=True,
            )
            others = [
                [(i, v) for i, v in zip(indices, values, strict=True) if i != written][:runners_up]
                for written, indices, values in likely
            ]
        log_probabilities = (-forced.nll[place, :steps]).float().tolist()
        if any(map(math.isnan, log_probabilities)):
            raise RunError(NOT_NUMBERS)
        decodings.append(ForcedDecoding(target, weights, log_normaliser, log_probabilities, others))
    return decodings


def force_decode_pairs(
    trained: TrainedModel,
    pairs: Sequence[tuple[Sequence[str], Sequence[str]]],
    done: Callable[[int], object] = unseen,
    *,
    runners_up: int = 0,
) -> list[ForcedDecoding]:
    """Force-decodes sentence pairs in batches of similar length; the decodings in the order given.

    Args:
        trained: the model, which is moved to the device of `trainer.accelerator`.
        pairs: the words of source and translation, without `</s>`.
        done: is given the number of pairs of each batch.
        runners_up: as for `force_decode`.

    Raises:
        RunError: where a probability is NaN.
    """
    codec, device = trained.codec, trained.place()
    ids = [(codec.source.encode(source), codec.target.encode(target)) for source, target in pairs]

    def decode(rows: Rows) -> list[ForcedDecoding]:
        sources, targets = zip(*(ids[row] for row in rows), strict=True)
        return force_decode(trained.model, sources, targets, runners_up=runners_up)

    lengths = [max(len(source), len(target)) for source, target in ids]
    batches = evaluation_batches(lengths, trained.config.search.batch_size) if ids else []
    found: dict[int, ForcedDecoding] = {}
    with trained.autocast():
        decoded = map_batches(decode, batches, trained.workers, device)
        for rows, decodings in zip(batches, decoded, strict=True):
            found.update(zip(rows.tolist(), decodings, strict=True))
            done(len(rows))
    return [found[row] for row in range(len(ids))]


def word_log_probabilities(codec: Codec, decoding: ForcedDecoding) -> list[float]:
    """Log-probabilities in nats of the I words and of `</s>`: (I + 1,); subwords are put together."""
    return _of_words(codec, decoding, decoding.log_probabilities)


def expected_words(codec: Codec, decoding: ForcedDecoding) -> np.ndarray:
    """p / max p of the I words and of `</s>`, at most 1: (I + 1,); subwords are put together.

    Args:
        decoding: with a runner-up of each symbol at least.
    """
    behind = [
        min(0.0, written - others[0][1])
        for written, others in zip(decoding.log_probabilities, decoding.others, strict=True)
    ]
    return np.exp(_of_words(codec, decoding, behind))


def _of_words(codec: Codec, decoding: ForcedDecoding, values: Sequence[float]) -> list[float]:
    """Sums of the values (T,) of symbols over words and `</s>`: (I + 1,)."""
    first = first_symbols(codec.target.word_index(decoding.ids))
    return [sum(values[start:end]) for start, end in itertools.pairwise([*first, len(values)])]


def alignment_row(
    codec: Codec,
    identity: int,
    source: Sequence[str],
    decoding: ForcedDecoding,
    *,
    score: float,
    reference: Sequence[str] = (),
) -> Record:
    """A line of alignments/<set>.jsonl; subwords are put together to words."""
    target = codec.target
    first = first_symbols(target.word_index(decoding.ids))
    weights = decoding.weights
    if weights is not None:
        weights = weights_between_words(weights, codec, source, decoding.ids)
    written = target.decode(decoding.ids)
    return {
        "id": identity,
        "length": len(source),
        "source": [*source, END_SYMBOL],
        "target": [*written, END_SYMBOL],
        "reference": list(reference),
        "score": score,
        "weights": None if weights is None else weights.tolist(),
        "log_normaliser": None
        if decoding.log_normaliser is None
        else [float(decoding.log_normaliser[at]) for at in first],
        "attention_entropy": None if weights is None else attention_entropy(weights).tolist(),
        "log_probability": word_log_probabilities(codec, decoding),
        "runners_up": [
            [[target.symbols([symbol])[0], value] for symbol, value in decoding.others[at]]
            for at in first
        ],
    }
