"""Measures the speed of the machine, of updates and their parts, and of searches."""

from __future__ import annotations

import platform
from functools import partial

import torch

from benchmarks import work
from benchmarks.gpu.setting import Findings, Setting

# label: (recurrence, bf16, kernels, CUDA graphs)
VERSIONS = {
    "plain float32": ("plain", False, False, False),
    "plain bf16": ("plain", True, False, False),
    "fused bf16": ("fused", True, False, False),
    "with kernels": ("fused", True, True, False),
    "with graphs": ("fused", True, True, True),
}
SCORE_LIMITS = {False: 1e-4, True: 0.02}  # maximum relative error of log-probabilities (True: bf16)


def machine(setting: Setting, findings: Findings) -> None:
    """Records software versions, memory bandwidth and the speed of matrix products."""
    findings.note(torch=torch.__version__, python=platform.python_version())
    if not setting.rehearse:
        device = torch.cuda.get_device_properties(0)
        findings.note(
            device=device.name,
            capability=list(torch.cuda.get_device_capability()),
            memory_gib=device.total_memory / 2**30,
        )
        findings.check("bf16 is supported", torch.cuda.is_bf16_supported(), equals=True)
    entries = 2**20 if setting.rehearse else 2**31
    source = torch.randint(0, 255, (entries,), dtype=torch.uint8, device=setting.device)
    target = torch.zeros_like(source)
    took = setting.seconds(lambda: target.copy_(source))
    findings.note(copy_gb_per_s=2 * len(source) / took / 1e9)
    size = 64 if setting.rehearse else 8192
    for dtype in (torch.float32, torch.bfloat16):
        a, b = (torch.randn(size, size, device=setting.device).to(dtype) for _ in range(2))
        took = setting.seconds(partial(torch.matmul, a, b))
        findings.note(**{f"{dtype} tflops": 2 * size**3 / took / 1e12})


def updates(setting: Setting, findings: Findings) -> None:
    """Measures the milliseconds of forward and backward passes, for each shape and version."""
    for rows, length in setting.shapes:
        words = setting.rectangle(length, rows)
        found = {}
        for label, (recurrence, bf16, kernels, graphs) in VERSIONS.items():
            net = setting.net(recurrence, kernels=kernels)
            trainer = setting.trainer(net, bf16=bf16, graphs=graphs)
            found[label] = 1e3 * setting.seconds(partial(trainer.gradient, words))
        shape = f"{rows}x{length}"
        findings.check(f"{shape}: graphs held", len(trainer.graphs.graphs), at_least=1)
        finite = all(gradient.isfinite().all() for gradient in work.gradients_of(trainer.net))
        findings.check(f"{shape}: gradients are finite", finite, equals=True)
        findings.note(**{f"{shape} ms": found})


def parts(setting: Setting, findings: Findings) -> None:
    """Measures the time of an update, of its parts and of its slowest kernels; counts kernel launches."""
    rows, length = setting.shapes[0]
    words = setting.rectangle(length, rows)
    trainer = setting.trainer(setting.net(), bf16=True, graphs=True)
    ms = {
        "update": 1e3 * setting.seconds(partial(trainer.update, words)),
        "matrix products alone": 1e3 * products(setting, words),
        "forward and backward": 1e3 * setting.seconds(partial(trainer.gradient, words)),
        "clip": 1e3 * setting.seconds(trainer.clip),
        "optimizer": 1e3 * setting.seconds(trainer.optimizer.step),
    }
    with torch.profiler.profile() as profiled:  # profiles the CPU, and the GPU if there is one
        trainer.update(words)
        setting.wait()
    which = "self_cpu_time_total" if setting.rehearse else "self_device_time_total"
    events = {e.key[:60]: (getattr(e, which) / 1e3, e.count) for e in profiled.key_averages()}
    longest = sorted((name for name in events if events[name][0]), key=lambda n: -events[n][0])
    findings.note(
        shape=f"{rows}x{length}",
        ms=ms,
        launches=sum(events[name][1] for name in longest),
        device_ms=sum(events[name][0] for name in longest),
        longest_ms={name: events[name] for name in longest[:15]},
    )


def products(setting: Setting, words: work.Words) -> float:
    """Returns the seconds that all matrix products of a forward and backward pass take in one CUDA graph."""
    trainer = setting.trainer(setting.net(), bf16=True)
    repeat = work.Products(partial(trainer.gradient, words)).repeat
    if setting.rehearse:
        return setting.seconds(repeat)
    repeat()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        repeat()
    return setting.seconds(graph.replay)


def search(setting: Setting, findings: Findings) -> None:
    """Measures the sentences per second of searches; compares their scores with and without kernels."""
    length = 6 if setting.rehearse else 25
    net, other = setting.net().eval(), setting.net(kernels=False).eval()
    for rows in (16, 64):
        words = setting.rectangle(length + 1, rows)
        for beam in (1, 12):
            for bf16 in (False, True):
                name = f"beam {beam} {'bf16' if bf16 else 'float32'} at {rows}"
                rate = rows / setting.seconds(partial(work.search, net, words, beam, bf16))
                findings.note(**{f"{name}, sentences a second": rate})
                found, expected = (
                    [best[0].log_probability for best in work.search(each, words, beam, bf16)]
                    for each in (net, other)
                )
                apart = max(abs(a / b - 1) for a, b in zip(found, expected, strict=True))
                findings.check(f"{name}: log-probability", apart, at_most=SCORE_LIMITS[bf16])
