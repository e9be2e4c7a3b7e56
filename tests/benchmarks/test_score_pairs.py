"""The plain NumPy code of `benchmarks.score_pairs` equals the package's curves, draws and intervals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.score_pairs import counts_of_bleu, measure, ratios_of_bleu
from nmt.config.commands import CompareConfig
from nmt.evaluation.scores.bleu import bleu, sentence_statistics
from nmt.report.comparison import build_comparison

SCORES = {"human": {"better": "high", "worst": 0}, "mqm": {}}


@pytest.mark.slow
def test_plain_numpy_gives_the_same_differences(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    generator = np.random.default_rng(5)
    words = np.clip(np.exp(generator.normal(3, 0.7, 500)).round(), 3, 90).astype(int)
    sentences = pd.DataFrame({"seg": np.arange(1, 501), "words": words})
    sentences["document"] = [f"d{n // 6}" for n in range(500)]
    sentences["domain"] = np.where(generator.random(500) < 0.4, "news", "social")
    parts = []
    for place, system in enumerate("ABC"):
        human = 80 - place - 8 * np.log(words) + generator.normal(0, 5, 500)
        mqm = generator.poisson(words / 10)
        parts.append(sentences.assign(system=system, human=human, mqm=mqm))
    table = pd.concat(parts)
    file = tmp_path / "table.tsv"
    table.rename(columns={"seg": "seg_id"}).to_csv(file, sep="\t", index=False)
    comparison = build_comparison(
        CompareConfig(
            scores={name: {"file": str(file), **given} for name, given in SCORES.items()}
            | {"against": "human"},
            document="document",
            domain="domain",
            short=10,
            long=40,
        )
    )
    measure(table, ["human", "mqm:25"], "human", (10, 40))
    lines = [line.split(",") for line in capsys.readouterr().out.splitlines()]
    plain = {(plan, label): [*map(float, rest)] for plan, _, label, *rest in lines}
    found = comparison.against.set_index(["domain", "score", "statistic"])[["value", "low", "high"]]
    for domain, plan in (("", "all"), ("adjusted", "adjusted")):
        of_plan = found.loc[domain]
        for score, statistic, label in (
            ("human", "retention", "human"),
            ("mqm", "retention", "mqm:25"),
            ("mqm", "difference of retention", "mqm:25 - human"),
        ):
            assert of_plan.loc[(score, statistic)].tolist() == pytest.approx(
                plain[plan, label], abs=1e-5
            )


def test_plain_numpy_gives_the_same_bleu() -> None:
    generator = np.random.default_rng(2)
    pairs = [generator.choice(["a", "b", "c"], (2, 20)).tolist() for _ in range(30)]
    counts = np.array([[counts_of_bleu(*pair)] for pair in pairs], dtype=float)
    weights = [generator.random(30) for _ in range(2)]
    [[ratio]] = ratios_of_bleu(counts, weights, np.arange(30), resamples=0)
    statistics = np.array([sentence_statistics(*pair) for pair in pairs])
    short, long = (bleu(each @ statistics) for each in weights)
    assert 0 < ratio == pytest.approx(long / short)
