"""The additive score without a gradient, as a search needs it."""

from __future__ import annotations

import torch
from torch import Tensor

from nmt.fused.gpu import backend
from nmt.layers import Additive


class FusedAdditive(Additive):
    """See `nmt.layers.Additive`; without gradients nothing of size B x K x S x N is kept."""

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            return super().forward(query, keys)
        with torch.autocast(query.device.type, enabled=False):
            scores: Tensor = backend.steps_for(query, keys).additive_scores(query, keys, self.v)
            return scores
