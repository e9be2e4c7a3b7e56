"""Rules decide by intervals: each verdict of each rule, and what is left undecided."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from nmt.config import StudyClaim, StudySection
from nmt.evaluation.bleu import bleu_scores
from nmt.evaluation.degradation import Estimate, Group, curves
from nmt.evaluation.scores import REGISTERED
from nmt.studies.verdicts import _open, apply_rule, decide, decide_length
from tests.evaluation.degradation.simulated import simulated_run
from tests.studies.conftest import asked, make


def estimate(low: float, high: float) -> Estimate:
    """A figure whose 95 % interval over many seeds has about these ends."""
    middle, error = (low + high) / 2, (high - low) / (2 * 1.959964)
    return Estimate(middle, np.zeros(1), sentences=100, seeds=3, error=error)


@pytest.mark.parametrize(
    ("rule", "margin", "ends", "verdict"),
    [
        ("above", 0, (0.1, 2), "supported"),
        ("above", 0, (-2, -0.1), "refuted"),
        ("above", 0, (-0.1, 2), "undecided"),
        ("above", 1, (0.1, 2), "undecided"),
        ("above", 3, (0.1, 2), "refuted"),
        ("below", 0, (-2, -0.1), "supported"),
        ("below", 0, (0.1, 2), "refuted"),
        ("below", -1, (-2, -0.1), "undecided"),
        ("equal", 1, (-0.5, 0.9), "supported"),
        ("equal", 1, (-0.5, 1.1), "supported"),  # the tests' interval is of 90 %
        ("equal", 1, (-0.5, 1.4), "undecided"),
        ("equal", 1, (1.1, 2), "refuted"),
        ("equal", 1, (-2, -1.1), "refuted"),
        ("equal", 1, (0.9, 1.2), "undecided"),
        ("no_fall", 1, (-0.9, 5), "supported"),
        ("no_fall", 1, (-1.8, 0), "undecided"),
        ("no_fall", 1, (-3, -1.1), "refuted"),
        ("no_fall", 1, (2, 3), "supported"),
    ],
)
def test_a_rule_and_an_interval(rule, margin, ends, verdict):
    claim = StudyClaim(rule=rule, margin=margin)
    found, tested = apply_rule(claim, estimate(*ends), 0.95, True)
    assert found == verdict
    narrow = rule in ("equal", "no_fall") and verdict != "refuted"
    assert tested["confidence"] == pytest.approx(0.9 if narrow else 0.95)
    width = (tested["high"] - tested["low"]) / (ends[1] - ends[0])
    assert width == pytest.approx(1.644854 / 1.959964 if narrow else 1, rel=1e-4)


def test_an_interval_within_the_margin_may_not_be_enough():
    """Of single runs the careful test has the word: the reason says so."""
    draw = np.random.default_rng(4)
    few = Estimate(0.0, draw.normal(0, 1, 20_000), sentences=40, df=19)
    low, high = few.interval(0.9)
    margin = 1.01 * max(-low, high)
    verdict, tested = apply_rule(StudyClaim(rule="equal", margin=margin), few, 0.95, True)
    assert verdict == "undecided"
    assert 0.05 < tested["p"] < 0.07
    assert "the interval lies within ±" in _open(StudyClaim(rule="equal", margin=margin), tested)
    assert "reaches beyond" in _open(StudyClaim(rule="equal", margin=1), tested)


def test_of_one_sentence_nothing_is_shown_to_be_absent():
    one = Estimate(0.0, np.zeros(1000), sentences=1, df=0)
    assert apply_rule(StudyClaim(rule="equal", margin=1), one, 0.95, True)[0] == "undecided"
    assert apply_rule(StudyClaim(rule="no_fall", margin=1), one, 0.95, True)[0] == "undecided"


def test_no_fall_of_a_score_that_is_better_when_lower():
    claim = StudyClaim(rule="no_fall", margin=1)
    verdicts = [
        apply_rule(claim, estimate(*ends), 0.95, False)[0]
        for ends in ((-5, 0.9), (0, 1.8), (1.1, 3), (-3, -2))
    ]
    assert verdicts == ["supported", "undecided", "refuted", "supported"]


def test_without_resamples_nothing_is_decided():
    claim = StudyClaim(rule="above", margin=0)
    assert apply_rule(claim, Estimate(5.0, np.zeros(0), 10), 0.95, True) == ("undecided", {})


def test_claims_are_decided_from_run_folders(tiny, finished, look):
    """The made-up RNNsearch is far better than the RNNencdec, which is far below 50 BLEU."""
    wins, magic = decide(look(tiny, finished))
    assert (wins.verdict, magic.verdict) == ("supported", "refuted")
    assert 0 < wins.low < wins.value < wins.high
    results = [
        json.loads(file.read_text())["test"]["by_length"]["bleu"]["all"]["score"]
        for file in sorted(finished.glob("runs/*/results.json"))
    ]  # of RNNencdec, then of RNNsearch
    assert wins.value == pytest.approx(sum(results[2:]) / 2 - sum(results[:2]) / 2, rel=1e-6)
    assert (wins.sentences, wins.seeds, wins.of) == (250, 2, "runs")
    assert wins.p < 0.05
    assert magic.high < 50


def test_a_claim_whose_runs_are_missing_is_not_decided(tiny, finished, look, tmp_path):
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    shutil.rmtree(next(tmp_path.glob("runs/rnnsearch50-seed2-*")))
    wins, magic = decide(look(tiny, tmp_path))
    assert (wins.verdict, wins.reason) == ("undecided", "1 of 4 runs missing")
    assert magic.verdict == "refuted"


def test_a_run_without_its_translations_is_named(tiny, finished, look, tmp_path):
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    next(tmp_path.glob("runs/rnnsearch50-seed2-*/translations/by_length.jsonl")).unlink()
    wins, magic = decide(look(tiny, tmp_path))
    assert wins.verdict == "undecided"
    assert wins.reason == "no translations/by_length.jsonl of rnnsearch50 with seed 2"
    assert magic.verdict == "refuted"


def test_other_statistics(finished, look, tiny):
    alone = StudyClaim("a", "b", ["rnnencdec50"], "slope", rule="above", margin=0)
    pair = ["rnnencdec50", "rnnsearch50"]
    claims = {
        "steeper": replace(alone, runs=pair, rule="below"),
        "no-bucket": replace(alone, range="beyond_cap"),
        "tenth": replace(alone, statistic="tenth", margin=200),
        "alignment": replace(alone, statistic="score", score="alignment_error_rate"),
    }
    study = asked(tiny, claims)
    steeper, no_bucket, tenth, alignment = decide(look(study, finished))
    assert steeper.value < 0
    assert no_bucket.reason == "no slope there: fewer than 3 buckets"
    assert (tenth.verdict, tenth.claim.margin) == ("refuted", 200)
    assert 0 < tenth.value < 80
    assert alignment.reason.startswith("not all runs have ")


@pytest.mark.parametrize(
    ("statistic", "rule", "margin", "verdict"),
    [
        ("half", "below", 20, "refuted"),
        ("half", "above", 60, "supported"),
        ("half", "above", 69, "undecided"),
        ("breakpoint", "below", 20, "undecided"),
    ],
)
def test_what_is_never_lost_is_lost_beyond_the_longest_sentences(statistic, rule, margin, verdict):
    flat = curves({"a": simulated_run(900, seed=1)}, [REGISTERED["bleu"]], resamples=200)
    claim = StudyClaim("a", "b", ["flat"], statistic, rule=rule, margin=margin)
    groups = [Group([flat["bleu"]["a"]], 50)]
    found = decide_length("n", claim, REGISTERED["bleu"], groups, StudySection())
    assert found.verdict == verdict, found
    assert found.value is None


def test_longer_sentences_alone(finished, look, tiny):
    one = StudyClaim("a", "b", ["rnnencdec50"], "score", rule="above", margin=0, longer_than=20)
    claims = {"score": one, "nobody": replace(one, longer_than=999)}
    score, nobody = decide(look(asked(tiny, claims, seeds=[1]), finished))
    rows = [
        [json.loads(line) for line in file.read_text().splitlines()]
        for file in sorted(finished.glob("runs/rnnencdec50-*/translations/by_length.jsonl"))
    ]
    longer = [[row["bleu_stats"] for row in each if row["length"] > 20] for each in rows]
    expected = np.mean([bleu_scores(np.array(each).sum(0)) for each in longer])
    assert score.value == pytest.approx(expected, rel=1e-6)
    assert score.sentences == len(longer[0]) < len(rows[0])
    assert nobody.verdict == "undecided"


def test_runs_on_other_text_are_not_compared(tiny, finished, look, tmp_path):
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    run = tiny.groups["rnnsearch50"].runs[1]
    shutil.rmtree(next(tmp_path.glob("runs/rnnsearch50-seed2-*")))
    folder = make(tiny, tmp_path, run)
    file = folder / "translations" / "by_length.jsonl"
    file.write_text(file.read_text().replace("dans", "vers"), encoding="utf-8")
    wins, _ = decide(look(tiny, tmp_path))
    assert wins.reason == "by_length is other text in some runs"
