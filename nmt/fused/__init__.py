"""Faster versions of `nmt.layers` with a custom backward pass.

`fuse(network)` puts them into a network. `nmt.fused.gpu` holds what only a GPU needs.
"""

from nmt.fused.fuse import backend_of, fuse, is_fused, plain_class

__all__ = ["backend_of", "fuse", "is_fused", "plain_class"]
