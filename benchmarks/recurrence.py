"""One training step (forward, cross-entropy, backward), `plain` beside `fused`, float32 and bf16.

    python benchmarks/recurrence.py [--hidden 256 --embedding 128 ...]

The versions take turns, so that a busy machine slows them alike; the median and its ratio to plain
float32 are printed, with the largest growth of resident memory during a step (Linux; on a GPU the
largest allocation).
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from torch import Tensor, nn

from nmt.layers import (
    Additive,
    Attention,
    BidirectionalEncoder,
    Decoder,
    Dot,
    FixedContext,
    ForwardEncoder,
    Output,
    ScaledDot,
    initialise,
)

SCORING = {"additive": Additive, "dot": Dot, "scaled_dot": ScaledDot}
VERSIONS = [("plain", "float32"), ("fused", "float32"), ("plain", "bf16"), ("fused", "bf16")]


class Net(nn.Module):
    """RNNsearch (or RNNencdec with scoring "none") without anything around it."""

    def __init__(self, args: argparse.Namespace, recurrence: str) -> None:
        super().__init__()
        context: Attention | FixedContext
        if args.scoring == "none":
            self.encoder: nn.Module = ForwardEncoder(
                args.vocabulary, args.embedding, args.hidden, recurrence=recurrence
            )
            context = FixedContext(args.hidden)
        else:
            self.encoder = BidirectionalEncoder(
                args.vocabulary, args.embedding, args.hidden, recurrence=recurrence
            )
            scoring = SCORING[args.scoring](args.alignment)
            context = Attention(args.hidden, 2 * args.hidden, args.alignment, scoring)
        self.decoder = Decoder(
            args.vocabulary,
            args.embedding,
            args.hidden,
            args.maxout,
            context,
            recurrence=recurrence,
        )
        self.output = Output(args.maxout, args.vocabulary)
        self.chunked = recurrence == "fused"
        initialise(self, "glorot")

    def forward(self, source: Tensor, target: Tensor, mask: Tensor, target_mask: Tensor) -> Tensor:
        memory = self.decoder.memory(*self.encoder(source, mask), mask)
        readout = self.decoder(target, target_mask, memory).readout
        if self.chunked:
            return self.output.loss(readout, target, target_mask)[0] / len(source)
        logits = self.output.logits(readout[target_mask])
        nll = nn.functional.cross_entropy(logits.float(), target[target_mask], reduction="sum")
        return nll / len(source)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, size in {
        "hidden": 256,
        "embedding": 128,
        "alignment": 256,
        "maxout": 128,
        "vocabulary": 6500,
        "batch": 80,
        "length": 25,
        "rounds": 7,
        "threads": 1,
    }.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--scoring", choices=[*SCORING, "none"], default="additive")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)

    shape = (args.batch, args.length)
    source = torch.randint(2, args.vocabulary, shape, device=args.device)
    target = torch.randint(2, args.vocabulary, shape, device=args.device)
    lengths = torch.randint(args.length * 9 // 10, args.length + 1, (args.batch, 1))
    mask = (torch.arange(args.length) < lengths).to(args.device)
    nets = {name: Net(args, name).to(args.device) for name in ("plain", "fused")}

    def train_step(recurrence: str, precision: str) -> float:
        net = nets[recurrence]
        net.zero_grad()
        synchronise(args.device)
        start = time.perf_counter()
        with torch.autocast(args.device, torch.bfloat16, enabled=precision == "bf16"):
            loss = net(source, target, mask, mask)
        loss.backward()
        synchronise(args.device)
        return time.perf_counter() - start

    peaks = {}
    for version in VERSIONS:
        train_step(*version)
        reset_peak(args.device)
        train_step(*version)
        peaks[version] = peak(args.device)
    times: dict[tuple[str, str], list[float]] = {version: [] for version in VERSIONS}
    for _ in range(args.rounds):
        for version in VERSIONS:
            times[version].append(train_step(*version))

    base = statistics.median(times[VERSIONS[0]])
    words = int(mask.sum())
    print(f"{'':16} {'ms':>8} {'times plain':>12} {'target words/s':>15} {'peak MiB':>9}")
    for version in VERSIONS:
        median = statistics.median(times[version])
        print(
            f"{' '.join(version):16} {median * 1e3:8.1f} {base / median:12.2f} "
            f"{words / median:15.0f} {peaks[version]:9.0f}"
        )


def synchronise(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def reset_peak(device: str) -> None:
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats()
    else:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # resets VmHWM


def peak(device: str) -> float:
    """Largest memory since `reset_peak`, in MiB."""
    if device != "cpu":
        return torch.cuda.max_memory_allocated() / 2**20
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 2**10 for line in file if line.startswith("VmHWM"))


if __name__ == "__main__":
    main()
