"""Trainings that start from the weights and vocabularies of a trained model."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import torch
from omegaconf import OmegaConf

from nmt.config import TrainConfig
from nmt.config.overrides import parsed
from nmt.config.schema import to_containers
from nmt.config.validation import load
from nmt.models.checkpoint import read_checkpoint, write_checkpoint
from nmt.report.runs import FinishedRun, label_apart
from nmt.run.folder import RunFolder
from nmt.run.initial import given_vocabularies, initial_checkpoint
from nmt.run.run import Run
from nmt.run.sources import initial_source
from nmt.utils.errors import InputError
from nmt.utils.files import sha256
from tests.helpers.models import small_checkpoint, small_config
from tests.helpers.processes import TINY, run
from tests.run.test_resume import Work

START = "initial_checkpoint=first"
OTHER_TEXT = ("data.grammar.train_pairs=24", "data.grammar.seed=2")
STILL = ("optimizer.lr=1e-30", "trainer.max_steps=2", "trainer.valid_every=1")
LOGGED = ("logger=wandb", "logger.mode=offline", "logger.entity=team")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Work:
    """With a run `first`, whose checkpoints hold averaged weights beside its last ones."""
    work = Work(tmp_path_factory.mktemp("initial"))
    ended = work.train("first", "callbacks=ema", "trainer.max_steps=4", "trainer.valid_every=2")
    assert ended.code == 0, ended.err
    return work


def config_with(**keys: object) -> TrainConfig:
    """The configuration of a training of the model of `small_checkpoint`, with other `keys`."""
    small = OmegaConf.to_container(small_config())
    config = OmegaConf.merge(OmegaConf.structured(TrainConfig), small)
    for key, value in keys.items():
        OmegaConf.update(config, key.replace("__", "."), value, merge=False)
    loaded = load(config)
    assert isinstance(loaded, TrainConfig)
    return loaded


def test_it_starts_where_the_tested_weights_of_the_other_run_are(work):
    """Updates that change nothing: averaged weights, validated as they were, and no optimizer state."""
    ended = work.train("still", START, *STILL, *LOGGED)
    assert ended.code == 0, ended.err
    best = work.folder / "first/checkpoints/best.ckpt"
    first, still = work.checkpoint("first", "best"), work.checkpoint("still")
    for name, weights in first["state_dict"].items():
        assert torch.allclose(still["state_dict"][name], weights, rtol=0, atol=1e-20), name
    assert any(
        not torch.equal(weights, first["state_dict"][name])
        for name, weights in first["current_model_state"].items()
    )
    before, after = (work.measured(name)["valid"]["nll_per_word"] for name in ("first", "still"))
    assert after == pytest.approx(before, rel=1e-6)
    assert still["global_step"] == 2
    assert {int(each["step"]) for each in still["optimizer_states"][0]["state"].values()} == {2}

    source = {
        "checkpoint": str(best.resolve()),
        "sha256": sha256(best),
        "update": first["global_step"],
        "text": first["nmt"]["fingerprint"],
    }
    results = json.loads((work.folder / "still/results.json").read_text())
    source["configuration"] = results["initial_checkpoint"]["configuration"]
    assert results["initial_checkpoint"] == source == still["nmt"]["initial"]
    assert results["config"]["initial_checkpoint"] == "first"
    assert START in results["command"]
    assert "sources" not in results


def test_on_other_text_killed_and_resumed_without_the_file(work):
    """Its own checkpoint has the vocabularies and what it started from: the same bits at its end."""
    assert work.train("other", START, *OTHER_TEXT).code == 0
    hook = "kill('nmt.models.base:Translator.training_step', 17)"
    assert work.train("killed", START, *OTHER_TEXT, hook=hook).code == -9
    assert work.checkpoint("killed")["global_step"] == 8
    away = work.folder / "away"
    shutil.move(work.folder / "first", away)
    try:
        ended = work.train("killed", START, *OTHER_TEXT, "resume=auto")
        assert ended.code == 0, ended.err
        ended = work.train("killed", "initial_checkpoint=away", "resume=auto")
        assert ended.code == 2
        assert "initial_checkpoint=away: the run was started with first" in ended.err
    finally:
        shutil.move(away, work.folder / "first")
    work.same("other", "killed")
    first, other, killed = (
        work.checkpoint(name, "best")["nmt"] for name in ("first", "other", "killed")
    )
    assert other["initial"] == killed["initial"] is not None
    assert other["fingerprint"] == killed["fingerprint"] != first["fingerprint"]
    for side in ("source_vocabulary", "target_vocabulary"):
        assert first[side] == other[side]


def test_what_prepares_text_takes_the_same_vocabularies(work):
    typed = [word for word in TINY if not word.startswith(("report.", "logger"))]
    ended = run("prepare", START, *typed, "data.cache=cache", cwd=work.folder)
    assert ended.code == 0, ended.err
    assert "source vocabulary: 300 words, </s> and <unk>" in ended.out
    assert "source vocabulary: 300 words of " not in ended.out


DIFFERENT = {
    "model__hidden": (5, "model.hidden=5", "model.hidden=4"),
    "model__scoring": (
        {"_target_": "nmt.layers.Dot"},
        "model.scoring._target_=nmt.layers.Dot",
        "model.scoring._target_=nmt.layers.Additive",
    ),
    "model__unit": (
        {"_target_": "nmt.layers.lstm_unit.LstmUnit"},
        "model.unit._target_=nmt.layers.lstm_unit.LstmUnit",
        "~model.unit._target_",
    ),
    "model__state_input": ("current", "model.state_input=current", "model.state_input=previous"),
    "tokenizer__source_size": (7, "tokenizer.source_size=7", "tokenizer.source_size=30000"),
    "tokenizer__normalise": (False, "tokenizer.normalise=false", "tokenizer.normalise=true"),
    "data__languages": (["fr", "en"], "data.languages=[fr,en]", "data.languages=[en,fr]"),
    "data__reverse_source": (True, "data.reverse_source=true", "data.reverse_source=false"),
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(small_checkpoint(tmp_path_factory.mktemp("small") / "small.ckpt"))


@pytest.mark.parametrize("key", DIFFERENT)
def test_a_key_that_differs_is_named(file, key):
    value, here, there = DIFFERENT[key]
    with pytest.raises(InputError) as refusal:
        initial_checkpoint(config_with(**{"initial_checkpoint": file, key: value}))
    first, second = str(refusal.value).splitlines()
    assert first == f"initial_checkpoint={file}: trained with other values than {here}"
    assert second == f"its weights and vocabularies need {there}"


def test_all_keys_that_differ_are_named(file):
    other = {"model__maxout": 3, "tokenizer__kind": "bpe", "tokenizer__target_size": 300}
    with pytest.raises(InputError) as refusal:
        initial_checkpoint(config_with(initial_checkpoint=file, **other))
    assert str(refusal.value).splitlines()[1] == (
        "its weights and vocabularies need "
        "model.maxout=4 tokenizer.kind=words tokenizer.target_size=30000"
    )


def test_what_only_the_training_looks_at_may_differ(file):
    other = {
        **{"model__dropout": 0.3, "model__title": "mine", "model__init": "wide"},
        **{"model__recurrence": "plain", "model__projection_lr_exponent": 1.0},
        **{"optimizer__lr": 0.5, "data__max_length": 30, "seed": 7, "search__beam_size": 1},
    }
    found = initial_checkpoint(config_with(initial_checkpoint=file, **other))
    assert found is not None
    assert (str(found.path), found.update) == (file, 1)


def test_vocabularies_are_those_of_the_checkpoint_whose_run_took_some(file):
    """Of a resumed or evaluated run its own checkpoint's: the file that it names is not looked for."""
    checkpoint = read_checkpoint(file)
    config = config_with(initial_checkpoint="nowhere")
    assert given_vocabularies(config, checkpoint) == checkpoint.vocabularies
    assert given_vocabularies(config_with(), checkpoint) is None


def test_an_evaluation_says_what_its_model_started_from(tmp_path, file):
    """As a checkpoint of the training does, which a resumed one goes on from."""
    initial = initial_source(Run(config_with(), RunFolder(tmp_path), initial=read_checkpoint(file)))
    content = torch.load(file, weights_only=True)
    content["nmt"]["initial"] = initial
    write_checkpoint(content, tmp_path / "further.ckpt")
    further = read_checkpoint(tmp_path / "further.ckpt")
    assert initial is not None
    assert initial["update"] == 1
    assert initial_source(Run(config_with(), RunFolder(tmp_path), further)) == initial
    content["nmt"]["initial"] = {**initial, "update": -1}
    write_checkpoint(content, tmp_path / "further.ckpt")
    with pytest.raises(InputError, match=r"nmt\.initial\.update"):
        read_checkpoint(tmp_path / "further.ckpt")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere", "initial_checkpoint=nowhere: no such file"),
        (".", "initial_checkpoint=.: a folder without checkpoints/best.ckpt; name a run folder"),
        ("text", "initial_checkpoint=text: not a checkpoint of nmt;"),
    ],
)
def test_what_is_no_checkpoint_is_refused(tmp_path, monkeypatch, name, said):
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("words")
    with pytest.raises(InputError) as refusal:
        initial_checkpoint(config_with(initial_checkpoint=name))
    assert str(refusal.value).startswith(said)


def test_code_of_a_stranger_is_not_run(tmp_path, file):
    content = torch.load(file, weights_only=True)
    content["nmt"]["config"]["callbacks"] = {"mine": {"_target_": "strange.Callback"}}
    write_checkpoint(content, tmp_path / "strange.ckpt")
    with pytest.raises(InputError) as refusal:
        initial_checkpoint(config_with(initial_checkpoint=str(tmp_path / "strange.ckpt")))
    assert str(refusal.value).startswith(
        "callbacks.mine._target_=strange.Callback: the checkpoint names code outside nmt, which is not run"
    )


def test_a_sweep_of_it_composes(composer):
    word = "initial_checkpoint=outputs/2026-01-31/12-00-00,runs/b/checkpoints/last.ckpt"
    (override,) = parsed([word])
    assert override.is_sweep_override()
    named = [
        load(composer(f"initial_checkpoint={value}")).initial_checkpoint
        for value in override.sweep_string_iterator()
    ]
    assert named == ["outputs/2026-01-31/12-00-00", "runs/b/checkpoints/last.ckpt"]
    of_seed = load(composer("initial_checkpoint=runs/short-${seed}", "seed=2"))
    assert of_seed.initial_checkpoint == "runs/short-2"


def test_runs_are_told_apart_by_the_configuration_that_they_started_from(tmp_path, file):
    """Not by the file, of which each seed has another one."""

    def run_from(seed: int, **keys: object) -> FinishedRun:
        content = torch.load(file, weights_only=True)
        config = content["nmt"]["config"]
        content["nmt"]["config"] = {**config, "name": "first", "seed": seed, **keys}
        path = tmp_path / f"{seed}-{len(keys)}.ckpt"
        write_checkpoint(content, path)
        config = config_with(initial_checkpoint=str(path), name="net", seed=seed)
        run = Run(config, RunFolder(tmp_path), initial=read_checkpoint(path))
        source = initial_source(run)
        return FinishedRun(
            "net",
            {"config": to_containers(config), "seed": seed, "initial_checkpoint": source},
        )

    alone = FinishedRun("net", {"config": to_containers(config_with(name="net")), "seed": 1})
    one, two, other = run_from(1), run_from(2), run_from(1, experiment="mine")
    assert one.group == two.group
    assert len({run.group for run in (alone, one, other)}) == 3
    started = one.flat["initial_checkpoint"]
    assert re.fullmatch("first [0-9a-f]{8}", started)
    labels = [run.label for run in label_apart([alone, one, two])]
    assert labels == [
        "net (initial_checkpoint –)",
        f"net (initial_checkpoint {started}) seed 1",
        f"net (initial_checkpoint {started}) seed 2",
    ]
