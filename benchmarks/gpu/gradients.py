"""The model's recurrences, types and graphs against the readable loop in float32, parameter by parameter."""

from __future__ import annotations

from benchmarks.gpu.findings import Findings
from benchmarks.gpu.setting import Setting, distances, gradients_of
from benchmarks.work import SCORING

LIMITS = {"float32": 1e-3, "bf16": 0.05}  # |found - expected| / |expected|
OF_ONE_ENTRY = 4.0  # times the limit: one sum of terms of both signs, which may cancel out


def gradients(setting: Setting, findings: Findings) -> None:
    """Plain float32 against fused float32, fused bf16 and plain bf16."""
    words = setting.words(setting.lengths[0])
    for scoring in (*SCORING, "none"):
        expected_loss, expected = gradients_of(
            setting, setting.net("plain", scoring=scoring), words, bf16=False
        )
        for recurrence, bf16 in (("fused", False), ("fused", True), ("plain", True)):
            net = setting.net(recurrence, scoring=scoring)
            loss, found = gradients_of(setting, net, words, bf16=bf16)
            precision = "bf16" if bf16 else "float32"
            name = f"{scoring} {recurrence} {precision}"
            apart = distances(found, expected)
            findings.note(**{name: apart})
            limit = LIMITS[precision]
            findings.check(f"{name}: loss", abs(loss / expected_loss - 1), at_most=limit)
            if recurrence == "fused":
                limits = {
                    key: limit * (OF_ONE_ENTRY if parameter.numel() == 1 else 1.0)
                    for key, parameter in net.named_parameters()
                }
                worst = max(apart, key=lambda key: apart[key] / limits[key])
                findings.check(f"{name}: {worst}", apart[worst], at_most=limits[worst])
