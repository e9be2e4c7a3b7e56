"""Selects the best continuations for beam search.

B batch, K hypotheses per sentence, V vocabulary size, C inspected cells, W beam width.

The K x V scores of a sentence are never stored. The vocabulary is split into stripes of equal size. Cell i
of a hypothesis holds word i of each stripe; one pass computes the best logit of each cell. With one
hypothesis, six words in two stripes of three, and W = 2:

                cell 0     cell 1     cell 2
    stripe 0    word 0: 1  word 1: 9  word 2: 2
    stripe 1    word 3: 8  word 4: 3  word 5: 6
    best        8          9          6           inspect cells 1 and 0

The best W words are in the best W cells: each of these W cells has a word that is at least as good as
every word of any other cell. Here words 1 and 3 are kept, and no word of cell 2 exceeds 6. So only the
words of the best cells are copied to the host and sorted there, in float64. If a word of another cell
could be among the best because of rounding or ties, all words of the sentence are sorted.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nmt.utils.devices import queued
from nmt.utils.errors import RunError

STRIPES = 16  # number of stripes; more would give fewer cells to compare, but more words to sort
SPARE = 4  # cells inspected beyond the beam width: thanks to these, most ties need no full sort
NOT_NUMBERS = "the model's probabilities are NaN; its weights are damaged"
LOG2_E = math.log2(math.e)  # on a CPU, 2^x takes half the time of e^x
CHUNK = 1 << 17  # logits per chunk when a CPU computes normalisers: a chunk fits the CPU's cache


class Stripes(NamedTuple):
    """A vocabulary in stripes of equal size; the last stripe may overlap the stripe before it."""

    starts: list[int]  # the first word of each stripe
    on_device: Tensor  # `starts` as a tensor
    size: int  # number of words of a stripe, and of cells of a hypothesis


class Continuations(NamedTuple):
    """Hypotheses extended by one word, best first."""

    parents: np.ndarray  # (B, W) slot of the hypothesis to which the word is added
    words: np.ndarray  # (B, W)
    totals: np.ndarray  # (B, W) summed log-probability with this word; -inf: no continuation


def best_continuations(
    logits: Tensor, totals: np.ndarray, widths: np.ndarray, forbidden: dict[int, np.ndarray]
) -> Continuations:
    """Returns the best continuations of each sentence's hypotheses.

    Probabilities are normalised over all words, forbidden words included, in float32 (for float64
    logits: float64). Ties go to the lower word index, then to the lower slot.

    Args:
        logits: (B, K, V) for the next word; overwritten at forbidden words.
        totals: (B, K) float64, summed log-probabilities; -inf: no hypothesis.
        widths: (B,) int, number of continuations to keep per sentence (W is the largest).
        forbidden: word id -> (B,) bool, the sentences for which the word is forbidden.

    Raises:
        RunError: if a probability of the model is NaN.
    """
    stripes = _stripes(logits.shape[2], logits.device)
    best = _best_of_cells(logits, stripes)
    # computed before the logits of forbidden words are overwritten
    normaliser = _normaliser(logits, best)
    for word, sentences in forbidden.items():
        mask = queued(torch.from_numpy(sentences), logits.device)
        _forbid(word, mask, logits, best, stripes)
    count = int(widths.max()) + SPARE
    candidates, bound = _inspect_cells(count, logits, best, normaliser, totals, stripes)
    kept = _best(candidates, widths)
    # A word outside the inspected cells scores at most `bound`. `bound` must be clearly below all kept scores.
    lowest = np.where(kept.totals > -np.inf, kept.totals, np.inf).min(1)
    slack = 8 * torch.finfo(normaliser.dtype).eps * np.abs(lowest)
    unsure = (bound >= lowest - slack) & (bound > -np.inf)
    for row in np.flatnonzero(unsure).tolist():
        _rank_all_words(kept, row, logits[row], normaliser[row], totals[row], int(widths[row]))
    return kept


def take(array: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Returns entries `columns` (B, N) of the rows of `array` (B, M); a faster `np.take_along_axis`."""
    return array[np.arange(len(array))[:, None], columns]


def _best_of_cells(logits: Tensor, stripes: Stripes) -> Tensor:
    """Returns the best logit (B, K, cells) of each cell."""
    size = stripes.size
    head = logits[:, :, : size * (len(stripes.starts) - 1)].unflatten(2, (-1, size)).amax(2)
    return torch.maximum(head, logits[:, :, -size:])


def _forbid(word: int, mask: Tensor, logits: Tensor, best: Tensor, stripes: Stripes) -> None:
    """Sets the logits of a word to -inf in the sentences of a mask (B,).

    Also computes the best logits of the word's cells again, since a best logit that is too high would
    cause a sort of all words.
    """
    logits[:, :, word].masked_fill_(mask.unsqueeze(1), -torch.inf)
    for i in {word - start for start in stripes.starts if 0 <= word - start < stripes.size}:
        best[:, :, i] = logits.index_select(2, stripes.on_device + i).amax(2)


def _inspect_cells(
    count: int,
    logits: Tensor,
    best: Tensor,
    normaliser: Tensor,
    totals: np.ndarray,
    stripes: Stripes,
) -> tuple[Continuations, np.ndarray]:
    """Copies all words of a sentence's best `count` cells to the host.

    Returns:
        The words with their scores (B, C · stripes), unsorted, and an upper bound (B,) of the scores of
        all other words; -inf if there are no other words.
    """
    starts, first_words, size = stripes
    batch, slots, _ = best.shape
    dtype = normaliser.dtype
    count = min(count, slots * size)
    offset = queued(torch.from_numpy(totals), logits.device).to(dtype) - normaliser
    bounds, cells = (best + offset.unsqueeze(2)).flatten(1).topk(count)  # (B, C)
    parents = cells // size
    words = (cells % size).unsqueeze(2) + first_words  # (B, C, stripes)
    rows = torch.arange(batch, device=logits.device).unsqueeze(1)
    values = logits[rows.unsqueeze(2), parents.unsqueeze(2), words].to(dtype)
    # rounding must not give a probability above 1
    values = (values - normaliser[rows, parents].unsqueeze(2)).clamp(max=0)
    # one tensor, so that the host waits only once; as floats, indices of cells are exact below 2^24
    copied = torch.cat((bounds[:, -1:], cells, values.flatten(1)), 1).double().cpu().numpy()
    if np.isnan(copied).any():
        raise RunError(NOT_NUMBERS)

    cell = copied[:, 1 : count + 1].astype(np.int64)
    candidates = (cell % size)[:, :, None] + np.array(starts)  # (B, C, stripes) words
    # words that the last stripe shares with the one before it
    repeated = candidates[:, :, -1] < starts[-2] + size
    slot = np.repeat(cell // size, len(starts), axis=1)
    scores = take(totals, slot) + copied[:, count + 1 :]
    scores.reshape(candidates.shape)[:, :, -1][repeated] = -np.inf
    bound = copied[:, 0] if count < slots * size else np.full(batch, -np.inf)
    return Continuations(slot, candidates.reshape(scores.shape), scores), bound


def _normaliser(logits: Tensor, best: Tensor) -> Tensor:
    """Returns log Σ exp (B, K) of logits (B, K, V), given the best logit of each cell (B, K, cells)."""
    largest = best.amax(2).to(torch.promote_types(logits.dtype, torch.float32))
    # Σ e^l = 2^-shift Σ 2^(shift + l log2 e)
    flat = logits.flatten(0, 1)
    shift = largest.flatten().unsqueeze(1) * -LOG2_E
    rows = max(1, CHUNK // flat.shape[1]) if flat.device.type == "cpu" else len(flat)
    parts = zip(flat.split(rows), shift.split(rows), strict=True)
    exponents = (torch.add(by, part.to(by.dtype), alpha=LOG2_E) for part, by in parts)
    sums = torch.cat([each.exp2_().sum(1, keepdim=True) for each in exponents])
    return ((sums.log2() - shift) / LOG2_E).view_as(largest)


@functools.lru_cache(maxsize=8)
def _stripes(vocabulary: int, device: torch.device) -> Stripes:
    count = STRIPES if vocabulary >= STRIPES**2 else 2
    size = -(-vocabulary // count)
    starts = [*range(0, size * (count - 1), size), vocabulary - size]
    return Stripes(starts, torch.tensor(starts, device=device), size)


def _best(candidates: Continuations, widths: np.ndarray) -> Continuations:
    """Returns the best of M candidates per sentence, sorted; `widths` (B,) says how many to return."""
    width = int(widths.max())
    costs = -candidates.totals
    if width < costs.shape[1]:  # drop worse candidates, keep ties
        limit = np.partition(costs, width - 1, axis=1)[:, width - 1 : width]
        worse = costs > limit
        count = int((~worse).sum(1).max())
        # sorting bools takes a third of the time of `argpartition`
        columns = worse.argsort(axis=1, kind="stable")[:, :count]
        candidates = Continuations(*(take(array, columns) for array in candidates))
    parents, words, scores = candidates
    order = np.lexsort((parents, words, -scores), axis=1)[:, :width]
    best = Continuations(*(take(array, order) for array in candidates))
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
    """Ranks all words of one sentence, with logits (K, V), and writes the best to row `row` of `kept`."""
    exact = (logits.to(normaliser.dtype) - normaliser.unsqueeze(1)).clamp(max=0)
    scores = totals[:, None] + exact.double().cpu().numpy()
    limit = np.partition(scores, scores.size - width, axis=None)[scores.size - width]
    parents, words = np.nonzero(scores >= limit)
    candidates = Continuations(parents, words, scores[parents, words])
    best = _best(Continuations(*(array[None] for array in candidates)), np.array([width]))
    for rows, ranked in zip(kept, best, strict=True):
        rows[row, :width] = ranked[0]
