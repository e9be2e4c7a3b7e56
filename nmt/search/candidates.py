"""Selects the continuations that a beam keeps.

B batch, K hypotheses a sentence, V vocabulary, C cells inspected, W beam width.

The K x V scores of a sentence are never written down. The vocabulary is cut into stripes laid over
one another, so that a cell holds the words at the same place of each stripe; one pass finds the
best of every cell. The best W words of a sentence lie in its best W cells: only those few leave the
device and are ordered on the host, in float64. Where rounding or equally probable words leave it
open whether a cell more would matter, all words of that sentence are ordered.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nmt.utils.devices import queued
from nmt.utils.errors import RunError

STRIPES = 16  # a cell more costs as many words to order; a stripe more saves as many cells
SPARE = 4  # cells beyond the width of the beam: most ties are settled without ordering all words
NOT_NUMBERS = "the model's probabilities are NaN; its weights are damaged"
CHUNK = 1 << 17  # logits whose normaliser is computed at once on a CPU: they stay in its cache


class Continuations(NamedTuple):
    """The continuations that a sentence's beam keeps, best first."""

    parents: np.ndarray  # (B, W) slot of the hypothesis that is continued
    words: np.ndarray  # (B, W)
    totals: np.ndarray  # (B, W) of the hypothesis with this word; -inf: no such continuation


def best_continuations(
    logits: Tensor,
    totals: np.ndarray,
    widths: np.ndarray,
    forbidden: dict[int, np.ndarray],
) -> Continuations:
    """The best continuations of every sentence's hypotheses.

    Probabilities are normalised in float32 (float64 logits: float64), over all words, forbidden
    ones included. Equal totals: the lower word index first, then the hypothesis that was better
    before.

    Args:
        logits: (B, K, V) for the next word; forbidden words are overwritten.
        totals: (B, K) float64, summed log-probability so far; -inf where there is no hypothesis.
        widths: (B,) int, how many continuations each sentence keeps (W is the largest).
        forbidden: word id -> (B,) bool, sentences that may not write it now.

    Raises:
        RunError: the model gave a probability that is not a number.
    """
    dtype = torch.promote_types(logits.dtype, torch.float32)
    width = int(widths.max())
    batch, slots, vocabulary = logits.shape
    starts, size = _stripes(vocabulary)

    head = logits[:, :, : size * (len(starts) - 1)].unflatten(2, (-1, size)).amax(2)
    best = torch.maximum(head, logits[:, :, -size:])  # (B, K, cells)
    # of all words, so before any of them is overwritten
    normaliser = _normaliser(logits, best.amax(2).to(dtype))
    for word, sentences in forbidden.items():
        where = queued(torch.from_numpy(sentences), logits.device)
        logits[:, :, word].masked_fill_(where.unsqueeze(1), -torch.inf)
        # the cells that hold the word have another best one; with the old one all words were ranked
        for place in {word - start for start in starts if 0 <= word - start < size}:
            held = torch.stack([logits[:, :, start + place] for start in starts])
            best[:, :, place] = held.amax(0)
    offset = queued(torch.from_numpy(totals), logits.device).to(dtype) - normaliser
    reach, cells = (best + offset.unsqueeze(2)).flatten(1).topk(min(width + SPARE, slots * size))
    parents = cells // size  # (B, C)
    words = (cells % size).unsqueeze(2) + _starts(vocabulary, logits.device)
    rows = torch.arange(batch, device=logits.device).unsqueeze(1)
    values = logits[rows.unsqueeze(2), parents.unsqueeze(2), words].to(dtype)  # (B, C, stripes)
    # rounding must not make a word more probable than certain
    values = (values - normaliser[rows, parents].unsqueeze(2)).clamp(max=0)
    # float64 holds cells exactly too, so that one copy (one wait for the device) is enough
    copied = torch.cat((reach[:, -1:], cells, values.flatten(1)), 1).double().cpu().numpy()
    if np.isnan(copied).any():
        raise RunError(NOT_NUMBERS)

    count = cells.shape[1]
    last, cell = copied[:, 0], copied[:, 1 : count + 1].astype(np.int64)
    offered = (cell % size)[:, :, None] + np.array(starts)  # (B, C, stripes)
    # words of the last stripe that the one before has
    covered = offered[:, :, -1] < starts[-2] + size
    origin = np.repeat(cell // size, len(starts), axis=1)
    scores = along(totals, origin) + copied[:, count + 1 :]
    scores.reshape(offered.shape)[:, :, -1][covered] = -np.inf
    kept = _ordered(Continuations(origin, offered.reshape(scores.shape), scores), widths)
    if count < slots * size:
        lowest = np.where(kept.totals > -np.inf, kept.totals, np.inf).min(1)
        slack = 8 * torch.finfo(dtype).eps * np.abs(lowest)
        for row in np.flatnonzero((last >= lowest - slack) & (last > -np.inf)).tolist():
            _rank_all_words(kept, row, logits[row], normaliser[row], totals[row], int(widths[row]))
    return kept


def along(array: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The entries `columns` (B, N) of each row of `array` (B, M): `np.take_along_axis`, but fast."""
    return array[np.arange(len(array))[:, None], columns]


def _normaliser(logits: Tensor, largest: Tensor) -> Tensor:
    """log Σ exp of the logits (B, K, V) of which the largest (B, K) are known: (B, K)."""
    flat, top = logits.flatten(0, 1), largest.flatten().unsqueeze(1)
    rows = max(1, CHUNK // flat.shape[1]) if flat.device.type == "cpu" else len(flat)
    parts = zip(flat.split(rows), top.split(rows), strict=True)
    sums = torch.cat([(part.to(largest.dtype) - most).exp_().sum(1) for part, most in parts])
    return sums.log().view_as(largest) + largest


def _stripes(vocabulary: int) -> tuple[list[int], int]:
    """First words of the stripes, and their size; the last one overlaps the one before it."""
    count = STRIPES if vocabulary >= STRIPES**2 else 2
    size = -(-vocabulary // count)
    return [*range(0, size * (count - 1), size), vocabulary - size], size


@functools.lru_cache(maxsize=8)
def _starts(vocabulary: int, device: torch.device) -> Tensor:
    """The first words of `_stripes` on a device, made once."""
    return torch.tensor(_stripes(vocabulary)[0], device=device)


def _ordered(candidates: Continuations, widths: np.ndarray) -> Continuations:
    """The best of (B, M) candidates, as many as each sentence's width."""
    width = int(widths.max())
    falling = -candidates.totals
    if width < falling.shape[1]:  # the others, equally good ones apart, need no order
        least = np.partition(falling, width - 1, axis=1)[:, width - 1 : width]
        worse = falling > least
        count = int((~worse).sum(1).max())
        # bools are sorted in a third of the time of `argpartition`
        columns = worse.argsort(axis=1, kind="stable")[:, :count]
        candidates = Continuations(*(along(array, columns) for array in candidates))
    parents, words, scores = candidates
    order = np.lexsort((parents, words, -scores), axis=1)[:, :width]
    best = Continuations(*(along(array, order) for array in candidates))
    best.totals[np.arange(order.shape[1]) >= widths[:, None]] = -np.inf
    return best


def _rank_all_words(
    kept: Continuations,
    row: int,
    logits: Tensor,
    normaliser: Tensor,
    totals: np.ndarray,
    width: int,
) -> None:
    """Puts the best of all words (logits (K, V)) of one sentence into its row of `kept`."""
    exact = (logits.to(normaliser.dtype) - normaliser.unsqueeze(1)).clamp(max=0)
    scores = totals[:, None] + exact.double().cpu().numpy()
    least = np.partition(scores, scores.size - width, axis=None)[scores.size - width]
    parents, words = np.nonzero(scores >= least)
    likely = Continuations(parents, words, scores[parents, words])
    best = _ordered(Continuations(*(array[None] for array in likely)), np.array([width]))
    for rows, ranked in zip(kept, best, strict=True):
        rows[row, :width] = ranked[0]
