"""The dtype of matrix products (`compute_dtype`), and of states, gates and softmax (`accumulate_dtype`)."""

from __future__ import annotations

import torch
from torch import Tensor


def compute_dtype(parameter: Tensor) -> torch.dtype:
    """Returns the dtype of autocast if autocast is on, otherwise the dtype of the parameter."""
    device = parameter.device.type
    if torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return parameter.dtype


def accumulate_dtype(dtype: torch.dtype) -> torch.dtype:
    """Returns `dtype`, but float32 for 16-bit dtypes, because they are too coarse for long sums."""
    return torch.promote_types(dtype, torch.float32)
