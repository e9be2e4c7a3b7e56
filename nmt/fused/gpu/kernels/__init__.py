"""The functions of `nmt.fused.steps` as Triton kernels.

Triton runs many instances of a kernel in parallel, and calls each instance a program.

Importing this package imports Triton. If TRITON_INTERPRET=1 is set before the import, the kernels work
on CPU tensors. Tests use this on machines without a GPU.
"""

from nmt.fused.gpu.kernels import attention as attention
from nmt.fused.gpu.kernels.gates import candidate_backward as candidate_backward
from nmt.fused.gpu.kernels.gates import compute_gates as compute_gates
from nmt.fused.gpu.kernels.gates import next_state as next_state
from nmt.fused.gpu.kernels.gates import reset_backward as reset_backward
from nmt.fused.gpu.kernels.likelihood import word_nll as word_nll

attention_steps = attention.AttentionSteps
