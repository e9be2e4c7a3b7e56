"""Checks models: gradients, CUDA graphs, a failed capture, repeatability and memory."""

from __future__ import annotations

import time
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from benchmarks.gpu.setting import Findings, Setting, furthest, gradients_of
from benchmarks.work import SCORING, pool
from nmt.fused import backend_of
from nmt.fused import steps as torch_steps

# Limits of the relative errors of gradients; the key is True for bf16 and False for float32
LIMITS = {False: 1e-3, True: 0.05}  # fused network, compared with the plain network in float32
PADDED = {False: 1e-4, True: 0.02}  # graphs that pad the batch, compared with no graphs
PRECISIONS = {False: "float32", True: "bf16"}
TURNS = 3  # passes over all shapes; the first one captures graphs, the others replay them
UPDATES = 20  # number of updates of each training in `repeat`


def gradients(setting: Setting, findings: Findings) -> None:
    """Compares gradients of fused networks with those of plain networks in float32, at several lengths."""
    steps: Any = torch_steps
    if find_spec("triton") is not None:
        from nmt.fused.gpu import kernels as steps  # interpreted in a rehearsal
    for scoring in (*SCORING, "none"):
        for length in (18,) if setting.rehearse else (8, 16, 32, 52, 200):
            # To limit memory, long batches have fewer rows: a plain step stores rows x length x alignment values.
            words = setting.words(length, rows=2 if setting.rehearse else min(80, 4000 // length))
            plain = setting.trainer(setting.net("plain", scoring=scoring), bf16=False)
            expected = gradients_of(plain, words)
            for bf16 in (False, True):
                net = setting.net(scoring=scoring, kernels=False)
                backend_of(net).steps = steps  # bypasses the fallback: a kernel's error is raised
                fused = setting.trainer(net, bf16=bf16)
                share, worst = furthest(gradients_of(fused, words), expected)
                name = f"{scoring} {PRECISIONS[bf16]} S={length}: {worst}"
                findings.check(name, share, at_most=LIMITS[bf16])


def graphs(setting: Setting, findings: Findings) -> None:
    """Compares gradients with and without CUDA graphs; without padding they must be bit-identical.

    Gradients are divided by the number of sentences. With a CUDA graph, this happens after the
    replay, otherwise at the start of the backward pass. The bits are the same, because the number of sentences
    is a power of two here.
    """
    rows = 8 if setting.rehearse else 64
    for scoring in ("additive", "dot", "none"):
        for bf16 in (False, True):
            bare, replayed = (
                setting.trainer(setting.net(scoring=scoring), bf16=bf16, graphs=on)
                for on in (False, True)
            )
            different = []
            share = 0.0
            worst = ""
            for turn in range(TURNS):
                for length in setting.lengths:
                    words = setting.words(length, rows=rows, seed=10 * turn + length)
                    expected = gradients_of(bare, words)
                    found = gradients_of(replayed, words)
                    if length in setting.lengths[:2] and scoring != "none":
                        different += [
                            n for n, g in expected.items() if not torch.equal(g, found[n])
                        ]
                    share, worst = max((share, worst), furthest(found, expected))
            name = f"{scoring} {PRECISIONS[bf16]}"
            findings.check(f"{name}: other bits", sorted(set(different)), equals=[])
            findings.check(f"{name}, padded: {worst}", share, at_most=PADDED[bf16])
            findings.check(f"{name}: graphs held", len(replayed.graphs.graphs), at_least=1)


def failure(setting: Setting, findings: Findings) -> None:
    """Checks that gradients after a failed capture nearly equal those without CUDA graphs."""
    words = setting.words(setting.lengths[0])
    bare, failing = (setting.trainer(setting.net(), bf16=True, graphs=on) for on in (False, True))
    loss = failing.net.loss
    calls = iter(range(99))

    def broken(*words: Tensor) -> Tensor:
        if next(calls) == (0 if setting.rehearse else 1):  # on a GPU, the first call is a warm-up
            torch.cuda.synchronize()  # fails during a capture, and without a GPU
        return loss(*words)

    failing.net.loss = broken  # type: ignore[method-assign, assignment]
    for part in (bare.net.decoder.dropout, failing.net.decoder.dropout):
        part.p = 0.2
    for turn in range(2):
        both = []
        for trainer in (bare, failing):
            torch.manual_seed(turn)
            both.append(gradients_of(trainer, words))
        share, worst = furthest(both[1], both[0])
        findings.check(f"update {turn}: {worst}", share, at_most=PADDED[True])
    findings.check("the capture failed", failing.graphs.failed, equals=True)


def repeat(setting: Setting, findings: Findings) -> None:
    """Checks that two trainings with CUDA graphs, from the same weights, end with bit-identical weights."""
    for bf16 in (False, True):
        ends = []
        for _ in range(2):
            trainer = setting.trainer(setting.net(), bf16=bf16, graphs=True)
            for update in range(UPDATES):
                length = setting.lengths[update % len(setting.lengths)]
                trainer.update(setting.words(length, seed=update))
            ends.append(trainer.net.state_dict())
        different = [n for n, value in ends[0].items() if not torch.equal(value, ends[1][n])]
        findings.check(f"{PRECISIONS[bf16]}: other bits", different, equals=[])


def memory(setting: Setting, findings: Findings) -> None:
    """Measures the GPU memory reserved by updates on a pool of batches, and the seconds per captured CUDA graph.

    As in training, the largest batch is captured first. The second pass over the pool captures no graphs.
    """
    trainer = setting.trainer(setting.net(), bf16=True, graphs=True)
    batches = pool(setting.size, setting.device)[:: 5 if setting.rehearse else 1]
    held, took = [], []
    for words in (batches[-1:], batches, batches):
        start = time.perf_counter()
        for batch in words:
            trainer.update(batch)
        setting.wait()
        took.append(time.perf_counter() - start)
        held.append(0 if setting.rehearse else torch.cuda.memory_reserved() / 2**20)
    captures = len(trainer.graphs.graphs)
    findings.note(
        reserved_mib=dict(zip(("largest", "first pool", "second pool"), held, strict=True)),
        free_and_total=[] if setting.rehearse else torch.cuda.mem_get_info(),
        captures=captures,
        seconds_per_capture=(took[1] - took[2]) / max(captures - 1, 1),
    )
    findings.check("MiB that pools add to the largest shape", held[2] - held[0], at_most=512)
