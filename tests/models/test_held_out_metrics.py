"""Metrics of a validation, compared with NumPy."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from nmt.models.held_out_metrics import _attention_sums


def test_attention_metrics_exclude_padding():
    sources, targets = [4, 2, 7], [3, 5, 1]  # lengths, with </s>
    weights, expected = np.zeros((3, 5, 7)), np.zeros(4)
    draw = np.random.default_rng(1)
    for each, length, steps in zip(weights, sources, targets, strict=True):
        each[:steps, :length] = own = draw.dirichlet(np.ones(length), steps)
        expected += steps, own[:, -1].sum(), own[:, -2].sum(), -(own * np.log(own)).sum()
    masks = [torch.arange(max(n)) < torch.tensor(n)[:, None] for n in (sources, targets)]
    batch: Any = SimpleNamespace(source_mask=masks[0], target_mask=masks[1])
    sums = _attention_sums(torch.from_numpy(weights), batch)
    np.testing.assert_allclose(np.array([float(each) for each in sums]), expected)
