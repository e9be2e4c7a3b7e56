"""Ensembles: the probability of a word is the mean of the members' probabilities.

Sizes: B batch, K hypotheses per sentence, T target length, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from nmt.layers import Likelihood, Network

Parts = tuple[Any, ...]  # one memory, state or attention output per member


class Ensemble(nn.Module):
    """p(y_i | y_<i, x) = 1/M Σ_m p_m(y_i | y_<i, x) for M members, with the interface of a `Network`.

    The members must have the same vocabularies. Everything else may differ. Attention weights and
    log-normalisers are means over the members that have attention. So log α_ij + log Z_i is not the
    attention score e_ij of any member.
    """

    def __init__(self, members: Sequence[Network]) -> None:
        super().__init__()
        self.networks = list(members)
        self.members = nn.ModuleList(members)

    @property
    def attends(self) -> bool:
        """Whether at least one member has attention."""
        return any(member.attends for member in self.networks)

    @property
    def device(self) -> torch.device:
        return self.networks[0].device

    def begin(self, source: Tensor, mask: Tensor) -> tuple[Parts, Parts]:
        memories, states = zip(*(m.begin(source, mask) for m in self.networks), strict=True)
        return memories, states

    def step(self, state: Parts, memory: Parts) -> tuple[Tensor, Parts]:
        """Returns the log of the mean probabilities (B, K, V), and the attention outputs of the members."""
        parts = zip(self.networks, state, memory, strict=True)
        logits, attended = zip(*(m.step(*own) for m, *own in parts), strict=True)
        return mean_log_probability(logits), attended

    def advance(self, state: Parts, attended: Parts, word: Tensor) -> Parts:
        parts = zip(self.networks, state, attended, strict=True)
        return tuple(member.advance(s, a, word) for member, s, a in parts)

    def logits(self, readouts: Parts) -> Tensor:
        """Returns the log of the mean probabilities (B, T, V) for the readouts of a `Likelihood`."""
        parts = zip(self.networks, readouts, strict=True)
        return mean_log_probability(member.logits(readout) for member, readout in parts)

    def forward(self, *words: Tensor) -> Likelihood:
        """Returns the same as `Network.forward`, but `readout` is a tuple with one item per member."""
        members = [member(*words) for member in self.networks]
        log_p = torch.stack([-each.nll for each in members]).logsumexp(0) - math.log(len(members))
        return Likelihood(
            -log_p,
            tuple(each.readout for each in members),  # type: ignore[arg-type]
            _mean([each.weights for each in members]),
            _mean([each.log_normaliser for each in members]),
        )


def mean_log_probability(logits: Iterable[Tensor]) -> Tensor:
    """Returns the log of the mean probabilities (..., V), given the logits of each member."""
    members = [each.float().log_softmax(-1) for each in logits]
    return torch.stack(members).logsumexp(0) - math.log(len(members))


def _mean(tensors: Sequence[Tensor | None]) -> Tensor | None:
    """Returns the mean of the tensors that are not None, or None if there are no such tensors."""
    known = [tensor.float() for tensor in tensors if tensor is not None]
    return torch.stack(known).mean(0) if known else None
