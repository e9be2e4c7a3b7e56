"""Beam search for a batch of sentences (section 4.2 of the paper).

Array shapes: B unfinished sentences, K slots for the hypotheses of each sentence, S source length, V vocabulary size.

The model runs on the device. NumPy arrays on the host contain the words and log-probabilities of the
hypotheses. In each step, the host waits for one copy from the device, and starts a few copies to the device
without waiting. The annotations of a sentence are stored once for all of its hypotheses. Finished sentences
are removed from the batch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from nmt.config.schema import SearchConfig
from nmt.layers import reorder, select
from nmt.search.candidates import NOT_NUMBERS, best_continuations, take
from nmt.text.symbols import END, UNKNOWN
from nmt.utils.devices import queued
from nmt.utils.errors import RunError


@dataclass(frozen=True)
class Hypothesis:
    """One translation of a sentence.

    Attributes:
        tokens: word ids; the last is `END` if and only if `finished`.
        log_probability: the sum of log p(y_i | y_<i, x), in nats.
        finished: whether the hypothesis ends with `</s>`.
    """

    tokens: list[int]
    log_probability: float
    finished: bool


class Searchable(Protocol):
    """The methods of a model that beam search calls; `nmt.layers.Network` implements them."""

    def begin(self, source: Tensor, mask: Tensor) -> tuple[Any, Any]:
        """Returns the encoded sentences and the initial state, given sentences (B, S) and a mask (B, S)."""

    def step(self, state: Any, memory: Any) -> tuple[Tensor, Any]:
        """Returns the logits (B, K, V) of the next word and the attention output of this step."""

    def advance(self, state: Any, attended: Any, word: Tensor) -> Any:
        """Returns the state after `word` (B, K), the last word of each hypothesis."""


@dataclass
class _Sentence:
    """The limits and results of the search for one sentence."""

    limit: int  # maximum number of symbols, including </s>
    minimum: int  # minimum number of words before </s>
    finished: list[Hypothesis] = field(default_factory=list)
    open: list[Hypothesis] = field(default_factory=list)  # unfinished when the search stopped


@contextlib.contextmanager
def _autocast_cache() -> Iterator[None]:
    """Enables the weight cache of autocast, so that weights are cast once per search, not once per step.

    Inference mode and Lightning's autocast disable this cache.
    """
    was_enabled = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(True)
    try:
        with torch.inference_mode(False), torch.no_grad():
            yield
    finally:
        torch.set_autocast_cache_enabled(was_enabled)


@_autocast_cache()
def beam_search(
    model: Searchable,
    source: Tensor,
    mask: Tensor,
    settings: SearchConfig,
    forbid_unknown: bool = False,
) -> list[list[Hypothesis]]:
    """Translates a batch of sentences by beam search; `beam_size=1` is greedy search.

    Each step keeps the best continuations of the hypotheses of a sentence, up to the beam width. A finished
    hypothesis is removed from the beam, and the beam width decreases by one. The search for a sentence ends
    when its beam is empty, after max_ratio * T_x steps, or when no open (unfinished) hypothesis can become
    one of the `nbest` best. T_x is the number of source symbols, including `</s>`.

    Hypotheses are ranked by their score, log-probability / length^length_penalty. The length is the number of
    target symbols, including `</s>`. Open hypotheses are ranked after all finished ones. Among
    hypotheses with equal scores, those with lower word ids come first.

    Args:
        model: a model in evaluation mode.
        source: (B, S) int64 ids. Each sentence ends with `</s>`.
        mask: (B, S) bool, False at padding.
        settings: beam_size, nbest, max_ratio, min_ratio and length_penalty are used. `</s>` is forbidden
            in the first floor(min_ratio * T_x) steps.
        forbid_unknown: whether to forbid `<unk>`. The probabilities of other words do not change.

    Returns:
        Up to `nbest` hypotheses for each sentence, best first.

    Raises:
        RunError: if a probability of the model is NaN, or if all words of a sentence have probability 0.
    """
    lengths = mask.sum(1).tolist()
    limits = [max(1, _floor(settings.max_ratio * n)) for n in lengths]
    sentences = [  # the minimum is below the limit, so that </s> is allowed at the last step
        _Sentence(limit, min(_floor(settings.min_ratio * n), limit - 1))
        for limit, n in zip(limits, lengths, strict=True)
    ]
    if not sentences:
        return []
    unfinished = sentences
    written = np.empty((len(sentences), 1, 0), np.int32)  # (B, K, steps) words of each hypothesis
    totals = np.zeros((len(sentences), 1))  # (B, K) summed log-probabilities; -inf in empty slots
    memory, state = model.begin(source, mask)
    for step in range(1, max(sentence.limit for sentence in sentences) + 1):
        logits, attended = model.step(state, memory)
        widths = np.array([settings.beam_size - len(each.finished) for each in unfinished])
        forbidden = {END: np.array([step <= each.minimum for each in unfinished])}
        if forbid_unknown:
            forbidden[UNKNOWN] = np.ones(len(unfinished), bool)
        forbidden = {word: where for word, where in forbidden.items() if where.any()}
        chosen = best_continuations(logits, totals, widths, forbidden)

        words, totals = chosen.words, chosen.totals
        written = take(written, chosen.parents)
        written = np.concatenate([written, words[:, :, None].astype(np.int32)], 2)
        ended = (words == END) & (totals > -np.inf)
        for i, slot in np.argwhere(ended):
            total = float(totals[i, slot])
            unfinished[i].finished.append(Hypothesis(written[i, slot].tolist(), total, True))
        totals[ended] = -np.inf

        with_best = zip(unfinished, totals.max(1).tolist(), strict=True)
        active = np.array([_continues(each, step, best, settings) for each, best in with_best])
        for i in np.flatnonzero(~active):
            for slot in np.flatnonzero(totals[i] > -np.inf):
                total = float(totals[i, slot])
                unfinished[i].open.append(Hypothesis(written[i, slot].tolist(), total, False))
        if not active.any():
            break
        staying = np.flatnonzero(active)
        slots = _open_slots(totals[active])  # (B', K')
        written, totals, words = (take(each[active], slots) for each in (written, totals, words))
        # indices, in the flattened (B, K) batch, of the hypotheses that were extended
        parents = staying[:, None] * logits.shape[1] + take(chosen.parents[active], slots)
        unfinished = [unfinished[i] for i in staying]
        index = queued(torch.from_numpy(np.stack([parents, words])), source.device)
        if not active.all():
            memory = select(memory, queued(torch.from_numpy(staying), source.device))
        state = model.advance(*reorder((state, attended), index[0]), index[1])
    lists = [_ranked(sentence, settings) for sentence in sentences]
    if not all(lists):
        raise RunError(NOT_NUMBERS)
    return lists


def normalised(log_probability: float, length: int, length_penalty: float) -> float:
    """Returns the score of a hypothesis; `length` includes `</s>`."""
    return log_probability / length**length_penalty


def _rank(hypothesis: Hypothesis, settings: SearchConfig) -> float:
    length = len(hypothesis.tokens)
    return normalised(hypothesis.log_probability, length, settings.length_penalty)


def _floor(steps: float) -> int:
    """Rounds down, but tolerates rounding errors such as 0.29 * 100 == 28.999999999999996."""
    return int(steps + 1e-9)


def _open_slots(totals: np.ndarray) -> np.ndarray:
    """Returns the slots (B, K') of the open hypotheses of each sentence, ascending, padded with empty slots."""
    is_open = totals > -np.inf
    return np.argsort(~is_open, axis=1, kind="stable")[:, : is_open.sum(1).max()]


def _continues(sentence: _Sentence, step: int, best_open: float, settings: SearchConfig) -> bool:
    """Whether another step can change the result for a sentence.

    More words can only decrease the log-probability of the best open hypothesis. Its final score is therefore at
    most log-probability / limit^length_penalty. The search can stop if this bound is below the scores of the
    `nbest` best finished hypotheses.
    """
    if step >= sentence.limit or best_open == -np.inf:
        return False
    if len(sentence.finished) < settings.nbest:
        return True
    ranks = sorted((_rank(each, settings) for each in sentence.finished), reverse=True)
    best_possible = normalised(best_open, sentence.limit, settings.length_penalty)
    return best_possible >= ranks[settings.nbest - 1]


def _ranked(sentence: _Sentence, settings: SearchConfig) -> list[Hypothesis]:
    """Returns the `nbest` best hypotheses, finished ones first, sorted by score, then by word ids."""
    hypotheses = [*sentence.finished, *sentence.open]
    hypotheses.sort(key=lambda each: (not each.finished, -_rank(each, settings), each.tokens))
    return hypotheses[: settings.nbest]
