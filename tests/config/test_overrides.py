"""What is typed over the configuration of a checkpoint, and what a resumed run may change."""

from __future__ import annotations

import pytest
from omegaconf import OmegaConf

from nmt.config import EvaluateConfig, TranslateConfig
from nmt.config.overrides import apply_typed, changed_keys, refuse_changes, typed_paths
from nmt.utils.errors import InputError

STORED = ("+experiment=rnnsearch30", "regime=tiny", "search=groundhog", "seed=3")


def resolved(composer, *typed, command="train"):
    config = composer(*typed, command=command)
    OmegaConf.resolve(config)
    return config


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["search=greedy"], {"search.beam_size": 1, "search.min_ratio": 0.0}),
        (["search.beam_size=5"], {"search.beam_size": 5, "search.min_ratio": 0.5}),
        (["+stress=lengths"], {"stress.lengths": [20, 40, 80, 160]}),
        (["~data.test.by_length"], {"data.test.by_length": None}),
        (["+data.test.mine.source=f"], {"data.test.mine.source": "f", "data.max_length": 30}),
        (["trainer=cpu"], {"trainer.accelerator": "cpu", "trainer.max_steps": 12}),
        ([], {"seed": 3, "regime": "tiny", "trainer.accelerator": "auto"}),
    ],
)
def test_only_what_is_typed_changes(composer, typed, expected):
    composed = composer("checkpoint=f", *typed, command="evaluate")
    config = apply_typed(resolved(composer, *STORED), composed, typed, EvaluateConfig)
    for path, value in expected.items():
        assert OmegaConf.select(config, path) == value, path


@pytest.mark.parametrize(
    ("command", "typed"),
    [
        (EvaluateConfig, "model=rnnencdec"),
        (EvaluateConfig, "seed=4"),
        (EvaluateConfig, "regime=paper"),
        (EvaluateConfig, "+experiment=rnnencdec50"),
        (TranslateConfig, "data.test.test.pairs=3"),
        (TranslateConfig, "trainer.devices=2"),
        (TranslateConfig, "model.dropout=0.1"),
    ],
)
def test_what_belongs_to_the_training_run_is_refused(command, typed):
    key = typed.lstrip("+").partition("=")[0]
    with pytest.raises(InputError, match=rf"^{key}: belongs to the training run"):
        typed_paths([typed], command)


def test_the_keys_of_a_command_are_not_of_the_run():
    assert typed_paths(["checkpoint=f", "scores=true", "trust=[a]"], TranslateConfig) == []
    assert typed_paths(["trainer=ddp"], TranslateConfig) == ["trainer.accelerator"]


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        (["trainer.max_steps=50"], None),
        (["logger=none", "report.heatmaps=0", "search=greedy", "search.max_ratio=3"], None),
        (["seed=4"], "seed"),
        (["data.max_length=40"], "data.max_length"),
        (["regime=laptop"], "regime"),
    ],
)
def test_a_resumed_run_keeps_what_its_result_depends_on(composer, typed, key):
    stored = resolved(composer, *STORED)
    config = resolved(composer, *STORED, *typed)
    assert changed_keys(stored, config)[:1] == ([key] if key else [])
    if key:
        with pytest.raises(InputError, match=rf"^{key}=.*was started with {key}="):
            refuse_changes(stored, config)
