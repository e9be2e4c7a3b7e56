"""The paper's two models as Lightning modules."""

from nmt.models.base import Translator
from nmt.models.build import build_model
from nmt.models.rnnencdec import RNNencdec
from nmt.models.rnnsearch import RNNsearch

__all__ = ["RNNencdec", "RNNsearch", "Translator", "build_model"]
