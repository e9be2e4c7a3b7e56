"""Overrides of the configuration in a checkpoint, and the keys that a resumed run may change."""

from __future__ import annotations

import pytest

from nmt.config.changes import flatten, refuse_other_kind
from nmt.config.code import reject_untrusted_targets, user_code
from nmt.config.loading import load, load_plain
from nmt.config.schema import to_containers
from nmt.utils.errors import InputError
from tests.helpers.composition import applied

STORED = (
    "+experiment=rnnsearch30",
    "regime=tiny",
    "search=groundhog",
    "seed=3",
    "threads=3",
    "trust=[mine]",
)


@pytest.fixture(scope="module")
def stored(composer):
    return load(composer(*STORED))


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["search=greedy"], {"search.beam_size": 1, "search.min_ratio": 0.0}),
        (["search.beam_size=5"], {"search.beam_size": 5, "search.min_ratio": 0.5}),
        (["+data.test.mine.source=f"], {"data.test.mine.source": "f", "data.max_length": 30}),
        (["trainer=cpu"], {"trainer.accelerator": "cpu", "trainer.max_steps": 12}),
        (["threads=2", "name=mine"], {"threads": 2, "name": "mine"}),
        ([], {"seed": 3, "regime": "tiny", "name": "RNNsearch-30", "threads": "auto", "trust": []}),
    ],
)
def test_evaluation_changes_typed_keys_only(stored, typed, expected):
    """`threads` and `trust` are not read from a checkpoint, since it may come from another user."""
    config, _ = applied("evaluate", stored, STORED, ["checkpoint=f", *typed])
    before, after = (flatten(to_containers(each)) for each in (stored, config))
    assert {path: after[path] for path in expected} == expected
    own = (*expected, "search", "data.test.mine", "trainer", "threads", "logger", "trust")
    changed = [path for path in after if after[path] != before.get(path)]
    assert not [path for path in changed if not path.startswith(own)]


def test_stored_test_set_can_be_deleted(stored):
    config, _ = applied("train", stored, STORED, ["ckpt_path=f", "~data.test.by_length"])
    assert list(config.data.test) == ["test"]
    assert list(stored.data.test) == ["by_length", "test"]


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        (["trainer.max_steps=50"], None),
        (["logger=none", "report.sentences=0", "search=greedy", "search.max_ratio=3"], None),
        (["seed=4"], "seed"),
        (["data.max_length=40"], "data.max_length"),
        (["regime=laptop"], "regime"),
    ],
)
def test_resume_refuses_keys_that_change_the_result(stored, typed, key):
    if key is None:
        applied("train", stored, STORED, ["resume=run", *typed])
        return
    with pytest.raises(InputError, match=rf"^{key}=.*was started with {key}="):
        applied("train", stored, STORED, ["resume=run", *typed])


@pytest.mark.parametrize(
    ("typed", "stays"),
    [
        (
            ["trainer.max_steps=12"],
            ["model.dropout=0.3", "search=groundhog", "search.min_ratio=0.1"],
        ),
        (["search=greedy"], ["model.dropout=0.3", "trainer.max_steps=9"]),
        (["search.min_ratio=0"], ["model.dropout=0.3", "search=groundhog", "trainer.max_steps=9"]),
    ],
)
def test_recorded_command_has_each_key_once(composer, typed, stays):
    history = ("regime=tiny", "model.dropout=0.3", "search=groundhog", "search.min_ratio=0.1")
    history = (*history, "trainer.max_steps=9")
    _, record = applied("train", load(composer(*history)), history, ["resume=run", *typed])
    assert record == ["regime=tiny", *stays, *typed]


def test_configuration_round_trips_through_a_checkpoint(composer):
    mine = "data.test.mine.source=f", "+data.test.mine.target=g"
    config = load(composer("+experiment=rnnsearch30", *mine, "seed=7"))
    assert (config.data.test["mine"].source, config.data.test["mine"].tokenised) == ("f", False)
    assert load_plain(to_containers(config)) == config


def test_user_scores_in_a_checkpoint_must_be_trusted(composer):
    stored = load(composer(*STORED, "evaluation.scores=[chrf,mine.Score]"))
    assert user_code(stored) == ["mine.Score"]
    reject_untrusted_targets(to_containers(stored), ["mine.Score"])
    with pytest.raises(InputError, match=r"^evaluation\.scores\.1=mine\.Score: .* trust=\[mine\]"):
        reject_untrusted_targets(to_containers(stored), [])


def test_initial_checkpoint_must_have_the_same_sizes_and_languages(composer):
    initial = load(composer(*STORED, "model.dropout=0.2"))
    refuse_other_kind(load(composer(*STORED, "seed=5", "data.max_length=9")), initial)
    other = load(composer(*STORED, "model.hidden=9", "data.languages=[fr,en]"))
    with pytest.raises(InputError, match=r'need data\.languages=\["en", "fr"\] model\.hidden=24$'):
        refuse_other_kind(other, initial)
