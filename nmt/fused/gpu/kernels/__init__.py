"""`nmt.fused.steps` as Triton kernels: attention, the gates, and the likelihood of words.

Importing this package imports Triton. With TRITON_INTERPRET=1 set before that, the kernels work on
CPU tensors, which is how they are tested without a GPU.
"""

from nmt.fused.gpu.kernels.attention import additive_scores, attention_steps
from nmt.fused.gpu.kernels.gates import (
    candidate_backward,
    next_state,
    open_gates,
    reset_backward,
)
from nmt.fused.gpu.kernels.likelihood import (
    accumulate_columns,
    accumulate_product,
    logits_memory,
    operand,
    word_nll,
)

__all__ = [
    "accumulate_columns",
    "accumulate_product",
    "additive_scores",
    "attention_steps",
    "candidate_backward",
    "logits_memory",
    "next_state",
    "open_gates",
    "operand",
    "reset_backward",
    "word_nll",
]
