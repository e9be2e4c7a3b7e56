"""The same functions as `nmt.layers`, several times faster: a backward pass over whole sentences.

`fuse(network)` puts them into a network. `nmt.fused.gpu` has what a GPU needs besides.
"""

from nmt.fused.fuse import fuse, is_fused, plain_class

__all__ = ["fuse", "is_fused", "plain_class"]
