"""The devices for tests of Triton kernels: Triton's interpreter on the CPU, or a GPU.

A test module that imports this module is skipped if Triton is not installed. `tests/conftest.py`
chooses the interpreter before Triton is first imported.
"""

import contextlib

import pytest
import torch

from tests.layers.nets import ON_GPU

pytest.importorskip("triton", reason="Triton is not installed")

from triton.runtime import interpreter  # isort: split

replaced = set()


def replace_once(function):
    """Replaces the functions of `triton.language` once per module; Triton would replace them at every call."""
    if function.__module__ not in replaced:
        replaced.add(function.__module__)
        replace(function)
    return nothing


with contextlib.suppress(AttributeError):  # Triton may rename these internals
    # Replacing functions and checking for overflow (compiled kernels do not) take 3/4 of the time.
    interpreter.interpreter_builder.options = interpreter.InterpreterOptions(
        sanitize_overflow=False
    )
    nothing = interpreter._LangPatchScope()  # restores nothing after a launch
    replace, interpreter._patch_lang = interpreter._patch_lang, replace_once

DEVICES = [
    pytest.param(
        "cpu",
        marks=pytest.mark.skipif(torch.cuda.is_available(), reason="the kernels run on the GPU"),
    ),
    ON_GPU,
]
