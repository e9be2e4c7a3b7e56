"""Sentences a second of greedy search and beam 12, and whether their probabilities are the model's."""

from __future__ import annotations

import torch

from benchmarks.gpu.findings import Findings
from benchmarks.gpu.setting import Setting
from benchmarks.gpu.speed import FAST
from benchmarks.work import Net, Words
from nmt.config import SearchConfig
from nmt.data.batch import pad
from nmt.search import beam_search
from nmt.search.hypothesis import Hypothesis

BEAMS = (1, 12)
ROWS = (16, 64)
LIMITS = {False: 1e-4, True: 0.02}  # of a translation's log-probability, in float32 and bf16
LEAST, AIM = 1000, 2000  # sentences a second of beam 12 at 64


def search(setting: Setting, findings: Findings) -> None:
    """Translations of as many words as the source has, and no word more."""
    fast = not setting.rehearse and any(name in torch.cuda.get_device_name() for name in FAST)
    length = 6 if setting.rehearse else 25
    net = setting.net().eval()
    for rows in ROWS:
        words = setting.words(length + 1, rows=rows, ragged=False)
        for beam in BEAMS:
            settings = SearchConfig(beam_size=beam, min_ratio=1.0, max_ratio=1.0)
            for bf16 in (False, True):
                name = f"{'greedy' if beam == 1 else f'beam {beam}'} {'bf16' if bf16 else 'float32'} at {rows}"

                def run(
                    words: Words = words, settings: SearchConfig = settings, bf16: bool = bf16
                ) -> list[list[Hypothesis]]:
                    with setting.autocast(bf16):
                        return beam_search(net, *words[:2], settings)

                rate = rows / setting.seconds(run, 3 if setting.rehearse else 5)
                findings.note(**{f"{name}, sentences a second": rate})
                found = [best[0] for best in run()]
                apart = disagreement(setting, net, words, found, bf16)
                findings.check(f"{name}: log-probability, share", apart, at_most=LIMITS[bf16])
                if fast and (beam, rows, bf16) == (12, 64, True):
                    findings.target(f"{name}, at least", rate, at_least=LEAST)
                    findings.target(f"{name}, aim", rate, at_least=AIM)


@torch.no_grad()
def disagreement(
    setting: Setting, net: Net, words: Words, found: list[Hypothesis], bf16: bool
) -> float:
    """How far the log-probability of a translation is from what the model gives it when it is read.

    The largest share over the sentences.
    """
    target, mask = (side.to(setting.device) for side in pad([each.tokens for each in found]))
    with setting.autocast(bf16):
        memory = net.encode(*words[:2])
        nll = net.output.nll(net.decoder(target, mask, memory).readout, target, mask).sum(1)
    claimed = torch.tensor([each.score for each in found])  # their sums: no length penalty
    return float(((nll.cpu() + claimed).abs() / claimed.abs()).max())
