"""Where tests of Triton's kernels run: in its interpreter on a CPU, or on a GPU.

Importing this skips the module that does so where Triton is not installed. The interpreter is chosen
by `tests/conftest.py`, before Triton is imported for the first time.
"""

import pytest
import torch

from tests.layers.nets import ON_GPU

pytest.importorskip("triton", reason="Triton is not installed")

DEVICES = [
    pytest.param(
        "cpu",
        marks=pytest.mark.skipif(torch.cuda.is_available(), reason="the kernels run on the GPU"),
    ),
    ON_GPU,
]
