"""Whole updates without Lightning: repeatable, and accumulated around a validation."""

from __future__ import annotations

import hashlib

import torch

from benchmarks.gpu.findings import Findings
from benchmarks.gpu.recordings import recorded
from benchmarks.gpu.setting import Setting, furthest, gradients
from benchmarks.work import Net
from nmt.config import SearchConfig
from nmt.search import beam_search

UPDATES = 20
TURNS = 3
LIMITS = {False: 1e-4, True: 0.02}  # of a gradient's norm, in float32 and bf16


def repeat(setting: Setting, findings: Findings) -> None:
    """20 updates twice from the same weights end with equal bits; with graphs and bf16."""
    for bf16 in (False, True):
        name = "bf16" if bf16 else "float32"
        digests = []
        for _ in range(2):
            net = setting.net(graphs=True)
            trainer = setting.trainer(net, bf16=bf16)
            before = digest(net)
            for update in range(UPDATES):
                length = setting.lengths[update % len(setting.lengths)]
                trainer.update(setting.words(length, seed=update))
            digests.append(digest(net))
            findings.check(
                f"{name}: the updates changed the weights", digests[-1] != before, equals=True
            )
            findings.check(f"{name}: graphs held", recorded(net), at_least=1)
        findings.check(f"{name}: equal bits", digests[0] == digests[1], equals=True)


def digest(net: Net) -> str:
    """Of all weights, to the last bit."""
    found = hashlib.sha256()
    for parameter in net.parameters():
        found.update(parameter.detach().cpu().numpy().tobytes())
    return found.hexdigest()


def accumulation(setting: Setting, findings: Findings) -> None:
    """Two micro-batches with a validation between them add up as they do without graphs."""
    lengths = setting.lengths[:2]
    for bf16 in (False, True):
        found, said = [], []
        for on in (False, True):
            net = setting.net(graphs=on)
            for _ in range(TURNS):  # captured in the first, replayed in the others
                net.zero_grad()
                for number, length in enumerate(lengths):
                    with setting.autocast(bf16):
                        loss = net.loss(*setting.words(length, seed=number)) / (
                            setting.rows * len(lengths)
                        )
                    loss.backward()
                    if number == 0:
                        nll = validate(setting, net, bf16)
                found.append(gradients(net))
                said.append(nll)
            if on:
                findings.check("graphs held", recorded(net), at_least=1)
        name = "bf16" if bf16 else "float32"
        for turn in range(TURNS):
            worst, share = furthest(found[TURNS + turn], found[0])
            findings.check(f"{name} turn {turn}: {worst}", share, at_most=LIMITS[bf16])
            apart = abs(said[TURNS + turn] / said[0] - 1)
            findings.check(f"{name} turn {turn}: validation", apart, at_most=LIMITS[bf16])


@torch.no_grad()
def validate(setting: Setting, net: Net, bf16: bool) -> float:
    """NLL of other sentences, and a greedy search of them, as a validation has both."""
    net.eval()
    words = setting.words(setting.lengths[1], seed=99)
    with setting.autocast(bf16):
        nll = float(net.loss(*words)) / len(words[0])
        beam_search(net, *words[:2], SearchConfig(beam_size=1, max_ratio=1.0))
    net.train()
    return nll
