"""Claims: a filter accepts only the runs of its command, and runs with known scores get the right verdict."""

import hashlib
import shlex

import numpy as np
import pytest
import yaml
from scipy import stats

from benchmarks import claims
from benchmarks.claims import (
    apply_rule,
    claims_table,
    decided_rows,
    matches,
    read_claims,
    verdict_words,
)
from benchmarks.decisions import enough_resamples
from nmt.config.loading import load
from nmt.config.schema import to_containers
from nmt.evaluation.constant_error import simulated_systems
from nmt.evaluation.estimate import Estimate
from nmt.evaluation.scores import score_of_name
from nmt.evaluation.scores.bleu import sentence_statistics
from nmt.evaluation.significance import holm
from nmt.report.comparison import compare_finished
from nmt.report.runs import FinishedRun
from nmt.utils.errors import InputError
from tests.helpers import ROOT
from tests.helpers.bleu import bleu_by_hand

FILES = [
    pytest.param(path, marks=pytest.mark.slow if path.stem != "scoring" else ())
    for path in sorted((ROOT / "benchmarks/claims").glob("*.yaml"))
]
WORDS = [f"w{number}" for number in range(40)]


def typed_for(file, name):
    """Returns the overrides with which `nmt.train` makes a run of a group."""
    group = file.runs[name]
    words = [file.make, file.runs[group.of or name].make, group.make]
    typed = [word for word in shlex.split(" ".join(words)) if not word.startswith("sets=")]
    return list(dict.fromkeys(typed))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.slow
def test_filter_matches_the_runs_of_its_command(path, composer):
    file = read_claims(path)
    assert all(score_of_name(claim.score, "score") for claim in file.claims.values())
    made = {
        name: (typed_for(file, name), group.together)
        for name, group in file.runs.items()
        if group.command != "benchmarks.phrase_based"
    }
    for name, (typed, together) in made.items():
        config = to_containers(load(composer(*typed)))
        sources = {"others": [{}, {}] if together else []}
        run = FinishedRun(name, {"config": config, "model": "", "sources": sources})
        taking = {other for other, g in file.runs.items() if matches(run, g.where, file.where)}
        alike = {other for other, given in made.items() if given == made[name]}
        assert taking == alike, name


@pytest.mark.parametrize(
    ("where", "default", "accepted"),
    [
        ({"model.unit._target_": "LstmUnit"}, {}, True),
        ({"model.unit._target_": [None, "GatedUnit"]}, {}, False),
        ({"model.attention._target_": [None, "Attention"]}, {}, True),
        ({"data.max_length": [30, 50]}, {"seed": 1}, True),
        ({}, {"data.max_length": 30}, False),
        ({"data.max_length": 50}, {"data.max_length": 30}, True),
        ({}, {"model.window": 3}, True),  # a run without the key is accepted
        ({"system": "RNNsearch", "members": 3}, {}, True),
        ({"members": 1}, {}, False),
    ],
)
def test_filter_accepts_values_lists_and_short_names(where, default, accepted):
    config = {"data": {"max_length": 50}, "model": {"unit": {"_target_": "nmt.layers.LstmUnit"}}}
    results = {"config": config, "model": "RNNsearch", "sources": {"others": [{}, {}]}}
    assert matches(FinishedRun("a", results), where, default) is accepted


def run_of(name, seed, wrong, *, text=40):
    """Makes a run with `text` sentences of 10 words and `text` of 50; each has `wrong(length)` wrong words."""
    records = []
    for number in range(2 * text):
        length = 10 if number % 2 else 50
        reference = [WORDS[(number + place) % 40] for place in range(length)]
        bad = wrong(length)
        written = reference[: length - bad] + [f"x{place}" for place in range(bad)]
        records.append(
            {"id": number, "length": length, "bleu_stats": sentence_statistics(written, reference).tolist(),
             "source": reference, "reference": reference, "hypothesis": written, "nll": float(bad)}
        )  # fmt: skip
    results = {"config": {"model": {"title": name}}, "seed": seed, "test": {"test": {}}}
    return FinishedRun(f"{name} {seed}", results, records={"test": records})


def corpus_bleu(run, lengths):
    rows = [row["bleu_stats"] for row in run.translations("test") if row["length"] in lengths]
    return bleu_by_hand(np.sum(rows, axis=0))


@pytest.fixture
def decide(tmp_path):
    """Returns decide(runs, **claim), which decides a claim on groups a and b, and returns rows and table."""

    def decided(finished, second=None, /, **claim):
        claim = {"claim": "so", "source": "nobody", "runs": ["a", "b"], **claim}
        content = {
            "seeds": 2, "make": "regime=tiny", "claims": {"c": claim},
            "runs": {
                name: {"where": {"model.title": name}, "make": f"model={name}"} for name in "ab"
            },
        }  # fmt: skip
        content["runs"]["b"] |= second or {}
        path = tmp_path / "mine.yaml"
        path.write_text(yaml.safe_dump(content))
        file = read_claims(path)
        rows = list(decided_rows(file, finished, 200))
        return rows, claims_table(file, rows)

    return decided


@pytest.fixture(scope="module")
def runs():
    """Sentences of group a have 2 wrong words; those of group b have 2 if short, and 20 + seed if long."""
    a = [run_of("a", seed, lambda length: 2) for seed in (1, 2)]
    b = [run_of("b", seed, lambda length, s=seed: 2 if length == 10 else 20 + s) for seed in (1, 2)]
    return [*a, *b]


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ({"rule": {"above": 0}}, "supported"),
        ({"rule": {"below": 0}}, "refuted"),
        ({"rule": {"within": 1}}, "refuted"),
        ({"rule": {"within": 1}, "lengths": [None, 10]}, "supported"),
        ({"rule": {"above": 0}, "lengths": [None, 10]}, "undecided"),
        ({"rule": {"above": 0.2}, "statistic": "retention"}, "supported"),
        ({"rule": {"above": 0.9}, "statistic": "retention", "runs": ["b"]}, "refuted"),
        ({"rule": {"above": -0.9}, "statistic": "excess_retention", "runs": ["b"]}, "supported"),
        ({"rule": {"below": 0}, "statistic": "retention", "long": 70}, "undecided"),
        (
            # excess retention needs simulated systems, which have no NLL
            {
                "rule": {"above": 0},
                "statistic": "excess_retention",
                "score": "nll_per_word",
                "runs": ["b"],
            },
            "undecided",
        ),
    ],
)
def test_verdict_rules(decide, runs, claim, verdict):
    [row, *_], _ = decide(runs, **claim)
    assert row["verdict"] == verdict
    shown = verdict if verdict == "undecided" else f"{verdict}, for these models only"
    assert verdict_words(row) == shown


@pytest.mark.parametrize(
    ("score", "margin", "verdict"),
    [
        (0.5, 1, "supported"),
        (0.5, 0.8, "undecided"),
        (1.5, 1, "refuted"),
        (-1.5, 1, "refuted"),
        (-1.4, 1, "undecided"),
    ],
)
def test_equivalence_is_decided_within_its_margin(score, margin, verdict):
    """With a standard error of 0.2 and 10 degrees of freedom, the interval of 95 % is ± 0.446."""
    estimate = Estimate(score, np.empty(0), 90, None, 3, 10, 0.2)
    beyond = stats.t.cdf((score - margin) / 0.2, 10), stats.t.cdf((-margin - score) / 0.2, 10)
    assert apply_rule({"within": margin}, estimate) == (verdict, pytest.approx(max(beyond)))


def simulated_retention(run):
    """Returns the mean retention of simulated systems with a constant error rate."""
    draws = simulated_systems(run.translations("test"))
    simulated = [FinishedRun("", {}, records={"test": build()}) for _, build in draws]
    return np.mean([corpus_bleu(each, (50,)) / corpus_bleu(each, (10,)) for each in simulated])


@pytest.mark.slow
def test_statistics_equal_sacrebleu(decide, runs):
    def mean(name, lengths):
        return np.mean([corpus_bleu(run, lengths) for run in runs if run.label.startswith(name)])

    def value(**claim):
        return decide(runs, rule={"above": 0}, **claim)[0][0]["estimate"].score

    assert value() == pytest.approx(mean("a", (10, 50)) - mean("b", (10, 50)))
    assert value(lengths=[50, None]) == pytest.approx(mean("a", (50,)) - mean("b", (50,)))
    assert value(lengths=[None, 10]) == pytest.approx(mean("a", (10,)) - mean("b", (10,)), abs=1e-9)
    kept = mean("b", (50,)) / mean("b", (10,))
    assert value(runs=["b"], statistic="retention") == pytest.approx(kept)
    constant = np.mean([simulated_retention(run) for run in runs[2:]])
    found = value(runs=["b"], statistic="excess_retention")
    assert found == pytest.approx(kept - constant, abs=0.01)
    assert abs(constant) > 0.1
    values = [f"{corpus_bleu(run, (10, 50)):.2f}" for run in runs]
    [row], _ = decide(runs, rule={"above": 0})
    assert row["values"] == f"{', '.join(values[:2])} minus {', '.join(values[2:])}"
    uneven = [run_of("b", 1, lambda length: length // 4), run_of("b", 2, lambda length: 1)]
    kept = [corpus_bleu(run, (50,)) / corpus_bleu(run, (10,)) for run in uneven]
    [row, *_], _ = decide(uneven, runs=["b"], statistic="retention", rule={"above": 0})
    assert row["values"] == ", ".join(f"{each:.3f}" for each in kept)
    # Each seed has its own simulated system.
    [row, *_], _ = decide(uneven, runs=["b"], statistic="excess_retention", rule={"above": 0})
    excess = [k - simulated_retention(run) for k, run in zip(kept, uneven, strict=True)]
    assert [float(each.replace("−", "-")) for each in row["values"].split(",")] == pytest.approx(
        excess, abs=0.01
    )


def test_fall_is_decided_with_and_without_brevity_penalty(decide, runs):
    rows, table = decide(runs, statistic="retention", rule={"above": 0})
    corrected = holm([row["p"] for row in rows])
    assert [cell.value for cell in table.frame["p, Holm"]] == corrected
    parts = [text.partition(" of ")[2] for text in table.frame["measured"]]
    scores = [text.partition(" of a minus b")[0] for text in parts]
    assert scores == ["BLEU", "BLEU without brevity penalty"]


def test_resamples_grow_for_close_verdicts(decide, runs, monkeypatch):
    """The limit of the second rule equals an end of the interval, so more resamples are drawn."""
    drawn = []

    def counted(samples, estimate, limits):
        drawn.append(len(estimate.resampled))
        return enough_resamples(samples, estimate, limits)

    monkeypatch.setattr(claims, "enough_resamples", counted)
    [row], _ = decide(runs, rule={"above": 0})
    assert drawn == [200]
    decide(runs, rule={"above": row["estimate"].interval()[0]})
    assert drawn[1:3] == [200, 800]
    monkeypatch.setattr(claims, "enough_resamples", lambda *_: False)
    [row], _ = decide(runs, rule={"above": 0})
    assert (row["verdict"], row["reason"]) == ("undecided", "more resamples may change the verdict")


def test_missing_runs_are_named_with_their_command(decide, runs, tmp_path):
    [row], table = decide(runs[:3], rule={"above": 0})
    assert row["verdict"] == "runs missing"
    assert table.notes[1:] == [
        "c: missing: b",
        "Missing runs: python -m nmt.train regime=tiny model=b seed=2",
    ]
    digest = hashlib.sha256((tmp_path / "mine.yaml").read_bytes()).hexdigest()
    assert f"sha256 {digest}." in table.markdown()
    _, table = decide(runs[2:], rule={"above": 0})
    assert table.notes[-1] == "Missing runs: python -m nmt.train -m regime=tiny model=a seed=1,2"


@pytest.mark.parametrize(
    ("second", "verdict"),
    [({}, "undecided"), ({"command": "nmt.evaluate", "of": "a"}, "supported")],
)
def test_models_evaluated_twice_are_paired(decide, second, verdict):
    """Scores differ more between seeds than between groups; pairing by seed shows the difference of groups."""
    seeds = (1, 2, 3)
    runs = [run_of("a", seed, lambda _, s=seed: 2 * s) for seed in seeds]
    runs += [run_of("b", seed, lambda _, s=seed: 2 * s + 1) for seed in seeds]
    [row], _ = decide(runs, second, rule={"above": 0})
    # Only with three seeds does the interval include the variation between seeds.
    assert row["verdict"] == verdict_words(row) == verdict


@pytest.mark.parametrize(
    ("change", "entry"),
    [
        ({"rule": {"over": 0}}, "claims.c.rule"),
        ({"rule": {"above": 0}, "runs": ["z"]}, "claims.c.runs"),
        ({"rule": {"above": 0}, "statistic": "slope"}, "claims.c.statistic"),
        ({"rule": {"above": 0}, "margin": 1}, "margin"),
    ],
)
def test_refuses_a_wrong_entry(decide, runs, change, entry):
    with pytest.raises(InputError, match=entry):
        decide(runs, **change)


@pytest.mark.slow
def test_excess_retention_is_that_of_the_comparison(decide):
    """Claims and comparison give the same estimate and interval for three seeds."""
    runs = [
        run_of("b", s, lambda length, s=s: 2 if length == 10 else 20 + 2 * s) for s in (1, 2, 3)
    ]
    [row, *_], _ = decide(runs, runs=["b"], statistic="excess_retention", rule={"above": 0.5})
    estimate = row["estimate"]
    assert len(estimate.resampled) == 200
    found = compare_finished(runs, resamples=200).retention
    [of_page] = found.query("key == 'bleu' and statistic == 'excess retention'").itertuples()
    assert (of_page.value, of_page.low, of_page.high) == pytest.approx(
        (estimate.score, *estimate.interval())
    )
    assert of_page.interval == "sentences and seeds"
