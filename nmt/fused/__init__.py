"""Faster versions of `nmt.layers` with a custom backward pass.

`fuse(network)` puts them into a network. `nmt.fused.gpu` holds what only a GPU needs.
"""

from nmt.fused.fuse import fuse, is_fused, plain_class

__all__ = ["fuse", "is_fused", "plain_class"]
