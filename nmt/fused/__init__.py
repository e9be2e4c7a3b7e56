"""Faster versions of `nmt.layers` with a custom backward pass.

`fuse(network)` replaces the layers of a network by these versions. `nmt.fused.gpu` has the code for
GPUs.
"""

from nmt.fused.fuse import backend_of, fuse, is_fused, plain_class

__all__ = ["backend_of", "fuse", "is_fused", "plain_class"]
