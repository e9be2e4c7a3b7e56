"""What the machine is: versions, bandwidth, products, clocks, and what a launch costs."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import time

import torch

from benchmarks.gpu.findings import Findings
from benchmarks.gpu.setting import Setting

PACKAGES = (
    "torch",
    "triton",
    "pytorch-lightning",
    "torchmetrics",
    "hydra-core",
    "numpy",
    "sacrebleu",
)
CLOCKS = "clocks.sm,clocks.max.sm,clocks.mem,power.draw,power.limit,temperature.gpu"


def machine(setting: Setting, findings: Findings) -> None:
    """Versions and speeds; copies and products must be right."""
    findings.note(
        versions={name: version(name) for name in PACKAGES}, python=platform.python_version()
    )
    findings.note(cores=os.cpu_count(), cuda=torch.version.cuda)
    if setting.rehearse:
        findings.leave_out("device", "a CPU")
    else:
        device = torch.cuda.get_device_properties(0)
        findings.note(
            device=device.name,
            capability=list(torch.cuda.get_device_capability()),
            multiprocessors=device.multi_processor_count,
            memory_gib=device.total_memory / 2**30,
            idle=clocks(),
        )
        findings.check("bf16 is supported", torch.cuda.is_bf16_supported(), equals=True)
    bandwidth(setting, findings)
    products(setting, findings)
    if not setting.rehearse:
        findings.note(busy=clocks())
    launches(setting, findings)


def bandwidth(setting: Setting, findings: Findings) -> None:
    """Bytes read and written by a copy."""
    size = 2**20 if setting.rehearse else 2**31
    source = torch.randint(0, 255, (size,), dtype=torch.uint8, device=setting.device)
    target = torch.zeros_like(source)
    took = setting.seconds(lambda: target.copy_(source))
    findings.note(copy_gb_per_second=2 * size / took / 1e9)
    findings.check("a copy is a copy", torch.equal(source, target), equals=True)


def products(setting: Setting, findings: Findings) -> None:
    """Floating-point operations a second of large products, and their distance from float64."""
    size = 64 if setting.rehearse else 8192
    for dtype, limit in ((torch.float32, 1e-5), (torch.bfloat16, 1e-2)):
        a, b = (torch.randn(size, size, device=setting.device).to(dtype) for _ in range(2))
        took = setting.seconds(lambda a=a, b=b: a @ b)  # type: ignore[misc]
        name = str(dtype).removeprefix("torch.")
        findings.note(**{f"{name}_tflops": 2 * size**3 / took / 1e12})
        exact = a[:64].double() @ b.double()
        apart = (((a @ b)[:64].double() - exact).norm() / exact.norm()).item()
        findings.check(f"{name} products, share of the norm", apart, at_most=limit)


def launches(setting: Setting, findings: Findings) -> None:
    """Microseconds of one small operation after another: the host's speed, and the device's."""
    x = torch.zeros(16, device=setting.device)
    count = 100 if setting.rehearse else 10_000
    start = time.perf_counter()
    for _ in range(count):
        x.add_(1)
    queued = time.perf_counter() - start
    setting.wait()
    done = time.perf_counter() - start
    findings.note(launch_us=queued / count * 1e6, small_operation_us=done / count * 1e6)
    findings.check("operations made", float(x[0]), equals=float(count))


def clocks() -> dict[str, str]:
    """What the driver says of clocks and power; empty where it has no program to ask."""
    command = ["nvidia-smi", f"--query-gpu={CLOCKS}", "--format=csv,noheader"]
    try:
        said = subprocess.run(
            command, capture_output=True, text=True, timeout=20, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(zip(CLOCKS.split(","), said.splitlines()[0].split(", "), strict=False))


def version(package: str) -> str | None:
    """The installed version; None where there is none."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
