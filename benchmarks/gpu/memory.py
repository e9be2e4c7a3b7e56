"""Peak memory of a training step, and what graphs of many shapes hold."""

from __future__ import annotations

from pathlib import Path

import torch

from benchmarks.gpu.findings import Findings
from benchmarks.gpu.setting import Setting
from benchmarks.memory import resident
from benchmarks.work import pool

VERSIONS = {
    "plain float32": ("plain", False, False),
    "plain bf16": ("plain", True, False),
    "fused float32": ("fused", False, False),
    "fused bf16": ("fused", True, False),
    "fused bf16 with graphs": ("fused", True, True),
}


def memory(setting: Setting, findings: Findings) -> None:
    """MiB that a step adds at its peak, and that all shapes of a pool of batches leave behind."""
    rows, length = (64, 40) if setting.rehearse else setting.shapes[1]
    words = setting.words(length, rows=rows, ragged=False)
    peaks = {}
    for name, (recurrence, bf16, graphs) in VERSIONS.items():
        trainer = setting.trainer(setting.net(recurrence, graphs=graphs), bf16=bf16)
        trainer.gradient(setting.words(3, rows=2))  # gradients and libraries stand before
        before = reset(setting)
        trainer.gradient(words)
        setting.wait()
        peaks[name] = peak(setting) - before
        del trainer
    findings.note(shape=f"{rows}x{length}", peak_mib=peaks)
    if setting.rehearse:
        findings.leave_out(
            "less memory than the plain loop", "a CPU's pages at this size say little"
        )
    else:
        saved = peaks["fused bf16"] / peaks["plain bf16"]
        findings.check("fused bf16 / plain bf16", saved, at_most=0.6)
        findings.check(
            "fused float32 / plain float32",
            peaks["fused float32"] / peaks["plain float32"],
            at_most=0.6,
        )
    trainer = setting.trainer(setting.net(graphs=True), bf16=True)
    held = []
    for _ in range(2):
        before = reset(setting)
        for batch in pool(setting.size, setting.device)[:: 5 if setting.rehearse else 1]:
            trainer.update(batch)
        setting.wait()
        held.append(peak(setting))
    findings.note(pool_of_updates_peak_mib=held, before_mib=before)
    findings.check("a second pool / the first", held[1] / held[0], at_most=1.05)


def reset(setting: Setting) -> float:
    """Forgets the peak; MiB that are held now."""
    if setting.rehearse:
        Path("/proc/self/clear_refs").write_text("5")
        return resident("VmRSS")
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_allocated() / 2**20


def peak(setting: Setting) -> float:
    """MiB held at most since."""
    if setting.rehearse:
        return resident("VmHWM")
    return torch.cuda.max_memory_allocated() / 2**20
