"""`nmt.fused.steps` as Triton kernels: attention, the gates, and the likelihood of words.

Importing this package imports Triton. With TRITON_INTERPRET=1 set before that, the kernels work on
CPU tensors, which is how they are tested without a GPU.
"""

from nmt.fused.gpu.kernels.attention import additive_scores as additive_scores
from nmt.fused.gpu.kernels.attention import attention_steps as attention_steps
from nmt.fused.gpu.kernels.gates import candidate_backward as candidate_backward
from nmt.fused.gpu.kernels.gates import next_state as next_state
from nmt.fused.gpu.kernels.gates import open_gates as open_gates
from nmt.fused.gpu.kernels.gates import reset_backward as reset_backward
from nmt.fused.gpu.kernels.likelihood import logits_memory as logits_memory
from nmt.fused.gpu.kernels.likelihood import operand as operand
from nmt.fused.gpu.kernels.likelihood import word_nll as word_nll
from nmt.fused.likelihood import accumulate_columns as accumulate_columns
from nmt.fused.likelihood import accumulate_product as accumulate_product
