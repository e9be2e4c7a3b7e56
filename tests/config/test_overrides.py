"""What was typed, applied to what a checkpoint holds."""

from __future__ import annotations

import pytest
from omegaconf import OmegaConf

from nmt.config import EvaluateConfig, ScoreConfig, TrainConfig, TranslateConfig
from nmt.config.overrides import (
    FROZEN,
    RESUMABLE,
    apply_typed,
    command_keys,
    refuse_changes,
    typed_paths,
)
from nmt.config.schema import RUNTIME_KEYS, to_containers
from nmt.config.validation import load, validate
from nmt.utils.errors import InputError


@pytest.fixture(scope="module")
def stored(composer):
    """The resolved configuration of a run, as a checkpoint gives it back."""
    values = to_containers(load(composer("+experiment=rnnsearch30", "regime=tiny", "seed=5")))
    config = OmegaConf.merge(OmegaConf.structured(TrainConfig), values)
    validate(config)
    return config


def test_groups_stand_for_the_keys_they_set():
    assert typed_paths(["search=greedy", "data.max_length=5", "+stress=lengths"]) == [
        "search",
        "data.max_length",
        "stress",
    ]
    sizes = ["model.hidden", "model.embedding", "model.alignment", "model.maxout"]
    assert typed_paths(["size=tiny"]) == ["size", *sizes]
    assert typed_paths(["+experiment=rnnsearch30", "regime=tiny"]) == []
    assert typed_paths(["++seed=3", "+data.test.mine.source=f", "seed=4"]) == [
        "seed",
        "data.test.mine.source",
    ]


def test_only_what_was_typed_is_taken(composer, stored):
    typed = ["search.beam_size=7", "+data.test.mine.source=f", "logger=none"]
    found = apply_typed(stored, composer(*typed), typed)
    assert found.search.beam_size == 7
    assert found.search.max_ratio == 1.5  # the stored one; composed here it would be 3
    assert found.data.test.mine.source == "f"
    assert found.logger.name == "none"
    assert (found.seed, found.model.hidden, found.data.max_length) == (5, 24, 30)
    assert stored.search.beam_size == 2
    assert "mine" not in stored.data.test


def test_a_test_set_can_be_left_out_again_and_again(composer, stored):
    typed = ["~data.test.by_length"]
    found = apply_typed(stored, composer(*typed), typed)
    assert list(found.data.test) == ["test"]
    again = apply_typed(found, composer(*typed), typed)
    assert again == found
    refuse_changes(found, again)
    assert list(stored.data.test) == ["test", "by_length"]


def test_what_is_not_there_needs_no_deleting(composer, stored):
    typed = ["~data.test.by_length.pairs"]
    left = apply_typed(stored, composer("~data.test.by_length"), ["~data.test.by_length"])
    assert apply_typed(left, composer(*typed), typed) == left


def test_one_machine_is_taken_with_its_devices(composer, stored):
    several = stored.copy()
    several.trainer.num_nodes, several.trainer.devices = 2, 4
    found = apply_typed(several, composer("trainer=cpu"), ["trainer=cpu"], EvaluateConfig)
    assert (found.trainer.num_nodes, found.trainer.devices) == (1, 1)


def test_a_group_leaves_the_keys_to_keep(composer, stored):
    for typed, ratio in ((["search=greedy"], 1.5), (["search=greedy", "search.max_ratio=2"], 2)):
        found = apply_typed(stored, composer(*typed), typed, keep=FROZEN)
        assert (found.search.beam_size, found.search.max_ratio) == (1, ratio)


def test_an_experiment_file_that_sets_no_name_is_known_by_what_it_sets(composer, stored):
    nameless = stored.copy()
    nameless.experiment = "custom"
    typed = ["+experiment=mine"]
    assert apply_typed(nameless, composer(), typed) == nameless
    with pytest.raises(InputError, match=r"experiment=mine: the checkpoint is of experiment=rnn"):
        apply_typed(stored, composer(), typed)


def test_a_test_may_have_any_number_of_devices(stored):
    odd = stored.copy()
    odd.trainer.devices = 3
    assert load(odd, training=False).trainer.devices == 3
    with pytest.raises(InputError, match=r"data\.batch_size=16: must be a multiple"):
        load(odd)


def test_a_group_replaces_all_of_its_keys(composer, stored):
    found = apply_typed(stored, composer("search=greedy"), ["search=greedy"])
    assert (found.search.beam_size, found.search.max_ratio) == (1, 3.0)


def test_the_same_experiment_may_be_typed_again(composer, stored):
    typed = ["+experiment=rnnsearch30", "regime=tiny"]
    assert apply_typed(stored, composer(*typed), typed) == stored
    for wrong in ("+experiment=rnnencdec30", "regime=laptop"):
        with pytest.raises(InputError, match=rf"{wrong.lstrip('+')}: the checkpoint is of "):
            apply_typed(stored, composer(wrong), [wrong])


@pytest.mark.parametrize(
    "typed",
    ["model=rnnencdec", "size=paper", "tokenizer=bpe", "data.max_length=9", "seed=6"],
)
def test_evaluating_cannot_change_the_training(composer, stored, typed):
    with pytest.raises(InputError, match=r"^[\w.]+: belongs to the training run"):
        apply_typed(stored, composer(typed), [typed], EvaluateConfig)


def test_another_text_means_its_test_sets(composer, stored):
    typed = ["data=wmt14"]
    found = apply_typed(stored, composer(*typed), typed, EvaluateConfig)
    assert list(found.data.test) == ["newstest2014"]
    assert found.data.test.newstest2014.hub == "wmt/wmt14"
    assert found.data.title == stored.data.title
    assert found.tokenizer == stored.tokenizer


def test_the_keys_of_the_command_itself_are_passed_over():
    typed = ["trust=[a]", "sets=[test]", "+search.beam_size=2", "checkpoint=f"]
    assert typed_paths(typed, EvaluateConfig) == ["search.beam_size"]
    with pytest.raises(InputError, match=r"^settings: belongs to the training run"):
        typed_paths(["settings=1"], EvaluateConfig)


@pytest.mark.parametrize(
    ("command", "schema"),
    [
        ("evaluate", EvaluateConfig),
        ("translate", TranslateConfig),
        ("score", ScoreConfig),
    ],
)
def test_what_a_command_owns_names_keys(composer, command, schema):
    files = ["source=a", "target=b"] if command == "score" else []
    config = composer("checkpoint=f", *files, command=command)
    assert all(name in config for name in command_keys(schema))
    for name in schema.overridable:
        parent, _, key = name.rpartition(".")
        assert key in (OmegaConf.select(config, parent) if parent else config), name


def test_the_keys_of_each_kind():
    """Each list is derived from the schema; a mark on the wrong key shows here."""
    runtime = "resume trust model.graphs logger report checkpoint updates"
    runtime += " data.workers data.cache data.root data.verify"
    runtime += " data.source_shortlist data.target_shortlist"
    trainer = [
        "devices",
        "num_nodes",
        "strategy",
        "accelerator",
        "threads",
        "progress",
        "log_every",
    ]
    expected = {*runtime.split(), *(f"trainer.{name}" for name in trainer)}
    assert set(RUNTIME_KEYS) == expected
    other = {"name", "trainer.max_steps", "data.test", "evaluation", "search", "stress"}
    assert set(RESUMABLE) == expected | other
    assert FROZEN == ("search.max_ratio",)
    assert set(command_keys(EvaluateConfig)) == {"checkpoint", "sets", "trust"}
    own = "checkpoint trust nbest scores detokenise tokenised alignments heatmap page"
    assert set(command_keys(TranslateConfig)) == set(own.split())


@pytest.mark.parametrize(
    "typed",
    [
        "trainer.max_steps=99",
        "trainer.devices=2",
        "logger=none",
        "search.beam_size=3",
        "+data.test.mine.source=f",
        "data.workers=2",
        "seed=5",
        "regime=tiny",
    ],
)
def test_going_on_may_change_what_the_result_does_not_depend_on(composer, stored, typed):
    refuse_changes(stored, apply_typed(stored, composer(typed), [typed]))


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("seed=6", "seed=6: the run was started with 5;"),
        ("data.max_length=40", "data.max_length=40: the run was started with 30;"),
        ("data.batch_size=8", "data.batch_size=8: the run was started with 16;"),
        ("optimizer.lr=0.5", "optimizer.lr=0.5: the run was started with 0.001;"),
        (
            "optimizer=adadelta",
            "optimizer._target_=torch.optim.Adadelta: the run was started with torch",
        ),
        ("model.state_input=current", "model.state_input=current: the run was started with prev"),
        ("data.train.pairs=9", "data.train.pairs=9: the run was started with 400;"),
        ("search.max_ratio=2.5", "search.max_ratio=2.5: the run was started with 1.5;"),
        ("trainer.monitor=bleu", "trainer.monitor=bleu: the run was started with nll;"),
    ],
)
def test_going_on_cannot_change_the_result(composer, stored, typed, said):
    config = apply_typed(stored, composer(typed), [typed])
    with pytest.raises(InputError) as refused:
        refuse_changes(stored, config)
    assert str(refused.value).startswith(said)


def test_stored_configurations_may_hold_what_has_no_effect(composer, stored):
    old = stored.copy()
    old.evaluation.top_k = 5
    typed = ["search.beam_size=3"]
    found = load(apply_typed(old, composer(*typed), typed, EvaluateConfig), training=False)
    assert (found.evaluation.top_k, found.evaluation.attention) == (5, "as_trained")


@pytest.mark.parametrize(
    ("command", "typed"),
    [
        (TranslateConfig, "evaluation.scores=[ter]"),
        (TranslateConfig, "report.heatmaps=0"),
        (TranslateConfig, "trainer.devices=4"),
        (ScoreConfig, "logger=none"),
        (ScoreConfig, "search.beam_size=3"),
    ],
)
def test_what_only_tests_use_is_no_matter_of_training(command, typed):
    name = typed.partition("=")[0]
    with pytest.raises(InputError) as refusal:
        typed_paths([typed], command)
    assert str(refusal.value) == f"{name}: not used by this command; type it to nmt.evaluate"


@pytest.mark.parametrize("command", [EvaluateConfig, TranslateConfig, ScoreConfig])
@pytest.mark.parametrize(
    "name", ["max_steps", "valid_every", "patience", "accumulate", "log_every"]
)
def test_how_a_model_was_trained_is_not_typed_to_what_applies_it(command, name):
    said = f"trainer.{name}: belongs to the training run; this command cannot change it"
    with pytest.raises(InputError, match=f"^{said}$"):
        typed_paths([f"trainer.{name}=5"], command)


def test_of_a_choice_of_devices_a_command_takes_what_it_uses():
    assert typed_paths(["trainer=ddp"], TranslateConfig) == ["trainer.accelerator"]
    assert "trainer.devices" in typed_paths(["trainer=ddp"], EvaluateConfig)


@pytest.mark.parametrize("command", [EvaluateConfig, TranslateConfig, ScoreConfig])
def test_weights_are_replaced_wherever_a_trained_model_is_applied(command):
    typed = ["evaluation.attention=top_k", "evaluation.top_k=2"]
    assert typed_paths(typed, command) == ["evaluation.attention", "evaluation.top_k"]
