"""CUDA graphs: they change no result, whatever the order of batches and however little memory there is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from benchmarks.gpu.findings import Findings
from benchmarks.gpu.recordings import limit_recordings, no_memory_in_captures, recorded
from benchmarks.gpu.setting import Setting, furthest, gradients, gradients_of, same_bits
from benchmarks.work import Net, Words

LIMITS = {
    False: 1e-4,
    True: 0.02,
}  # of a gradient's norm, in float32 and bf16, where padding differs
TURNS = 3  # through the shapes: captured in the first, replayed in the others


def graphs(setting: Setting, findings: Findings) -> None:
    """With graphs against without: to the last bit, where the graph adds no padding.

    A decoder without attention is one recurrence over all words but the last, so that it is padded
    at every one of these lengths.
    """
    for scoring in ("additive", "dot", "none"):
        for bf16 in (False, True):
            bare, net = (setting.net(graphs=on, scoring=scoring) for on in (False, True))
            name = f"{scoring} {'bf16' if bf16 else 'float32'}"
            different: list[str] = []
            apart: dict[str, float] = {}
            for turn in range(TURNS):
                for length in setting.lengths:
                    words = setting.words(length, seed=10 * turn + length)
                    expected_loss, expected = gradients_of(setting, bare, words, bf16=bf16)
                    loss, found = gradients_of(setting, net, words, bf16=bf16)
                    if length in setting.lengths[:2] and scoring != "none":
                        different += same_bits(found, expected) + ["loss"] * (loss != expected_loss)
                    else:
                        worst, share = furthest(found, expected)
                        apart[worst] = max(share, apart.get(worst, 0.0))
            if scoring != "none":
                findings.check(f"{name}: not the same bits", sorted(set(different)), equals=[])
            worst = max(apart, key=apart.__getitem__)
            findings.check(f"{name}, padded: {worst}", apart[worst], at_most=LIMITS[bf16])
            findings.check(f"{name}: graphs held", recorded(net), at_least=1)


def two_shapes(setting: Setting, findings: Findings) -> None:
    """Two batches go forward before either goes backward: of two shapes, and of one."""
    first, second = setting.lengths[:2]
    for lengths in ((first, second), (second, first), (first, first)):
        pair = [setting.words(length, seed=n + 5) for n, length in enumerate(lengths)]
        for order in ((0, 1), (1, 0)):
            for bf16 in (False, True):
                name = f"{lengths[0]} and {lengths[1]}, backward {order[0]} first, {'bf16' if bf16 else 'float32'}"
                bare, net = (setting.net(graphs=on) for on in (False, True))
                expected = both(setting, bare, pair, order, bf16)
                worst, share = "", 0.0
                for _ in range(TURNS):
                    found = both(setting, net, pair, order, bf16)
                    for got, wanted in zip(found, expected, strict=True):
                        name_of, far = furthest(got, wanted)
                        worst, share = (name_of, far) if far >= share else (worst, share)
                findings.check(f"{name}: {worst}", share, at_most=LIMITS[bf16])
                findings.check(f"{name}: graphs held", recorded(net), at_least=1)


def both(
    setting: Setting, net: Net, pair: list[Words], order: tuple[int, int], bf16: bool
) -> list[dict[str, torch.Tensor]]:
    """The gradients of each of two batches, both read before the first backward pass."""
    with setting.autocast(bf16):
        losses = [net.loss(*words) / len(words[0]) for words in pair]
    found = []
    for which in order:
        net.zero_grad()
        losses[which].backward()
        found.append(gradients(net))
    return found


def eviction(setting: Setting, findings: Findings) -> None:
    """More shapes than there is room for: the results stay right and memory does not grow."""
    bare, net = (setting.net(graphs=on) for on in (False, True))
    limit_recordings(net)
    held, worst, share = [], "", 0.0
    for turn in range(TURNS):
        for length in setting.lengths:
            words = setting.words(length, seed=10 * turn + length)
            expected = gradients_of(setting, bare, words, bf16=True)[1]
            found = gradients_of(setting, net, words, bf16=True)[1]
            name, far = furthest(found, expected)
            worst, share = (name, far) if far >= share else (worst, share)
        if setting.device == "cuda":
            held.append(torch.cuda.memory_reserved() / 2**20)
    findings.check(f"furthest gradient: {worst}", share, at_most=LIMITS[True])
    findings.check("graphs held", recorded(net), at_most=2)  # of encoder and decoder
    findings.check("graphs of the first shape", recorded(net), at_least=1)
    if held:
        findings.note(reserved_mib=held)
        findings.check("MiB added by the last turn", held[-1] - held[1], at_most=64)
    else:
        findings.leave_out("memory", "a CPU has no allocator to ask")


def out_of_memory(setting: Setting, findings: Findings) -> None:
    """Where a capture finds no memory the batch is computed without; where none does, the next is right."""
    first, second = setting.lengths[:2]
    words, other = setting.words(first, seed=3), setting.words(second, seed=4)
    bare, net = (setting.net(graphs=on) for on in (False, True))
    expected = [gradients_of(setting, bare, each, bf16=True)[1] for each in (words, other)]
    gradients_of(setting, net, words, bf16=True)
    if setting.rehearse:
        findings.leave_out("a batch that does not fit", "memory is the whole machine's")
        with no_memory_in_captures():
            found = gradients_of(setting, net, other, bf16=True)[1]
        worst, share = furthest(found, expected[1])
        findings.check(f"no memory in a capture: {worst}", share, at_most=LIMITS[True])
    else:
        in_a_capture(setting, findings, words, other)
        too_large(setting, findings, net)
    for each, wanted in zip((words, other), expected, strict=True):
        worst, share = furthest(gradients_of(setting, net, each, bf16=True)[1], wanted)
        findings.check(
            f"afterwards, {len(each[0][0])} symbols: {worst}", share, at_most=LIMITS[True]
        )


def in_a_capture(setting: Setting, findings: Findings, words: Words, other: Words) -> None:
    """Takes a shape that has no graph yet with more and more memory left, each time anew."""
    expected = gradients_of(setting, setting.net(), other, bf16=True)[1]
    outcomes: dict[str, str] = {}
    wrong = []
    for room in (16, 64, 128, 256, 512, 1024):  # MiB; the first are too few for any step
        net = setting.net(graphs=True)
        gradients_of(setting, net, words, bf16=True)
        try:
            with memory_limit(room):
                name, far = furthest(gradients_of(setting, net, other, bf16=True)[1], expected)
            outcomes[str(room)] = f"computed, {recorded(net)} graphs held"
            if far > LIMITS[True]:
                wrong.append(f"{room} MiB: {name} {far:.2g}")
        except torch.OutOfMemoryError:
            outcomes[str(room)] = "out of memory"
        except Exception as error:
            outcomes[str(room)] = f"{type(error).__name__}: {error}".splitlines()[0]
            wrong.append(f"{room} MiB: {outcomes[str(room)]}")
    findings.note(mib_left_for_a_new_shape=outcomes)
    findings.check("wrong, or ended in another error", wrong, equals=[])


@contextmanager
def memory_limit(room: int) -> Iterator[None]:
    """Lets this process take so many MiB more than it holds."""
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    share = (torch.cuda.memory_reserved() + room * 2**20) / total
    torch.cuda.set_per_process_memory_fraction(min(1.0, share))
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def too_large(setting: Setting, findings: Findings, net: Net) -> None:
    """A batch that the device cannot hold ends in torch's own error."""
    kind = "none"
    try:
        with memory_limit(1024):
            gradients_of(setting, net, setting.words(200, rows=4096), bf16=True)
    except Exception as error:
        kind = type(error).__name__
    net.zero_grad()
    findings.check("error of a batch that does not fit", kind, equals="OutOfMemoryError")
