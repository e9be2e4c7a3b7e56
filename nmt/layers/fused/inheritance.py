"""Whether a faster method of a module was written for its `forward`."""

from __future__ import annotations

from torch import nn


def fits_forward(module: nn.Module, method: str) -> bool:
    """Whether a module has `method`, from the class that gives its `forward` or one derived from it.

    A subclass that overrides `forward` alone inherits the faster way of another function.
    """
    for owner in type(module).__mro__:
        if method in vars(owner):
            return callable(getattr(module, method))
        if "forward" in vars(owner):
            return False
    return False
