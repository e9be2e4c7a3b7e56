"""What a study would train: composed as nmt.train composes it, and refused by the key of the study."""

from __future__ import annotations

import dataclasses
import doctest

import pytest
import yaml

from nmt.config.schema import to_containers
from nmt.studies import planned as planned_module
from nmt.studies.plan import plan_of
from nmt.studies.planned import identity
from nmt.utils.errors import InputError
from tests.studies.conftest import CLAIM, composed, planned


def test_a_group_has_a_run_for_each_seed(tiny):
    assert list(tiny.groups) == ["rnnencdec50", "rnnsearch50"]
    runs = tiny.groups["rnnsearch50"].runs
    assert [run.seed for run in runs] == [run.config.seed for run in runs] == [1, 2]
    assert runs[0].config.model.title == "RNNsearch"
    assert runs[0].config.regime == "tiny"
    assert runs[1].command == (
        "python -m nmt.train regime=tiny trainer=cpu logger=none trainer.progress=false "
        "report.heatmaps=0 +experiment=rnnsearch50 seed=2"
    )


def test_only_the_runs_of_the_claims_that_are_asked_for(magic):
    assert set(magic.wanted) == {"rnnencdec50"}
    assert list(magic.section.claims) == ["attention-wins", "no-magic"]


def test_a_sweep_has_a_run_for_each_combination(swept):
    group = swept.groups["fixed"]
    assert [point.values for point in group.points] == [
        {"optimizer.lr": lr} for lr in (0.001, 0.002, 0.004)
    ]
    assert [point.run.config.optimizer.lr for point in group.points] == [0.001, 0.002, 0.004]
    assert {point.run.seed for point in group.points} == {1}
    runs = group.points[1].runs
    assert [(run.seed, run.config.optimizer.lr) for run in runs] == [(1, 0.002), (2, 0.002)]
    assert runs[0].identity == group.points[1].run.identity


def test_what_makes_two_runs_the_same(tiny):
    config = to_containers(tiny.groups["rnnsearch50"].runs[0].config)

    def differs(section: str, **values: object) -> bool:
        other = (
            {**config, section: {**config[section], **values}} if section else {**config, **values}
        )
        return identity(other) != identity(config)

    assert not differs("", name="another", experiment="custom", regime="laptop")
    assert not differs("trainer", threads=7, progress=True, accelerator="auto")
    assert not differs("report", heatmaps=3)
    assert not differs("logger", name="csv")
    assert not differs("evaluation", scores=["chrf"])
    assert differs("", seed=2)
    assert differs("model", dropout=0.25)
    assert differs("data", max_length=30)
    assert differs("search", beam_size=3)
    assert differs("evaluation", edges=[10, 20])
    lacking = {**config, "search": {**config["search"]}}
    del lacking["search"]["replace_unk"]  # a key that an earlier version did not have
    assert identity(lacking) == identity(config)


EVALUATE = {"command": "evaluate", "of": "b"}


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ({"overrides": ["+experiment=rnnsearch51"]}, "study.runs.a: experiment=rnnsearch51: no such"),
        ({"overrides": ["seed=3"]}, "study.runs.a.overrides: seed=3: seed is the study's to say"),
        ({"overrides": ["hydra.run.dir=b"]}, "study.runs.a.overrides: hydra.run.dir=b: hydra.run.dir is"),
        ({"overrides": ["size.hidden=24,48"]}, "study.runs.a.overrides: size.hidden=24,48: more than"),
        ({"overrides": ["data.batch_size=0"]}, "study.runs.a: data.batch_size=0: must be at least 1"),
        ({"overrides": ["size.hiden=2"]}, "study.runs.a: size.hiden: no such key; did you mean"),
        ({"sweep": {"seed": [1, 2]}}, "study.runs.a.sweep: seed=1: seed is the study's to say"),
        ({"sweep": {"size.hidden": [24, 0]}}, "study.runs.a: size.hidden=0: must be at least 1"),
        ({"command": "probe"}, "study.runs.a.command=probe: must be one of train, evaluate, baseline"),
        ({"of": "b"}, "study.runs.a.of: is for command=evaluate, not for train"),
        ({"command": "baseline", "together": True}, "study.runs.a.together: is for command=evaluate"),
        ({"command": "baseline", "sweep": {"seed": [1]}}, "study.runs.a.sweep: is for command=train"),
        ({"command": "baseline", "overrides": ["phrase_based.alignment=x"]},
         "study.runs.a: phrase_based.alignment=x: must be one of"),
        ({"command": "evaluate"}, "study.runs.a.of=None: must name a group that is trained: b"),
        ({**EVALUATE, "of": "a"}, "study.runs.a.of=a: must name a group that is trained: b"),
        ({**EVALUATE, "sweep": {"search.beam_size": [1]}}, "study.runs.a.sweep: is for command=train"),
        ({**EVALUATE, "seeds": [1, 3]}, "study.runs.a.seeds: b has no seed 3"),
        ({"reverse": "b"}, "study.runs.a.reverse: is for command=evaluate, not for train"),
        ({**EVALUATE, "reverse": "a"}, "study.runs.a.reverse=a: must name a group that is trained: b"),
        ({**EVALUATE, "reverse": "b", "together": True}, "study.runs.a.reverse: is for single models"),
        ({**EVALUATE, "reverse": "b"}, "study.runs.a.reverse=b: translates en to fr, not fr to en"),
        ({**EVALUATE, "overrides": ["model.dropout=0"]},
         "study.runs.a.overrides: model.dropout: belongs to the training run"),
        ({**EVALUATE, "overrides": ["checkpoint=FILE"]},
         "study.runs.a.overrides: checkpoint=FILE: checkpoint is the study's to say"),
        ({**EVALUATE, "overrides": ["evaluation.attention=hard"]},
         "study.runs.a.overrides: evaluation.attention=hard: must be one of"),
        ({**EVALUATE, "overrides": ["evaluation.atention=argmax"]},
         "study.runs.a.overrides: evaluation.atention: no such key"),
    ],
)  # fmt: skip
def test_runs_that_would_be_refused_are(runs, said):
    section = {"runs": {"a": runs, "b": {}}, "claims": {"c": {**CLAIM, "runs": ["a"]}}}
    with pytest.raises(InputError) as refusal:
        planned(**section)
    assert str(refusal.value).startswith(said)


def test_evaluations_have_what_their_models_have_and_what_is_typed(evaluated):
    """Of what is typed for all runs that part which an evaluation may change, and which is not the model's."""
    group = evaluated.groups["argmax"]
    assert group.typed == ("logger=none", "report.heatmaps=0", "evaluation.attention=argmax")
    assert (group.seeds, group.size, group.sets) == ((1, 2), 2, ("test", "by_length"))
    assert evaluated.groups["ensemble"].size == 1
    assert list(evaluated.groups) == ["argmax", "ensemble", "search", "phrase_based"]
    chosen = {"command": "evaluate", "of": "b", "seeds": [2], "overrides": ["sets=[test]"]}
    section = {
        "runs": {"a": chosen, "b": {}},
        "claims": {"c": {**CLAIM, "runs": ["a"], "set": "test"}},
    }
    study = planned("study.only=[c]", **section)
    assert (study.groups["a"].seeds, study.groups["a"].sets) == ((2,), ("test",))
    assert set(study.wanted) == {"a", "b"}  # the models are needed, too


def test_a_model_of_the_other_direction():
    back = {"overrides": ["data.languages=[fr,en]"], "seeds": [2]}
    both = {**EVALUATE, "reverse": "back", "seeds": [2]}
    section = {"runs": {"a": {}, "b": {}, "back": back, "both": both}}
    section["claims"] = {"c": {**CLAIM, "runs": ["both"]}}
    assert set(planned("study.only=[c]", **section).wanted) == {"b", "back", "both"}
    del both["seeds"]
    with pytest.raises(InputError, match=r"^study\.runs\.both\.seeds: back has no seed 1"):
        planned(**section)
    both["seeds"] = [2]
    for blind in ("b", "back"):
        runs = {name: dict(group) for name, group in section["runs"].items()}
        runs[blind]["overrides"] = [*runs[blind].get("overrides", []), "+experiment=rnnencdec50"]
        said = rf"^study\.runs\.both\.reverse=back: {blind} has no attention to read links from$"
        with pytest.raises(InputError, match=said):
            planned(**{**section, "runs": runs})


def test_all_groups_are_made_unless_claims_are_named():
    section = {"runs": {"a": {}, "b": {}}, "claims": {"c": {**CLAIM, "runs": ["a"]}}}
    assert set(planned(**section).wanted) == {"a", "b"}
    only = planned("study.only=[c]", **section)
    assert set(only.wanted) == {"a"}
    assert list(only.groups) == ["a", "b"]


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        (
            {"set": "newstest"},
            "study.claims.c.set=newstest: a has no such test set; it has test, by",
        ),
        ({"runs": ["b"]}, "study.claims.c.set=by_length: b has no such test set; it has test"),
        ({"score": "blue"}, "study.claims.c.score: no score 'blue'; there are bleu"),
        ({"score": "default"}, "study.claims.c.score: no score 'default'; there are bleu"),
    ],
)
def test_claims_about_what_runs_do_not_have(claim, said):
    section = {
        "runs": {"a": {}, "b": {**EVALUATE, "of": "a", "overrides": ["sets=[test]"]}},
        "claims": {"c": {**CLAIM, "runs": ["a"], **claim}},
    }
    with pytest.raises(InputError) as refusal:
        planned(**section)
    assert str(refusal.value).startswith(said)


@pytest.mark.parametrize(
    ("score", "group"),
    [
        ("alignment_error_rate", "fixed"),
        ("aer_function", "again"),
        ("attention_entropy", "phrases"),
        ("unread_words", "fixed"),
    ],
)
def test_claims_about_the_attention_of_models_without_any(score, group):
    section = {
        "runs": {
            "fixed": {"overrides": ["+experiment=rnnencdec50"]},
            "again": {**EVALUATE, "of": "fixed"},
            "phrases": {"command": "baseline"},
            "search": {"overrides": ["+experiment=rnnsearch50"]},
        },
        "claims": {"c": {**CLAIM, "runs": ["search", group], "score": score}},
        "overrides": [f"evaluation.scores=[default,{score}]"],
    }
    with pytest.raises(InputError) as refusal:
        planned(**section)
    assert str(refusal.value) == f"study.claims.c.score={score}: {group} has no attention"
    section["claims"]["c"]["runs"] = ["search"]
    assert planned(**section).groups["search"].attends


def test_claims_about_gold_alignments_that_there_are_not(tmp_path):
    for side in ("en", "fr"):
        (tmp_path / f"mine.{side}").write_text("a b\n")
    (tmp_path / "mine.align").write_text("0-0\n")
    files = [f"+data.test.mine.{side}={tmp_path}/mine.{name}"
             for side, name in (("source", "en"), ("target", "fr"))]  # fmt: skip
    gold = f"+data.test.mine.alignment={tmp_path}/mine.align"
    section = {
        "runs": {
            "a": {
                "overrides": ["+experiment=rnnsearch50", *files, "+data.test.mine.tokenised=true"]
            },
            "again": {**EVALUATE, "of": "a"},
            "linked": {**EVALUATE, "of": "a", "overrides": [*files, gold]},
            "whole": {
                **EVALUATE,
                "of": "a",
                "overrides": [f"+data.test={{mine:{{files:[{gold[-9:]}]}}}}"],
            },
        },
        "claims": {"c": {**CLAIM, "runs": ["a"], "set": "mine", "score": "aer_function"}},
    }
    claim = section["claims"]["c"]
    for group in ("a", "again"):
        claim["runs"] = [group]
        with pytest.raises(InputError) as refusal:
            planned(**section)
        assert str(refusal.value) == (
            "study.claims.c.score=aer_function: mine has no gold alignments"
        )
    section["overrides"] = ["evaluation.scores=[default,aer_function]"]
    for others in ({"runs": ["linked"]}, {"runs": ["whole"]}, {"set": "test"}, {"score": "bleu"}):
        section["claims"]["c"] = {**claim, "runs": ["a"]} | others
        assert planned(**section)


def test_claims_about_what_is_kept_where_it_is_named():
    more = {"overrides": ["evaluation.scores=[default,unread_words,aer_content]"]}
    section = {
        "runs": {
            "plain": {},
            "more": more,
            "again": {**EVALUATE, "of": "plain"},
            "named": {**EVALUATE, "of": "plain", **more},
            "still": {**EVALUATE, "of": "more"},
            "less": {**EVALUATE, "of": "more", "overrides": ["evaluation.scores=[default]"]},
        },
        "claims": {"c": CLAIM},
    }
    asked = ("unread_words", "aer_content")  # of those that the default leaves out
    for group in section["runs"]:
        claims = {
            score: {**CLAIM, "runs": [group], "score": score}
            for score in (*asked, "repeated_ngrams", "ter")
        }
        missing = () if group in ("more", "named", "still") else asked
        planned(**section | {"claims": {k: claims[k] for k in claims if k not in missing}})
        for score in missing:
            section["claims"]["c"] = claims[score]
            with pytest.raises(InputError) as refusal:
                planned(**section)
            assert str(refusal.value) == (
                f"study.claims.c.score={score}: {group} will not have it; "
                f"add evaluation.scores=[default,{score}] to its overrides"
            )


def test_other_weights_for_a_model_without_any():
    section = {
        "runs": {
            "fixed": {"overrides": ["+experiment=rnnencdec50"]},
            "equal": {
                **EVALUATE,
                "of": "fixed",
                "overrides": ["evaluation.attention=uniform"],
            },
        },
        "claims": {"c": {**CLAIM, "runs": ["fixed"]}},
    }
    with pytest.raises(InputError) as refusal:
        planned(**section)
    said = "study.runs.equal.overrides: evaluation.attention=uniform: fixed has no attention"
    assert str(refusal.value) == said


def test_a_study_of_ones_own_with_an_option_of_ones_own(tmp_path):
    for name, content in {
        "study/mine.yaml": {
            "runs": {"a": {"overrides": ["size=mine"]}},
            "claims": {"c": {**CLAIM, "runs": ["a"]}},
        },
        "size/mine.yaml": {"hidden": 7, "embedding": 6, "alignment": 5, "maxout": 4},
    }.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(yaml.safe_dump(content))
    typed = ("+study=mine", "study.seeds=[5]", "study.missing=leave")
    with composed(*typed, f"hydra.searchpath=[file://{tmp_path}]") as config:
        study = plan_of(config)
    assert study.name == "mine"
    assert study.typed == ("hydra.searchpath=[DIR]", "+study=mine", "study.seeds=[5]")
    (run,) = study.groups["a"].runs
    assert (run.config.model.hidden, run.seed) == (7, 5)


def test_claims_that_name_no_test_set_are_about_that_of_the_study():
    """The claims of `tiny` are about two, of which the second is named."""
    claims = planned("study.set=test").section.claims
    assert {name: claim.set for name, claim in claims.items()} == {
        "attention-wins": "test",
        "no-magic": "test",
    }
    with pytest.raises(InputError, match=r"^study\.claims\.attention-wins\.set=mine: rnnsearch50 "):
        planned("study.set=mine")


def test_the_papers_claims_on_a_corpus_of_ones_own(tmp_path):
    """As docs/study.md has it."""
    text = {name: {side: f"{name}.{side}" for side in ("source", "target")} for name in "abc"}
    data = {
        "title": "ours",
        "languages": ["en", "fr"],
        "train": text["a"],
        "valid": text["b"],
        "test": {"mine": text["c"]},
    }
    (tmp_path / "data").mkdir()
    (tmp_path / "data/mine.yaml").write_text(yaml.safe_dump(data))
    words = '"data=mine","regime=tiny","trainer=cpu","logger=none"'
    typed = ("study=own", "study.set=mine", f"study.overrides=[{words}]")
    study = planned(*typed, f"hydra.searchpath=[file://{tmp_path}]")
    assert {claim.set for claim in study.section.claims.values()} == {"mine"}
    runs = [run.config for group in study.groups.values() for run in group.runs]
    assert len(runs) == 4 * 3
    assert {(config.data.title, config.regime) for config in runs} == {("ours", "tiny")}
    caps = {config.data.max_length for config in runs}
    assert caps == {30, 50}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bahdanau", "scoring"])
def test_the_studies_that_come_with_it(name):
    """Their groups would be trained as they are written, and no two claims or groups say the same."""
    study = planned(f"study={name}")
    assert len(study.section.claims) >= 5
    said = [
        dataclasses.replace(claim, claim="", source="") for claim in study.section.claims.values()
    ]
    assert len({str(each) for each in said}) == len(said)
    known = [group.runs for group in study.groups.values() if group.runs]
    made = [tuple(run.identity for run in runs) for runs in known]
    assert len(set(made)) == len(made)
    assert {run.config.regime for group in study.groups.values() for run in group.runs} == {
        "laptop"
    }


@pytest.mark.slow
def test_settings_of_a_sweep_may_be_those_of_another_group():
    """Their run is made once."""
    study = planned("study=bahdanau")
    default = study.groups["rnnencdec50"].runs[0].identity
    points = study.groups["rnnencdec50_tuned"].points
    assert default in {point.run.identity for point in points}


def test_doctests():
    assert doctest.testmod(planned_module).failed == 0


def test_the_folder_of_the_text_is_said_here_and_nowhere_else(tmp_path):
    section = {
        "overrides": ["regime=tiny", "data=multi30k"],
        "claims": {"c": {**CLAIM, "runs": ["a"], "set": "test2016"}},
        "runs": {"a": {}},
    }
    with composed("+study=tiny", f"study.root={tmp_path}", **section) as config:
        study = plan_of(config)
    (run, _) = study.groups["a"].runs
    assert run.config.data.root == str(tmp_path)
    assert f"data.root={tmp_path}" in run.overrides
    assert run.command == "python -m nmt.train regime=tiny data=multi30k seed=1"
    assert study.typed == ("+study=tiny", "study.root=DIR")


def test_a_text_is_known_by_the_names_of_its_files(tiny):
    config = to_containers(tiny.groups["rnnsearch50"].runs[0].config)

    def with_train(**text: object) -> str:
        return identity({**config, "data": {**config["data"], "root": "here", "train": text}})

    files = with_train(files=["train"])
    assert with_train(source="/a/train.en.xz", target="/b/train.fr.xz") == files
    assert with_train(source="/a/more.en.xz", target="/b/more.fr.xz") != files
    assert with_train(files=["train"], pairs=9) != files


@pytest.mark.parametrize("name", ["europarl", "multi30k"])
def test_studies_of_real_text_can_be_planned(tmp_path, name):
    (tmp_path / "gold").mkdir()
    for ending in ("en", "fr", "align"):
        (tmp_path / f"gold/hansards-dev.{ending}").touch()
    typed = ("study.only=[attention-wins]", f"study.root={tmp_path}")
    with composed(f"+study={name}", *typed) as config:
        study = plan_of(config)
    assert [run.seed for run in study.groups["rnnsearch50"].runs] == [1, 2, 3]
