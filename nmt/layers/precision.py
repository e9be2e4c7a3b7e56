"""The data types of matrix products, and of states, gates and softmax."""

from __future__ import annotations

import torch
from torch import Tensor


def compute_dtype(parameter: Tensor) -> torch.dtype:
    """Returns the dtype of autocast if it is on, else the dtype of the parameter."""
    device = parameter.device.type
    if torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return parameter.dtype


def accumulate_dtype(dtype: torch.dtype) -> torch.dtype:
    """Returns float32 for 16-bit dtypes, which are too coarse for long sums; otherwise `dtype`."""
    return torch.promote_types(dtype, torch.float32)
