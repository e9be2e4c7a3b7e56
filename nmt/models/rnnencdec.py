"""RNNencdec: the source sentence as one fixed vector (section 2.1; Cho et al., 2014)."""

from __future__ import annotations

from typing import Any

from nmt.layers import Encoder, FixedContext, ForwardEncoder
from nmt.models.base import Translator
from nmt.models.parts import chosen_class
from nmt.utils.errors import InputError


class RNNencdec(Translator):
    """Every target word is written from the same context c_i = →h_Tx."""

    def make_encoder(self, *sizes: int, **options: Any) -> Encoder:
        encoder = chosen_class(self.model, "encoder", Encoder, ForwardEncoder)
        if not issubclass(encoder, ForwardEncoder):
            raise InputError(
                f"encoder={encoder.__name__}: the fixed vector of RNNencdec is the last state of a "
                "forward encoder; take encoder=forward"
            )
        return encoder(*sizes, **options)

    def make_context(self, annotation: int) -> FixedContext:
        return FixedContext(annotation)
