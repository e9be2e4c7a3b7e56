"""Where tests of Triton's kernels run: in its interpreter on a CPU, or on a GPU.

Importing this skips the module that does so where Triton is not installed. The interpreter is chosen
by `tests/conftest.py`, before Triton is imported for the first time.
"""

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed")

DEVICES = [
    pytest.param(
        "cpu",
        marks=pytest.mark.skipif(torch.cuda.is_available(), reason="the kernels run on the GPU"),
    ),
    pytest.param(
        "cuda",
        marks=[
            pytest.mark.gpu,
            pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
        ],
    ),
]
