"""Ensembles: the probability of a word is the mean of the members' probabilities.

B batch, K hypotheses a sentence, S source length, T target length, M members, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor, nn

from nmt.data.batch import Batch
from nmt.layers import TeacherForced
from nmt.models.base import Decoded, Translator


class _Parts(tuple[Any, ...]):
    """A tuple with one item per member: memories, states, or outputs of attention."""

    def select(self, rows: Tensor) -> _Parts:
        return _Parts(part.select(rows) for part in self)

    def reorder(self, parents: Tensor) -> _Parts:
        return _Parts(part.reorder(parents) for part in self)


class _Decoders:
    """The members' decoders, step by step side by side."""

    def __init__(self, members: Sequence[Translator]) -> None:
        self._decoders = [member.decoder for member in members]

    def precompute(self, memory: _Parts) -> _Parts:
        return _Parts(
            d.precompute(part) if hasattr(d, "precompute") else part
            for d, part in zip(self._decoders, memory, strict=True)
        )

    def initial(self, memory: _Parts) -> _Parts:
        return _Parts(d.initial(part) for d, part in zip(self._decoders, memory, strict=True))

    def step(self, state: _Parts, memory: _Parts) -> tuple[_Parts, _Parts]:
        rows = zip(self._decoders, state, memory, strict=True)
        readouts, attended = zip(*(d.step(*parts) for d, *parts in rows), strict=True)
        return _Parts(readouts), _Parts(attended)

    def advance(self, state: _Parts, attended: _Parts, word: Tensor) -> _Parts:
        rows = zip(self._decoders, state, attended, strict=True)
        return _Parts(d.advance(part, output, word) for d, part, output in rows)


class _Outputs:
    """The members' distributions over words, averaged."""

    def __init__(self, members: Sequence[Translator]) -> None:
        self._outputs = [member.output for member in members]

    def logits(self, readouts: _Parts) -> Tensor:
        """log of the mean probability (..., V): normalised already."""
        rows = zip(self._outputs, readouts, strict=True)
        return _log_mean([o.logits(readout).float().log_softmax(-1) for o, readout in rows])


class Ensemble(pl.LightningModule):
    """p(y_i | y_<i, x) = 1/M Σ_m p_m(y_i | y_<i, x), for searches and for given translations.

    The members share their vocabularies, and nothing else has to be alike. Weights of attention,
    and log-normalisers, are means over the members that have attention; e_ij = log α_ij + log Z_i
    is then no member's energy.

    Raises ValueError where there is no member, or the sizes of their vocabularies differ.
    """

    def __init__(self, members: Sequence[Translator]) -> None:
        super().__init__()
        if len({(member.source_size, member.target_size) for member in members}) != 1:
            raise ValueError("an ensemble needs members, all with the same vocabularies")
        self._members = list(members)
        self.members = nn.ModuleList(members)
        self.decoder = _Decoders(members)
        self.output = _Outputs(members)

    @property
    def attends(self) -> bool:
        """Whether some member has attention."""
        return any(member.attends for member in self._members)

    def encode(self, source: Tensor, mask: Tensor) -> _Parts:
        """Source ids (B, S) and mask (B, S) to what each member's decoder attends to."""
        return _Parts(member.encode(source, mask) for member in self._members)

    def forward(self, batch: Batch) -> Decoded:
        """As `Translator.forward`; the readouts are those of each member."""
        decoded = [member(batch) for member in self._members]
        nll = -_log_mean([-each.nll for each in decoded])
        forced = [each.teacher_forced for each in decoded]
        return Decoded(
            nll,
            TeacherForced(
                _Parts(each.readout for each in forced),  # type: ignore[arg-type]
                _mean([each.weights for each in forced]),
                _mean([each.log_normaliser for each in forced]),
            ),
        )


def _log_mean(log_probabilities: Sequence[Tensor]) -> Tensor:
    """log of the mean of probabilities that are given as logarithms."""
    return torch.stack(list(log_probabilities)).logsumexp(0) - math.log(len(log_probabilities))


def _mean(tensors: Sequence[Tensor | None]) -> Tensor | None:
    """The mean of the items that are not None."""
    known = [tensor.float() for tensor in tensors if tensor is not None]
    return torch.stack(known).mean(0) if known else None
