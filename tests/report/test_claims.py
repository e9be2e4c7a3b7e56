"""Claims: filters that fit their commands, and verdicts on hand-made runs with known answers."""

import shlex

import numpy as np
import pytest
import yaml
from sacrebleu.metrics import BLEU

from nmt.cli.composition import conf_folder
from nmt.config.schema import to_containers
from nmt.evaluation.scores import score_of_name
from nmt.evaluation.significance import holm
from nmt.report.claims import decide_claims, matches, read_claims
from nmt.report.runs import FinishedRun
from nmt.utils.errors import InputError
from tests.helpers.run_folders import ngram_statistics

FILES = sorted((conf_folder() / "claims").glob("*.yaml"))
WORDS = [f"w{number}" for number in range(40)]


def typed_for(file, name):
    """The overrides that make a group's configuration, as `nmt.train` would take them."""
    group = file.runs[name]
    words = [file.make, group.make if group.of is None else file.runs[group.of].make, group.make]
    typed = [word for word in shlex.split(" ".join(words)) if not word.startswith("sets=")]
    return list(dict.fromkeys(typed))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_filter_takes_the_runs_of_its_command_and_no_others(path, composer):
    file = read_claims(path)
    assert all(score_of_name(claim.score, "score") for claim in file.claims.values())
    members = {name: 3 if group.together else 1 for name, group in file.runs.items()}
    for made, group in file.runs.items():
        if group.command == "baseline":
            continue
        config = to_containers(composer(*typed_for(file, made)))
        others = [{}] * (members[made] - 1)
        run = FinishedRun(made, {"config": config, "model": "", "sources": {"others": others}})
        found = {name for name, each in file.runs.items() if matches(run, each.where, file.where)}
        same = {
            name
            for name, each in file.runs.items()
            if typed_for(file, name) == typed_for(file, made) and each.together == group.together
        }
        joined = {name for name in found if "stress" in group.make + file.runs[name].make}
        assert found - joined == same - joined, made


def hypothesis(reference, wrong):
    """A reference with its last words replaced."""
    kept = len(reference) - wrong
    return reference[:kept] + [f"x{number}" for number in range(wrong)]


def run_of(name, seed, wrong, *, text=40):
    """A run whose translations of `text` short and `text` long sentences have `wrong(length)` bad words."""
    records = []
    for number in range(2 * text):
        length = 10 if number % 2 else 50
        reference = [WORDS[(number + place) % 40] for place in range(length)]
        written = hypothesis(reference, wrong(length))
        records.append(
            {"id": number, "length": length, "bleu_stats": ngram_statistics(written, reference),
             "source": reference, "reference": reference, "hypothesis": written}
        )  # fmt: skip
    results = {"config": {"model": {"title": name}}, "seed": seed, "test": {"test": {}}}
    return FinishedRun(f"{name} {seed}", results, records={"test": records})


def corpus_bleu(run, lengths):
    rows = [row["bleu_stats"] for row in run.translations("test") if row["length"] in lengths]
    summed = [int(value) for value in np.sum(rows, axis=0)]
    return BLEU.compute_bleu(summed[:4], summed[4:8], summed[8], summed[9]).score


@pytest.fixture
def decide(tmp_path):
    """decide(runs, **claim): the verdict of one claim about the groups a and b, of two seeds each."""

    def decided(finished, **claim):
        claim = {"claim": "so", "source": "nobody", "runs": ["a", "b"], **claim}
        content = {
            "seeds": 2, "make": "regime=tiny", "claims": {"c": claim},
            "runs": {
                name: {"where": {"model.title": name}, "make": f"model={name}"} for name in "ab"
            },
        }  # fmt: skip
        path = tmp_path / "mine.yaml"
        path.write_text(yaml.safe_dump(content))
        return decide_claims(path, finished, resamples=200)

    return decided


@pytest.fixture
def runs():
    """b loses half of a long sentence, a two words of every sentence; seeds differ a little."""
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
        ({"rule": {"above": -0.9}, "statistic": "constant_error", "runs": ["b"]}, "supported"),
        ({"rule": {"below": 0}, "statistic": "retention", "long": 70}, "undecided"),
    ],
)
def test_verdicts(decide, runs, claim, verdict):
    found = decide(runs, **claim).verdicts[0]
    assert found.verdict == verdict
    assert found.shown == (verdict if verdict == "undecided" else f"{verdict}, of these models")


def test_the_statistics_are_those_of_sacrebleu(decide, runs):
    def mean(name, lengths):
        return np.mean([corpus_bleu(run, lengths) for run in runs if run.label.startswith(name)])

    def value(**claim):
        return decide(runs, rule={"above": 0}, **claim).verdicts[0].estimate.score

    assert value() == pytest.approx(mean("a", (10, 50)) - mean("b", (10, 50)))
    assert value(lengths=[11, None]) == pytest.approx(mean("a", (50,)) - mean("b", (50,)))
    kept = mean("b", (50,)) / mean("b", (10,))
    assert value(runs=["b"], statistic="retention") == pytest.approx(kept)
    seeds = decide(runs, rule={"above": 0}).verdicts[0].seeds
    assert seeds == [
        [pytest.approx(corpus_bleu(run, (10, 50))) for run in each] for each in (runs[:2], runs[2:])
    ]


def test_a_fall_is_decided_with_the_brevity_penalty_and_without(decide, runs):
    found = decide(runs, statistic="retention", rule={"above": 0})
    assert [each.claim.score for each in found.verdicts] == ["bleu", "bleu_precisions"]
    p = [each.p for each in found.verdicts]
    assert [cell.value for cell in found.table.frame["p, Holm"]] == holm(p)
    assert "BLEU without brevity penalty" in found.markdown()


def test_resamples_grow_where_the_verdict_hangs_on_them(decide, runs):
    """The number of the rule is the end of the interval itself."""
    estimate = decide(runs, rule={"above": 0}).verdicts[0].estimate
    assert len(estimate.resampled) == 200
    again = decide(runs, rule={"above": estimate.interval().low}).verdicts[0]
    assert len(again.estimate.resampled) > 200


def test_missing_runs_are_named_with_the_command_that_makes_them(decide, runs):
    found = decide(runs[:3], rule={"above": 0})
    assert found.verdicts[0].verdict == "runs missing"
    assert found.verdicts[0].commands == ["python -m nmt.train regime=tiny model=b seed=2"]
    assert (
        "    python -m nmt.train -m regime=tiny model=a seed=1,2\n"
        in decide(runs[2:], rule={"above": 0}).markdown()
    )


def test_models_evaluated_twice_are_paired(tmp_path):
    """Seeds differ by far more than the two evaluations of a model, and cancel."""
    wrong = {1: 2, 2: 4, 3: 6}
    trained = [run_of("a", seed, lambda _, s=seed: wrong[s]) for seed in wrong]
    again = [run_of("b", seed, lambda _, s=seed: wrong[s] + 1) for seed in wrong]
    groups = {"a": {"where": {"model.title": "a"}}, "b": {"where": {"model.title": "b"}}}
    claim = {"claim": "so", "source": "x", "runs": ["a", "b"], "rule": {"above": 0}}
    verdicts = {}
    for paired in (False, True):
        if paired:
            groups["b"] |= {"command": "evaluate", "of": "a"}
        path = tmp_path / f"{paired}.yaml"
        path.write_text(yaml.safe_dump({"runs": groups, "claims": {"c": claim}}))
        verdicts[paired] = decide_claims(path, [*trained, *again], 200).verdicts[0].verdict
    assert verdicts == {False: "undecided", True: "supported"}


@pytest.mark.parametrize(
    ("change", "entry"),
    [
        ({"rule": {"over": 0}}, "claims.c.rule"),
        ({"rule": {"above": 0}, "runs": ["z"]}, "claims.c.runs"),
        ({"rule": {"above": 0}, "statistic": "slope"}, "claims.c.statistic"),
        ({"rule": {"above": 0}, "margin": 1}, "margin"),
    ],
)
def test_a_wrong_entry_is_named(decide, runs, change, entry):
    with pytest.raises(InputError, match=entry):
        decide(runs, **change)
