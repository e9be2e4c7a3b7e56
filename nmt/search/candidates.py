"""Selects the best continuations for beam search.

Sorting all K x V candidates of a sentence would be slow. Instead, the vocabulary is split into stripes of
equal size. Cell i of a hypothesis consists of word i of each stripe. One pass over the logits computes the
best logit of each cell. Example for one hypothesis, six words in two stripes, and a beam width W of 2:

                cell 0     cell 1     cell 2
    stripe 0    word 0: 1  word 1: 9  word 2: 2
    stripe 1    word 3: 8  word 4: 3  word 5: 6
    best        8          9          6           inspect cells 1 and 0

Each of the best W cells has a word that is at least as good as every word outside these cells. So the best W
words are in these cells. In the example, words 1 and 3 are the best, and no word of cell 2 exceeds 6.
So only the words of the best cells are copied to the host and sorted there in float64. Because of rounding
or ties, a word of another cell may also be among the best. In this case, all words of the sentence are sorted.

Array shapes: B sentences, K slots for hypotheses of a sentence, V vocabulary size, C inspected cells, W beam width.
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

STRIPES = 16  # number of stripes; more stripes mean fewer cells, but more words per cell to sort
SPARE = 4  # number of cells to inspect in addition to W; with them, few ties require a full sort
NOT_NUMBERS = "the model's probabilities are NaN or all 0; its weights are damaged"
LOG2_E = math.log2(math.e)  # on a CPU, 2^x takes half the time of e^x
CHUNK = 1 << 17  # on a CPU, `_normaliser` processes this many logits at a time, which fit the cache


class Stripes(NamedTuple):
    """A vocabulary that is split into stripes of equal size; the last two stripes may overlap."""

    starts: list[int]  # the first word of each stripe
    on_device: Tensor  # `starts` as a tensor
    size: int  # number of words per stripe; equals the number of cells per hypothesis


class Continuations(NamedTuple):
    """Hypotheses extended by one word, best first."""

    parents: np.ndarray  # (B, W) slot of the hypothesis that the word extends
    words: np.ndarray  # (B, W)
    totals: np.ndarray  # (B, W) log-probability including this word; -inf in empty slots


def best_continuations(
    logits: Tensor, totals: np.ndarray, widths: np.ndarray, forbidden: dict[int, np.ndarray]
) -> Continuations:
    """Returns the best continuations of the hypotheses of each sentence.

    Probabilities are normalised over all words, including forbidden words. This is done in float32, or in
    float64 for float64 logits. Equal continuations are sorted by word index, then by slot.

    Args:
        logits: (B, K, V) for the next word. Logits of forbidden words are overwritten.
        totals: (B, K) float64, log-probabilities of the hypotheses; -inf in empty slots.
        widths: (B,) int, number of continuations to return per sentence. W is the largest of them.
        forbidden: word id -> (B,) bool, True in sentences where the word is forbidden.

    Raises:
        RunError: if a probability of the model is NaN.
    """
    stripes = _stripes(logits.shape[2], logits.device)
    best = _best_of_cells(logits, stripes)
    # Compute the normaliser before the logits of forbidden words are overwritten.
    normaliser = _normaliser(logits, best)
    for word, sentences in forbidden.items():
        mask = queued(torch.from_numpy(sentences), logits.device)
        _forbid(word, mask, logits, best, stripes)
    count = int(widths.max()) + SPARE
    candidates, bound = _inspect_cells(count, logits, best, normaliser, totals, stripes)
    kept = _best(candidates, widths)
    # `bound` is an upper bound for the scores of all words outside the inspected cells. If it is not clearly
    # below the kept scores, a better word may be missing, so rank all words.
    lowest = np.where(kept.totals > -np.inf, kept.totals, np.inf).min(1)
    slack = 8 * torch.finfo(normaliser.dtype).eps * np.abs(lowest)
    with np.errstate(invalid="ignore"):  # inf - inf, if all words of a sentence are forbidden
        unsure = (bound >= lowest - slack) & (bound > -np.inf)
    for row in np.flatnonzero(unsure).tolist():
        _rank_all_words(kept, row, logits[row], normaliser[row], totals[row], int(widths[row]))
    return kept


def take(array: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Selects `columns` (B, N) from the rows of `array` (B, M), faster than `np.take_along_axis`."""
    return array[np.arange(len(array))[:, None], columns]


def _best_of_cells(logits: Tensor, stripes: Stripes) -> Tensor:
    """Returns the best logit of each cell: (B, K, cells)."""
    size = stripes.size
    head = logits[:, :, : size * (len(stripes.starts) - 1)].unflatten(2, (-1, size)).amax(2)
    return torch.maximum(head, logits[:, :, -size:])


def _forbid(word: int, mask: Tensor, logits: Tensor, best: Tensor, stripes: Stripes) -> None:
    """Sets the logits of a word to -inf in the sentences of a mask (B,).

    Also updates the best logits of the word's cells. If they were too high, all words might have to be sorted.
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
    """Copies all words of the best C = `count` cells of each sentence to the host.

    Returns:
        The words of these cells and their scores, both (B, C · stripes) and unsorted, and an upper bound (B,)
        for the scores of all other words. The bound is -inf if there are no other words.
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
    # Due to rounding, a probability could be above 1.
    values = (values - normaliser[rows, parents].unsqueeze(2)).clamp(max=0)
    # Copy a single tensor, so that the host waits only once. Cell indices below 2^24 are exact as floats.
    copied = torch.cat((bounds[:, -1:], cells, values.flatten(1)), 1).double().cpu().numpy()
    if np.isnan(copied).any():
        raise RunError(NOT_NUMBERS)

    cell = copied[:, 1 : count + 1].astype(np.int64)
    candidates = (cell % size)[:, :, None] + np.array(starts)  # (B, C, stripes) words
    # Words that are in both of the last two stripes must not be candidates twice.
    repeated = candidates[:, :, -1] < starts[-2] + size
    slot = np.repeat(cell // size, len(starts), axis=1)
    scores = take(totals, slot) + copied[:, count + 1 :]
    scores.reshape(candidates.shape)[:, :, -1][repeated] = -np.inf
    bound = copied[:, 0] if count < slots * size else np.full(batch, -np.inf)
    return Continuations(slot, candidates.reshape(scores.shape), scores), bound


def _normaliser(logits: Tensor, best: Tensor) -> Tensor:
    """Returns the log-sum-exp of the logits, (B, K, V) -> (B, K); `best` is the best logit of each cell."""
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
    """Returns the best candidates of each sentence, best first; `widths` (B,) has their number."""
    width = int(widths.max())
    costs = -candidates.totals
    if width < costs.shape[1]:  # drop candidates worse than the `width`-th, keep its ties
        limit = np.partition(costs, width - 1, axis=1)[:, width - 1 : width]
        worse = costs > limit
        count = int((~worse).sum(1).max())
        # Sorting bools takes a third of the time of `argpartition`.
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
    """Ranks all words of one sentence, given logits (K, V), and writes the best ones to row `row` of `kept`."""
    exact = (logits.to(normaliser.dtype) - normaliser.unsqueeze(1)).clamp(max=0)
    scores = totals[:, None] + exact.double().cpu().numpy()
    limit = np.partition(scores, scores.size - width, axis=None)[scores.size - width]
    parents, words = np.nonzero(scores >= limit)
    candidates = Continuations(parents, words, scores[parents, words])
    best = _best(Continuations(*(array[None] for array in candidates)), np.array([width]))
    for rows, ranked in zip(kept, best, strict=True):
        rows[row, :width] = ranked[0]
