"""Compiles the Triton kernels of the fused networks, without a GPU.

The fused functions run at paper sizes, on tensors without memory (PyTorch's device `meta`). They launch
Triton kernels instead of PyTorch operations. Here, a launch only compiles its kernel. The tests in
tests/fused/gpu check the results of the kernels in Triton's interpreter.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from benchmarks.gpu.setting import Findings, Setting
from benchmarks.work import Line, print_line
from nmt.fused.loop import AttentionInputs, run_backward, run_forward
from nmt.fused.output import chunked_nll
from nmt.layers import Additive, Dot, ScaledDot

LENGTHS = (8, 16, 32, 52, 200)  # source lengths
BATCH, TARGET = 80, 3  # the target is short, since all decoder steps launch the same kernels
HIDDEN, ANNOTATION, ALIGNMENT, MAXOUT = 1000, 2000, 1000, 500
VOCABULARY = 30002


def pointer(tensor: Any) -> Any:
    """Returns a stand-in for a tensor: its dtype and an address, aligned like GPU memory (512 bytes)."""
    start = 512 + tensor.storage_offset() * tensor.element_size()
    return SimpleNamespace(dtype=tensor.dtype, data_ptr=lambda: start)


def gpu_target(name: str) -> Any:
    """Converts a name such as `sm_90` or `gfx942` to Triton's target."""
    from triton.backends.compiler import GPUTarget

    if name.startswith("gfx"):
        return GPUTarget("hip", name, 64)
    return GPUTarget("cuda", int(name.removeprefix("sm_")), 32)


@contextmanager
def compiled_launches(target: Any, found: dict[str, Any], failed: dict[str, str]) -> Iterator[None]:
    """Makes a launch only compile its kernel; fills `found` (kernels by hash) and `failed` (errors by name)."""
    from triton.runtime.driver import driver
    from triton.runtime.jit import JITFunction

    launch = JITFunction.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        args = tuple(pointer(x) if isinstance(x, Tensor) else x for x in args)
        try:
            kernel = launch(self, *args, grid=grid, warmup=True, **options)
        except Exception as error:  # the compiler can raise almost any exception
            failed.setdefault(self.fn.__name__, f"{type(error).__name__}: {error}")
            return None
        found.setdefault(kernel.hash, kernel)
        return kernel

    driver.set_active(
        SimpleNamespace(
            get_current_target=lambda: target,
            get_current_device=lambda: 0,
            get_current_stream=lambda device: 0,
        )
    )
    JITFunction.run = run
    try:
        yield
    finally:
        JITFunction.run = launch


def runs(source: int, dtype: Any) -> None:
    """Runs forward and backward passes of encoder, decoders and output, and updates of Adadelta."""
    from nmt.fused.gpu import kernels  # imports Triton
    from nmt.fused.gpu.adadelta import FusedAdadelta

    def new(*shape: int, dtype: Any = dtype) -> Any:
        return torch.empty(shape, dtype=dtype, device="meta")

    def new32(*shape: int) -> Any:
        return new(*shape, dtype=torch.float32)

    gates, U = new(2 * HIDDEN, HIDDEN), new(HIDDEN, HIDDEN)
    encoder = new(2, source, BATCH, 3 * HIDDEN), new32(2, BATCH, HIDDEN)
    real = new32(2, source, BATCH, 1)
    outputs, saved = run_forward(
        kernels, *encoder, gates.expand(2, -1, -1), U.expand(2, -1, -1), real=real
    )
    run_backward(kernels, saved, outputs)
    decoder = new(TARGET - 1, BATCH, 3 * HIDDEN), new32(BATCH, HIDDEN)
    outputs, saved = run_forward(kernels, *decoder, gates, U)  # without attention
    run_backward(kernels, saved, outputs)
    annotations, keys = new(BATCH, source, ANNOTATION), new(BATCH, source, ALIGNMENT)
    mask, C = new(BATCH, source, dtype=torch.bool), new(3 * HIDDEN, ANNOTATION)
    for scorer in (Additive, Dot, ScaledDot):
        scoring = scorer(ALIGNMENT, ALIGNMENT).requires_grad_(False).to("meta")
        attended = AttentionInputs(scoring, annotations, keys, mask, C)
        outputs, saved = run_forward(
            kernels, *decoder, new(ALIGNMENT + 2 * HIDDEN, HIDDEN), U, attended=attended
        )
        run_backward(kernels, saved, outputs[:2], scoring)
    rows, words = new(TARGET, MAXOUT), new(TARGET, dtype=torch.int64)
    output = new32(VOCABULARY, MAXOUT), new32(VOCABULARY)
    for weight in (None, new32(TARGET)):
        for gradients in (False, True):
            chunked_nll(
                kernels, rows, *output, words, dtype, with_gradients=gradients, weight=weight
            )
    matrix = torch.nn.Parameter(new32(MAXOUT, HIDDEN))
    optimizer = FusedAdadelta([matrix], lr=1.0, rho=0.95, eps=1e-6)
    for clipped in (False, True):
        matrix.grad = torch.zeros_like(matrix)
        if clipped:
            optimizer.clip_next(new32(), 1.0)
        optimizer.step()


def compile_all(target: str) -> Iterator[Line]:
    """Yields a line for each compiled kernel, for all `LENGTHS` and dtypes.

    - `S`, `dtype`: source length and dtype of the first launch that needs the kernel
    - `registers`: registers per thread; `spills`: bytes that do not fit in them; `shared`: bytes of shared memory
    - `vector_loads`: number of instructions that load 16 bytes per thread from global memory
    - `error`: why a kernel does not compile
    """
    from nmt.fused.gpu import kernels

    found: dict[str, Any] = {}
    kernels.likelihood.WARPS = 1024 // gpu_target(target).warp_size
    for dtype in ("float32", "bfloat16"):
        for source in LENGTHS:
            known = len(found)
            failed: dict[str, str] = {}
            with compiled_launches(gpu_target(target), found, failed), torch.no_grad():
                runs(source, getattr(torch, dtype))
            at = {"target": target, "S": source, "dtype": dtype}
            for name, error in failed.items():
                yield {"kernel": name, **at, "error": error}
            for kernel in list(found.values())[known:]:
                yield {"kernel": kernel.metadata.name, **at, **measured(kernel)}


def measured(kernel: Any) -> Line:
    """Returns the registers, spills, shared memory and vector loads of a compiled kernel."""
    if "cubin" in kernel.asm:
        code, usage = kernel.asm["ptx"], resource_usage(kernel.asm["cubin"])
        registers, spills = r"REG:(\d+)", r"(?:STACK|LOCAL):(\d+)"
        wide = r"ld\.global\S*\.(?:v4\.[bfu]32|v2\.[bfu]64|v8\.[bfu]16)|cp\.async\.cg\."
    else:
        code = usage = kernel.asm["amdgcn"]
        registers, spills = r"\.vgpr_count:\s+(\d+)", r"\.vgpr_spill_count:\s+(\d+)"
        wide = r"(?:global|buffer)_load_dwordx4"
    return {
        "registers": sum(map(int, re.findall(registers, usage))),
        "spills": sum(map(int, re.findall(spills, usage))),
        "shared": kernel.metadata.shared,
        "vector_loads": len(re.findall(wide, code)),
    }


def resource_usage(cubin: bytes) -> str:
    """Returns what Triton's copy of cuobjdump prints about registers and memory."""
    from triton import knobs

    with tempfile.NamedTemporaryFile() as file:
        file.write(cubin)
        file.flush()
        command = [knobs.nvidia.cuobjdump.path, "-res-usage", file.name]
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def is_good(line: Line) -> bool:
    """Tells whether a kernel compiles without spills, with few registers and with vector loads.

    Vector loads are required only if the kernel's name starts with `score` or `word`.
    """
    if "error" in line or line["spills"]:
        return False
    few = line["registers"] <= (160 if line["target"].startswith("gfx") else 128)
    return few and (bool(line["vector_loads"]) or not line["kernel"].startswith(("score", "word")))


def main(target: str) -> int:
    """Prints the lines of `compile_all`; returns 0 if `is_good` holds for all of them, otherwise 1."""
    status = 0
    for line in compile_all(target):
        status |= not is_good(line)
        print_line(line)
    return status


def check(setting: Setting, findings: Findings) -> None:
    """Compiles all kernels in a new process, without Triton's interpreter."""
    if find_spec("triton") is None:
        findings.note(left_out="Triton is not installed")
        return
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    command = [sys.executable, "-m", "benchmarks.gpu", "--compile"]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    findings.check("kernels", done.stdout.count("\n"), at_least=30)
    findings.check("exit code", done.returncode, equals=0)
