"""The devices for tests of Triton kernels: Triton's interpreter on the CPU, or a GPU.

A test module that imports this module is skipped if Triton is not installed. `tests/conftest.py`
chooses the interpreter before Triton is first imported.
"""

import pytest
import torch

from tests.layers.nets import ON_GPU

pytest.importorskip("triton", reason="Triton is not installed")

from triton.runtime import interpreter  # isort: split

# Turns off overflow checks, which compiled kernels do not have, and which would take a tenth of the time.
interpreter.interpreter_builder.options = interpreter.InterpreterOptions(sanitize_overflow=False)

DEVICES = [
    pytest.param(
        "cpu",
        marks=pytest.mark.skipif(torch.cuda.is_available(), reason="the kernels run on the GPU"),
    ),
    ON_GPU,
]
