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


def speed_up():
    """Takes two things off Triton's interpreter in which three quarters of its time go.

    Checks of integers for overflow, which a compiled kernel does not have, either; and the
    replacement of the functions of `triton.language` at every launch and at every call of a function
    by a kernel, once per module that uses them instead.
    """
    interpreter.interpreter_builder.options = interpreter.InterpreterOptions(
        sanitize_overflow=False
    )
    replace = interpreter._patch_lang
    replaced = set()
    nothing = interpreter._LangPatchScope()

    def replace_once(function):
        if function.__module__ not in replaced:
            replaced.add(function.__module__)
            replace(function)
        return nothing  # to restore after a launch

    interpreter._patch_lang = replace_once


with contextlib.suppress(AttributeError):  # names of the interpreter that Triton may change
    speed_up()

DEVICES = [
    pytest.param(
        "cpu",
        marks=pytest.mark.skipif(torch.cuda.is_available(), reason="the kernels run on the GPU"),
    ),
    ON_GPU,
]
