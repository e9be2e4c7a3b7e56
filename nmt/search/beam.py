"""Beam search for a batch of sentences (section 4.2 of the paper).

B batch (unfinished sentences), K hypotheses per sentence, S source length, V vocabulary size.

The device runs the model. On the host, NumPy arrays hold the totals, beam widths and parents of
hypotheses. Each step waits for one copy from the device, and queues a few copies to the device. All K
hypotheses of a sentence share one copy of the annotations. Finished sentences leave the batch.
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
from nmt.search.candidates import best_continuations, take
from nmt.text.symbols import END, UNKNOWN
from nmt.utils.devices import queued


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
    """The methods of a model that beam search calls: see `nmt.layers.Network`."""

    def begin(self, source: Tensor, mask: Tensor) -> tuple[Any, Any]:
        """Returns memory and first state for sentences (B, S) and mask (B, S)."""

    def step(self, state: Any, memory: Any) -> tuple[Tensor, Any]:
        """Returns logits (B, K, V) and attention."""

    def advance(self, state: Any, attended: Any, word: Tensor) -> Any:
        """Returns the state after `word` (B, K)."""


@dataclass
class _Sentence:
    """The bookkeeping of one sentence."""

    limit: int  # maximum number of symbols, with </s>
    minimum: int  # minimum number of words before </s>
    finished: list[Hypothesis] = field(default_factory=list)
    open: list[Hypothesis] = field(default_factory=list)  # unfinished when the search stopped


@contextlib.contextmanager
def _autocast_cache() -> Iterator[None]:
    """Lets autocast cast each weight once per search instead of once per step.

    Inference mode and Lightning's autocast turn autocast's cache of cast weights off.
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

    Each step keeps the best continuations of a sentence's hypotheses, as many as the beam is wide.
    A finished hypothesis leaves the beam, which shrinks by one. The search of a sentence ends when
    its beam is empty, after max_ratio * T_x steps, or as soon as no open hypothesis can still be among
    the `nbest` best. T_x counts the source symbols, with `</s>`. Hypotheses are ranked by the sum of
    log-probabilities / length^length_penalty, where length counts the written symbols, with `</s>`.
    Open (unfinished) hypotheses come after all finished ones. Ties go to the lower word index.

    Args:
        model: in evaluation mode.
        source: (B, S) int64 ids, each sentence ending with `</s>`.
        mask: (B, S) bool, True on real positions.
        settings: uses beam_size, nbest, max_ratio, min_ratio (no `</s>` before
            floor(min_ratio * T_x) symbols) and length_penalty.
        forbid_unknown: whether never to write `<unk>`. Other words keep their probabilities.

    Returns:
        For each sentence up to `nbest` hypotheses, best first.

    Raises:
        RunError: if a probability of the model is NaN.
    """
    lengths = mask.sum(1).tolist()
    limits = [max(1, _floor(settings.max_ratio * n)) for n in lengths]
    sentences = [  # </s> is always allowed at the last step
        _Sentence(limit, min(_floor(settings.min_ratio * n), limit - 1))
        for limit, n in zip(limits, lengths, strict=True)
    ]
    if not sentences:
        return []
    unfinished = sentences
    written = np.empty((len(sentences), 1, 0), np.int32)  # (B, K, steps) words of each hypothesis
    totals = np.zeros((len(sentences), 1))  # (B, K) summed log-probabilities; -inf: no hypothesis
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
        # index of each hypothesis's parent in the flattened (B, K) batch
        parents = staying[:, None] * logits.shape[1] + take(chosen.parents[active], slots)
        unfinished = [unfinished[i] for i in staying]
        index = queued(torch.from_numpy(np.stack([parents, words])), source.device)
        if not active.all():
            memory = select(memory, queued(torch.from_numpy(staying), source.device))
        state = model.advance(*reorder((state, attended), index[0]), index[1])
    return [_ranked(sentence, settings) for sentence in sentences]


def normalised(log_probability: float, length: int, length_penalty: float) -> float:
    """Returns the rank log-probability / length^length_penalty, where `length` includes `</s>`."""
    return log_probability / length**length_penalty


def _rank(hypothesis: Hypothesis, settings: SearchConfig) -> float:
    length = len(hypothesis.tokens)
    return normalised(hypothesis.log_probability, length, settings.length_penalty)


def _floor(steps: float) -> int:
    """Rounds down, but tolerates rounding errors: 0.29 * 100 is 28.999999999999996 in Python."""
    return int(steps + 1e-9)


def _open_slots(totals: np.ndarray) -> np.ndarray:
    """Returns the slots (B, K') of each row's open hypotheses, ascending, padded with other slots."""
    is_open = totals > -np.inf
    return np.argsort(~is_open, axis=1, kind="stable")[:, : is_open.sum(1).max()]


def _continues(sentence: _Sentence, step: int, best_open: float, settings: SearchConfig) -> bool:
    """Whether another step can change the hypotheses to return for a sentence.

    An open hypothesis loses probability with every word, and gains most from the division by
    length^length_penalty at the last step. If even this best possible rank is below the ranks of the
    `nbest` best finished hypotheses, the search can stop.
    """
    if step >= sentence.limit or best_open == -np.inf:
        return False
    if len(sentence.finished) < settings.nbest:
        return True
    ranks = sorted((_rank(each, settings) for each in sentence.finished), reverse=True)
    best_possible = normalised(best_open, sentence.limit, settings.length_penalty)
    return best_possible >= ranks[settings.nbest - 1]


def _ranked(sentence: _Sentence, settings: SearchConfig) -> list[Hypothesis]:
    """Returns the best `nbest` hypotheses: finished before open, by rank, then by word index."""
    hypotheses = [*sentence.finished, *sentence.open]
    hypotheses.sort(key=lambda each: (not each.finished, -_rank(each, settings), each.tokens))
    return hypotheses[: settings.nbest]
