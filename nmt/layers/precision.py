"""Data types: of matrix products, and of states, gates and softmax."""

from __future__ import annotations

import torch
from torch import Tensor


def compute_dtype(parameter: Tensor) -> torch.dtype:
    """The type of autocast where it is on, else the parameter's own."""
    device = parameter.device.type
    if torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return parameter.dtype


def accumulate_dtype(dtype: torch.dtype) -> torch.dtype:
    """At least float32: sums over many steps lose too much in 16 bits."""
    return torch.promote_types(dtype, torch.float32)
