"""The words that may come next: a few for each hypothesis, then the best of a sentence's.

B batch, K hypotheses a sentence, C candidates a hypothesis, W beam width, V vocabulary.

Only the C most probable words of each hypothesis leave the device; the scores of all K x V
continuations are never written down. Taking the best of the K x C that are left is exact as long
as C exceeds the width of the beam; where equally probable words make the C-th doubtful, that
hypothesis is looked at again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nmt.errors import Failure


class Candidates(NamedTuple):
    """Likely next words of every hypothesis, most probable first."""

    words: np.ndarray  # (B, K, C) int64
    log_probabilities: np.ndarray  # (B, K, C) float64
    complete: bool  # whether C is the whole vocabulary


class Selection(NamedTuple):
    """The continuations that a sentence's beam keeps, best first."""

    parents: np.ndarray  # (B, W) slot of the hypothesis that is continued
    words: np.ndarray  # (B, W)
    log_probabilities: np.ndarray  # (B, W) of the word alone
    totals: np.ndarray  # (B, W) of the hypothesis with this word; -inf: no such continuation


def likely_words(logits: Tensor, count: int) -> Candidates:
    """The `count` most probable words of each row of logits (B, K, V), normalised in float32.

    Logits of lower precision are compared as they are; only their normaliser is taken in float32.

    Raises:
        Failure: the model gave a probability that is not a number.
    """
    count = min(count, logits.shape[2])
    values, words = logits.topk(count)
    exact = torch.promote_types(logits.dtype, torch.float32)
    normaliser = logits.to(exact).logsumexp(2, keepdim=True)
    # rounding must not make a word more probable than certain
    log_probabilities = (values.to(exact) - normaliser).clamp(max=0)
    # float64 holds both exactly, so that one copy (one wait for the device) is enough
    both = torch.stack((log_probabilities.double(), words.double())).cpu().numpy()
    if np.isnan(both[0]).any():
        raise Failure("the model gives probabilities that are not numbers; its weights are broken")
    return Candidates(both[1].astype(np.int64), both[0], count == logits.shape[2])


def select(
    logits: Tensor,
    totals: np.ndarray,
    widths: np.ndarray,
    forbidden: dict[int, np.ndarray],
) -> Selection:
    """The best continuations of every sentence's hypotheses.

    Equal totals: the lower word index first, then the hypothesis that was better before.

    Args:
        logits: (B, K, V) for the next word.
        totals: (B, K) float64, summed log-probability so far; -inf where there is no hypothesis.
        widths: (B,) int, how many continuations each sentence keeps (W is the largest).
        forbidden: word id -> (B,) bool, sentences that may not write it now.
    """
    width = int(widths.max())
    candidates = likely_words(logits, width + 1 + len(forbidden))
    words, log_probabilities = candidates.words, candidates.log_probabilities
    selection, doubtful = _merge(candidates, totals, widths, forbidden)
    if len(doubtful[0]):
        places = [torch.from_numpy(place).to(logits.device) for place in doubtful]
        order = logits[tuple(places)].sort(stable=True, descending=True).indices
        # equal logits have equal log-probabilities: only the words change
        words[doubtful] = order[:, : words.shape[2]].cpu().numpy()
        selection, _ = _merge(Candidates(words, log_probabilities, True), totals, widths, forbidden)
    return selection


def _merge(
    candidates: Candidates,
    totals: np.ndarray,
    widths: np.ndarray,
    forbidden: dict[int, np.ndarray],
) -> tuple[Selection, tuple[np.ndarray, np.ndarray]]:
    """The best W of a sentence's K x C candidates, and the hypotheses whose list was too short."""
    words, log_probabilities, complete = candidates
    scores = totals[:, :, None] + log_probabilities  # (B, K, C)
    last = scores[:, :, -1].copy()  # what a word that is not listed can reach at most
    for word, sentences in forbidden.items():
        scores[(words == word) & sentences[:, None, None]] = -np.inf
    batch, count = scores.shape[0], scores.shape[2]
    flat_scores, flat_words = scores.reshape(batch, -1), words.reshape(batch, -1)
    width = int(widths.max())
    order = _best(flat_scores, flat_words, width)  # (B, <=W)
    best = np.take_along_axis(flat_scores, order, 1)
    best[np.arange(order.shape[1]) >= widths[:, None]] = -np.inf
    lowest = np.where(best > -np.inf, best, np.inf).min(1)
    doubtful = (last >= lowest[:, None]) & (last > -np.inf)
    selection = Selection(
        order // count,
        np.take_along_axis(flat_words, order, 1),
        np.take_along_axis(log_probabilities.reshape(batch, -1), order, 1),
        best,
    )
    return selection, (np.zeros(0), np.zeros(0)) if complete else doubtful.nonzero()


def _best(scores: np.ndarray, words: np.ndarray, width: int) -> np.ndarray:
    """Places (B, W) of the best scores (B, M), ties by word, then by place."""
    places = np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
    return np.lexsort((places, words, -scores), axis=1)[:, :width]
