"""Studies that are wrong are refused by the key that is."""

from __future__ import annotations

import copy

import pytest
from omegaconf import OmegaConf

from nmt.config import StudyClaim, StudyConfig, StudyRuns
from nmt.config.study_checks import load_study
from nmt.utils.errors import InputError

STUDY = {
    "runs": {"a": {"overrides": ["model=rnnencdec"]}, "b": {"seeds": [4, 5]}},
    "claims": {
        "c": {
            "claim": "a is better",
            "source": "someone",
            "runs": ["a", "b"],
            "statistic": "score",
            "rule": "above",
            "margin": 0,
        }
    },
}


def load(change=lambda study: None):
    study = copy.deepcopy(STUDY)
    change(study)
    return load_study(OmegaConf.merge(OmegaConf.structured(StudyConfig), {"study": study}))


def test_runs_and_claims_have_their_types():
    study = load()
    assert isinstance(study.runs["a"], StudyRuns)
    assert study.claims["c"] == StudyClaim(**STUDY["claims"]["c"])
    assert (study.claims["c"].score, study.claims["c"].set) == ("bleu", "by_length")


def claim(**keys):
    return lambda study: study["claims"]["c"].update(keys)


def without(key):
    return lambda study: study["claims"]["c"].pop(key)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda study: study.pop("claims"), "study: none is chosen; type +study=NAME"),
        (lambda study: study["runs"].update({"a b": {}}), "study.runs.a b: a name is of letters"),
        (lambda study: study["runs"].update(a=[1]), "study.runs.a: takes the keys title, command, of"),
        (lambda study: study["runs"]["a"].update(lr=1), "study.runs.a.lr: Key 'lr' not in"),
        (lambda study: study["runs"]["a"].update(seeds=[]), "study.runs.a.seeds=[]: must name a"),
        (lambda study: study["runs"]["a"].update(seeds=[1, 1]), "study.runs.a.seeds=[1, 1]: must name"),
        (lambda study: study["runs"]["a"].update(seeds=[-1]), "study.runs.a.seeds=[-1]: must be at"),
        (lambda study: study["runs"]["a"].update(minutes=0), "study.runs.a.minutes=0.0: must be above"),
        (lambda study: study["runs"]["a"].update(sweep={"x": 1}), "study.runs.a.sweep.x=1: must be a"),
        (lambda study: study.update(seeds=[]), "study.runs.a.seeds=[]: must name a seed"),
        (lambda study: study.update(only=["d"]), "study.only=[d]: no such claim; there are c"),
        (lambda study: study.update(accept="any"), "study.accept=any: must be one of same, conf"),
        (lambda study: study.update(resamples=10), "study.resamples=10: must be at least 100"),
        (without("margin"), "study.claims.c.margin: must be given (in points of the score"),
        (without("claim"), "study.claims.c.claim: must be given (the sentence that is decided)"),
        (claim(claim=" "), "study.claims.c.claim: empty; it is the sentence that is decided"),
        (claim(margin="much"), "study.claims.c.margin: Value 'much' of type 'str' could not"),
        (claim(statistic="median"), "study.claims.c.statistic=median: must be one of score, slope"),
        (claim(rule="same"), "study.claims.c.rule=same: must be one of above, below, equal, no_fall"),
        (claim(range="short"), "study.claims.c.range=short: must be one of all, to_cap"),
        (claim(threshold=1), "study.claims.c.threshold: Key 'threshold' not in"),
        (claim(runs=["a", "d"]), "study.claims.c.runs: no group of runs 'd'; study.runs has a, b"),
        (claim(runs=["a", "a"]), "study.claims.c.runs=[a, a]: score is of one group, or two that"),
        (claim(runs=[]), "study.claims.c.runs=[]: score is of one group"),
        (claim(statistic="half"), "study.claims.c.runs=[a, b]: half is of one group"),
        (claim(statistic="half", runs=["a"], rule="equal"), "study.claims.c.rule=equal: a length in"),
        (claim(statistic="half", runs=["a"], range="to_cap"), "study.claims.c.range=to_cap: half is"),
        (claim(rule="equal"), "study.claims.c.margin=0.0: must be above 0 for rule=equal"),
        (claim(rule="no_fall", margin=-1), "study.claims.c.margin=-1.0: must be above 0 for rule=no_f"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(change, said):
    with pytest.raises(InputError) as refusal:
        load(change)
    assert str(refusal.value).startswith(said)
    assert "\n" not in str(refusal.value)


def test_the_words_of_the_statistics_are_those_of_the_module_that_computes_them():
    from nmt.config.study import LENGTHS, RANGES
    from nmt.evaluation import degradation
    from nmt.evaluation.degradation.findings import LOSSES

    assert degradation.RANGES == RANGES
    assert {*LOSSES, "breakpoint"} == set(LENGTHS)
