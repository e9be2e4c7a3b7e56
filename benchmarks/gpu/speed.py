"""Forward and backward: what graphs and kernels bring, which part takes how long, and what runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.gpu.findings import Findings
from benchmarks.gpu.recordings import products_apart, recorded, without_kernels
from benchmarks.gpu.setting import Setting
from benchmarks.work import gradients_of

# label: recurrence, bf16, CUDA graphs, what is otherwise
VERSIONS: dict[str, tuple[str, bool, bool, Callable[[], AbstractContextManager[None]]]] = {
    "plain float32": ("plain", False, False, nullcontext),
    "plain bf16": ("plain", True, False, nullcontext),
    "fused bf16": ("fused", True, False, without_kernels),
    "with kernels": ("fused", True, False, nullcontext),
    "with graphs": ("fused", True, True, nullcontext),
    "with graphs, products apart": ("fused", True, True, products_apart),
}
TARGETS = {"80x30": 7.0, "80x50": 12.0}  # ms of an H100 or H200
OVER_PLAIN = 8.0  # times plain autocast
FAST = ("H100", "H200")  # what the targets are of


def shapes(setting: Setting, findings: Findings) -> None:
    """Milliseconds of forward and backward; versions take turns."""
    fast = not setting.rehearse and any(name in torch.cuda.get_device_name() for name in FAST)
    for rows, length in setting.shapes:
        words = setting.words(length, rows=rows, ragged=False)
        trainers = {
            label: setting.trainer(setting.net(recurrence, graphs=graphs), bf16=bf16)
            for label, (recurrence, bf16, graphs, _) in VERSIONS.items()
        }
        times: dict[str, list[float]] = {label: [] for label in VERSIONS}
        for turn in range(setting.rounds + 2):  # compiles and captures in the first two
            for label, trainer in trainers.items():
                with VERSIONS[label][3]():
                    took = one(setting, partial(trainer.gradient, words))
                if turn > 1:
                    times[label].append(took)
        shape = f"{rows}x{length}"
        found = {label: 1e3 * median(measured) for label, measured in times.items()}
        findings.note(**{f"{shape} ms": found})
        findings.check(f"{shape}: graphs held", recorded(trainers["with graphs"].net), at_least=1)
        finite = all(g.isfinite().all() for g in gradients_of(trainers["with graphs"].net))
        findings.check(f"{shape}: gradients are finite", finite, equals=True)
        if fast and shape in TARGETS:
            findings.target(f"{shape} ms", found["with graphs"], at_most=TARGETS[shape])
            over = found["plain bf16"] / found["with graphs"]
            findings.target(f"{shape} times plain autocast", over, at_least=OVER_PLAIN)
        del trainers
        if setting.device == "cuda":
            torch.cuda.empty_cache()


def one(setting: Setting, run: Callable[[], object]) -> float:
    """Wall-clock seconds of a call."""
    setting.wait()
    start = time.perf_counter()
    run()
    setting.wait()
    return time.perf_counter() - start


class Watch:
    """Milliseconds of named parts, by events on the device's own clock."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.parts: dict[str, list[Any]] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        start = self._now()
        yield
        self.parts.setdefault(name, []).append((start, self._now()))

    def _now(self) -> Any:
        if self.setting.device == "cpu":
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def medians(self) -> dict[str, float]:
        """Of each part, once the device is done."""
        self.setting.wait()
        return {
            name: median(
                1e3 * (end - start) if self.setting.device == "cpu" else start.elapsed_time(end)
                for start, end in spans[2:]
            )
            for name, spans in self.parts.items()
        }


def parts(setting: Setting, findings: Findings) -> None:
    """Milliseconds of the parts of an update, each way."""
    rows, length = setting.shapes[0]
    words = setting.words(length, rows=rows, ragged=False)
    net = setting.net(graphs=True)
    trainer = setting.trainer(net, bf16=True)
    watch = Watch(setting)
    wanted = None
    for _ in range(setting.rounds + 2):
        net.zero_grad()
        with watch("whole"):
            in_parts(setting, net, words, watch)
            with watch("clip"):
                norm = trainer.clip()
            wanted = wanted if wanted is not None else float(norm)
            with watch("optimizer"):
                trainer.optimizer.step()
    medians = watch.medians()
    findings.note(ms=medians, shape=f"{rows}x{length}")
    # the parts make the gradient that the whole makes
    twin = setting.net(graphs=True)
    setting.trainer(twin, bf16=True).gradient(words)
    expected = float(nn.utils.get_total_norm(gradients_of(twin)))
    findings.check(
        "norm of the gradient, share", abs(float(wanted or 0) / expected - 1), at_most=0.02
    )
    rest = medians["whole"] - sum(took for name, took in medians.items() if name != "whole")
    findings.note(between_the_parts_ms=rest)


def in_parts(setting: Setting, net: Any, words: tuple[Tensor, ...], watch: Watch) -> None:
    """Forward and backward with a cut between encoder, decoder and output."""
    source, source_mask, target, target_mask = words
    with setting.autocast(True):
        with watch("encoder forward"):
            annotations, summary = net.encoder(source, source_mask)
        cut = [x.detach().requires_grad_() for x in (annotations, summary)]
        with watch("decoder forward"):
            memory = net.decoder.memory(*cut, source_mask)
            readout = net.decoder(target, target_mask, memory).readout
        reached = readout.detach().requires_grad_()
        with watch("output forward"):
            loss = net.output.loss(reached, target, target_mask)[0] / len(source)
    with watch("output backward"):
        loss.backward()
    with watch("decoder backward"):
        readout.backward(reached.grad)
    with watch("encoder backward"):
        gradients = [torch.zeros_like(x) if x.grad is None else x.grad for x in cut]
        torch.autograd.backward([annotations, summary], gradients)


def profile(setting: Setting, findings: Findings) -> None:
    """One update: its kernels, the longest of them, and the share of time that none ran."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiler

    rows, length = setting.shapes[0]
    words = setting.words(length, rows=rows, ragged=False)
    trainer = setting.trainer(setting.net(graphs=True), bf16=True)
    for _ in range(3):
        trainer.update(words)
    setting.wait()
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (not setting.rehearse)
    with profiler(activities=activities) as profiled:
        trainer.update(words)
        setting.wait()
    device = torch.autograd.DeviceType.CPU if setting.rehearse else torch.autograd.DeviceType.CUDA
    events = [
        event
        for event in profiled.events()
        if event.device_type == device and not event.is_user_annotation
    ]
    spans = sorted((event.time_range.start, event.time_range.end) for event in events)
    findings.check("events", len(spans), at_least=1)
    if not spans:
        return
    busy, until = 0.0, spans[0][0]
    for start, end in spans:
        busy += max(0.0, end - max(start, until))
        until = max(until, end)
    whole = until - spans[0][0]
    totals: dict[str, list[float]] = {}
    for event in events:
        totals.setdefault(event.name[:60], []).append(event.time_range.end - event.time_range.start)
    longest = sorted(totals.items(), key=lambda entry: -sum(entry[1]))[:15]
    findings.note(
        kernels=len(spans),
        device_ms=whole / 1e3,
        idle_share=1 - busy / whole,
        top={name: {"count": len(took), "ms": sum(took) / 1e3} for name, took in longest},
    )
