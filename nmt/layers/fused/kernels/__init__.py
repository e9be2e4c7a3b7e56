"""`nmt.layers.fused.steps` as Triton kernels: two for attention each way, two for the gates.

Importing this package imports Triton. With TRITON_INTERPRET=1 set before that, the kernels work on
CPU tensors, which is how they are tested without a GPU.
"""

from nmt.layers.fused.kernels.attention import attention_steps
from nmt.layers.fused.kernels.gates import (
    candidate_backward,
    next_state,
    open_gates,
    reset_backward,
)

__all__ = ["attention_steps", "candidate_backward", "next_state", "open_gates", "reset_backward"]
