"""The models of the paper as LightningModules, and functions that build their networks.

Only the classes `RNNsearch`, `RNNencdec` and `Translator` import Lightning. `nmt.models.networks` and
`nmt.models.ensemble` build networks for translation without Lightning.
"""

from typing import TYPE_CHECKING, Any

from nmt.models.networks import build_model, build_network

if TYPE_CHECKING:
    from nmt.models.base import RNNencdec, RNNsearch, Translator

__all__ = ["RNNencdec", "RNNsearch", "Translator", "build_model", "build_network"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from nmt.models import base

    return getattr(base, name)
