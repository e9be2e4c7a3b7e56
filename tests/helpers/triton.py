"""Where tests of Triton's kernels run: in its interpreter on a CPU, or on a GPU.

Importing this skips the module that does so where Triton is not installed. The interpreter is chosen
by `tests/conftest.py`, before Triton is imported for the first time.
"""

import contextlib

import pytest
import torch

from tests.layers.nets import ON_GPU

pytest.importorskip("triton", reason="Triton is not installed")

from triton.runtime import interpreter  # isort: split

replaced = set()


def replace_once(function):
    """Replaces the functions of `triton.language` in a module, which the interpreter does at every call."""
    if function.__module__ not in replaced:
        replaced.add(function.__module__)
        replace(function)
    return nothing


with contextlib.suppress(AttributeError):  # names of the interpreter that Triton may change
    # These checks, which a compiled kernel does not make, and the replacing take three quarters of the time.
    interpreter.interpreter_builder.options = interpreter.InterpreterOptions(
        sanitize_overflow=False
    )
    nothing = interpreter._LangPatchScope()  # to restore after a launch
    replace, interpreter._patch_lang = interpreter._patch_lang, replace_once

DEVICES = [
    pytest.param(
        "cpu",
        marks=pytest.mark.skipif(torch.cuda.is_available(), reason="the kernels run on the GPU"),
    ),
    ON_GPU,
]
