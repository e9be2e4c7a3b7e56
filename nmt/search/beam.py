"""Beam search for a batch of sentences (design: the paper's section 5.1 and its appendix).

B batch (sentences still searched), K hypotheses a sentence, S source length, V vocabulary.

The device computes; the bookkeeping (totals, widths, back-pointers) is done in NumPy, which costs
one copy from the device a step, which is waited for, and a few to it, which are not. All K
hypotheses of a sentence query the one copy of its annotations. A sentence that is done leaves the
batch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from nmt.config import SearchConfig
from nmt.data.vocabulary import END, UNKNOWN
from nmt.layers import reorder, select
from nmt.search.candidates import along, best_continuations
from nmt.utils.devices import queued


@dataclass(frozen=True)
class Hypothesis:
    """One translation of a sentence.

    Attributes:
        tokens: ids of the words written; the last is `END` if and only if `finished`.
        score: the sum of log p(y_i | y_<i, x) in nats, divided by len(tokens) ** length_penalty.
        finished: whether `</s>` was written before the search had to stop.
    """

    tokens: list[int]
    score: float
    finished: bool


class Searchable(Protocol):
    """What a search needs of a model: see `nmt.layers.Network`."""

    def begin(self, source: Tensor, mask: Tensor) -> tuple[Any, Any]:
        """Sentences (B, S) and mask (B, S) to memory and first state."""

    def step(self, state: Any, memory: Any) -> tuple[Tensor, Any]:
        """Logits (B, K, V) and attention."""

    def advance(self, state: Any, attended: Any, word: Tensor) -> Any:
        """The state after `word` (B, K)."""


@dataclass
class _Sentence:
    """The bookkeeping of one sentence."""

    limit: int  # symbols after which the search stops
    minimum: int  # words that must precede </s>
    finished: list[Hypothesis] = field(default_factory=list)
    open: list[Hypothesis] = field(default_factory=list)  # where the search stopped


@contextlib.contextmanager
def _keeping_casts() -> Iterator[None]:
    """Autocast keeps the weights that it has cast for the next step.

    Not in inference mode, and Lightning's own autocast casts them anew each time.
    """
    kept = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(True)
    try:
        with torch.inference_mode(False), torch.no_grad():
            yield
    finally:
        torch.set_autocast_cache_enabled(kept)


@_keeping_casts()
def beam_search(
    model: Searchable,
    source: Tensor,
    mask: Tensor,
    settings: SearchConfig,
    forbid_unknown: bool = False,
) -> list[list[Hypothesis]]:
    """The most probable translations found with a beam, in the order of the batch.

    Each step keeps, of all continuations of a sentence's hypotheses, the best `beam_size` less
    those already finished: a finished hypothesis leaves the beam, which shrinks by one. The search
    of a sentence ends when its beam is empty, after max_ratio * T_x steps, or as soon as no open
    hypothesis can still overtake the finished ones that will be returned. T_x counts the source
    symbols with their `</s>`. Finished hypotheses come first, ranked by sum of log-probabilities
    / length^length_penalty, where length counts the written symbols with `</s>`; open ones only
    fill up. Equal scores: the lower word index first. `beam_size=1` is greedy search.

    Args:
        model: in evaluation mode.
        source: (B, S) int64 ids, each sentence ending with `</s>`.
        mask: (B, S) bool, True on real positions.
        settings: beam_size, nbest, max_ratio, min_ratio (no `</s>` before floor(min_ratio * T_x)
            words) and length_penalty are used.
        forbid_unknown: never write `<unk>`. Neither ban renormalises the other words.

    Returns:
        For each sentence its `nbest` best hypotheses, best first (fewer where fewer exist).

    Raises:
        RunError: the model gave a probability that is not a number.
    """
    lengths = mask.sum(1).tolist()
    limits = [max(1, _floor(settings.max_ratio * n)) for n in lengths]
    sentences = [  # the last step may always write </s>
        _Sentence(limit, min(_floor(settings.min_ratio * n), limit - 1))
        for limit, n in zip(limits, lengths, strict=True)
    ]
    if not sentences:
        return []
    rows = sentences  # those that are still searched
    written = np.empty((len(sentences), 1, 0), np.int32)  # (B, K, steps) words of each hypothesis
    totals = np.zeros((len(sentences), 1))  # (B, K) its summed log-probability; -inf: none
    memory, state = model.begin(source, mask)
    for step in range(1, max(sentence.limit for sentence in sentences) + 1):
        logits, attended = model.step(state, memory)
        widths = np.array([settings.beam_size - len(row.finished) for row in rows])
        forbidden = {END: np.array([step <= row.minimum for row in rows])}
        if forbid_unknown:
            forbidden[UNKNOWN] = np.ones(len(rows), bool)
        forbidden = {word: where for word, where in forbidden.items() if where.any()}
        chosen = best_continuations(logits, totals, widths, forbidden)

        words, totals = chosen.words, chosen.totals
        written = along(written, chosen.parents)
        written = np.concatenate([written, words[:, :, None].astype(np.int32)], 2)
        ended = (words == END) & (totals > -np.inf)
        for row, slot in np.argwhere(ended):
            score = normalised(totals[row, slot], step, settings.length_penalty)
            rows[row].finished.append(Hypothesis(written[row, slot].tolist(), score, True))
        totals[ended] = -np.inf

        highest = totals.max(1).tolist()
        active = np.array(
            [_continues(row, step, best, settings) for row, best in zip(rows, highest, strict=True)]
        )
        for i in np.flatnonzero(~active):
            for slot in np.flatnonzero(totals[i] > -np.inf):
                score = normalised(totals[i, slot], step, settings.length_penalty)
                rows[i].open.append(Hypothesis(written[i, slot].tolist(), score, False))
        if not active.any():
            break
        staying = np.flatnonzero(active)
        slots = _live_slots(totals[active])  # (B', K')
        written, totals, words = (along(each[active], slots) for each in (written, totals, words))
        # of each hypothesis the one it continues, counted over the whole batch
        parents = staying[:, None] * logits.shape[1] + along(chosen.parents[active], slots)
        rows = [rows[i] for i in staying]
        index = queued(torch.from_numpy(np.stack([parents, words])), source.device)
        if not active.all():
            memory = select(memory, queued(torch.from_numpy(staying), source.device))
        state = model.advance(*reorder((state, attended), index[0]), index[1])
    return [_ranked(sentence, settings.nbest) for sentence in sentences]


def normalised(total: float, length: int, length_penalty: float) -> float:
    """A summed log-probability as it is ranked: total / length^p (p = 0: the sum itself).

    `length` counts the symbols that were predicted, `</s>` included.
    """
    return float(total) / length**length_penalty


def _floor(steps: float) -> int:
    """Rounds down, but not a product such as 0.29 * 100 that falls short of a whole number."""
    return int(steps + 1e-9)


def _live_slots(totals: np.ndarray) -> np.ndarray:
    """Slots (B, K') with the open hypotheses of each row first, in their order."""
    live = totals > -np.inf
    return np.argsort(~live, axis=1, kind="stable")[:, : live.sum(1).max()]


def _continues(sentence: _Sentence, step: int, best_open: float, settings: SearchConfig) -> bool:
    """Whether another step can change what is returned for a sentence.

    An open hypothesis only loses probability with every word, and the division by length^p favours
    it most at the last step; if even so it stays behind the finished ones, the rest of the search
    would change nothing.
    """
    if step >= sentence.limit or best_open == -np.inf:
        return False
    if len(sentence.finished) < settings.nbest:
        return True
    last_returned = sorted((each.score for each in sentence.finished), reverse=True)[
        settings.nbest - 1
    ]
    return normalised(best_open, sentence.limit, settings.length_penalty) >= last_returned


def _ranked(sentence: _Sentence, nbest: int) -> list[Hypothesis]:
    """The hypotheses to return: finished before open, by score, then by word index."""
    hypotheses = [*sentence.finished, *sentence.open]
    hypotheses.sort(key=lambda each: (not each.finished, -each.score, each.tokens))
    return hypotheses[:nbest]
