"""Promise 11: every override is applied or refused, and the record shows what ran.

Each option of each config group is typed over the configuration of a checkpoint: with `ckpt_path`, with
`resume`, and in an evaluation. It has the same effect as in a new run, or the refusal names keys that have.
"""

from __future__ import annotations

import functools
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from textwrap import dedent
from typing import Any

import pytest
import torch

from nmt.cli.composition import LISTS, PLUS, conf_folder
from nmt.config.changes import SECTIONS, effect_of, flatten, is_within
from nmt.config.commands import TrainConfig
from nmt.config.keys import RESUMABLE, WEIGHTS
from nmt.config.loading import load
from nmt.config.schema import to_containers
from nmt.utils.errors import InputError
from tests.helpers.composition import applied, composing
from tests.helpers.processes import SILENT
from tests.helpers.processes import TINY as QUICK_TINY
from tests.helpers.produced import files, results

TINY = ("+experiment=rnnsearch50", "regime=tiny")
GPU = (
    "+experiment=rnnsearch50_long",
    "regime=gpu",
    "search=groundhog",
    "search.batch_size=5",
    "logger=[csv]",
    "trainer=ddp",
    "schedule=inverse_sqrt",
)
LOCAL = {"threads", "trust", "data.cache"}  # keys that an evaluation never reads from a checkpoint


def group_of(word: str) -> str:
    return word.lstrip("+").partition("=")[0]


def options(command: str) -> list[str]:
    """Returns `group=option` for each option of each group that a command has."""
    with composing(command, ["hydra.run.dir=."], return_hydra_config=True) as config:
        choices = config.hydra.runtime.choices
    groups = {name for name in choices if not name.startswith("hydra/")}
    groups |= {*PLUS, *LISTS} if command == "train" else set()
    return [
        f"{'+' * (group in PLUS)}{group}={file.stem}"
        for group in sorted(groups)
        for file in sorted((conf_folder() / group).glob("*.yaml"))
    ]


def of_groups(words: Iterable[str], sections: bool) -> list[Any]:
    """Returns the options of `SECTIONS`, or all others, marked slow except for the first two of each group."""
    seen: Counter[str] = Counter()
    parameters = []
    for word in words:
        seen[group_of(word)] += 1
        if (group_of(word) in SECTIONS) == sections:
            marks = [pytest.mark.slow] if seen[group_of(word)] > 2 else []
            parameters.append(pytest.param(word, marks=marks))
    return parameters


@pytest.fixture(scope="module")
def stored_of(composer):
    """Returns stored_of(*history), which returns the stored configuration of a run with these overrides."""
    return functools.cache(lambda *history: load(composer(*history)))


def keys_after(stored: TrainConfig, history: Sequence[str], *typed: str) -> dict[str, Any]:
    """Returns the configuration of a run that continues from a checkpoint, by dotted key."""
    config, _ = applied("train", stored, history, typed)
    return flatten(to_containers(config)) | {"ckpt_path": None, "resume": None}


def test_all_folders_of_conf_are_groups():
    folders = {path.name for path in conf_folder().iterdir() if path.is_dir()}
    assert folders - {"hydra"} == set(map(group_of, options("train")))


@pytest.mark.parametrize(
    "start", ["ckpt_path=f", pytest.param("resume=run", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    "history", [TINY, pytest.param(GPU, marks=pytest.mark.slow)], ids=["tiny", "gpu"]
)
@pytest.mark.parametrize("word", of_groups(options("train"), sections=True))
def test_logger_search_and_trainer_replace_stored_sections(stored_of, start, history, word):
    """The section is that of a new run with the option; a search key typed before is replaced, too."""
    if group_of(word) == "data":
        pytest.skip(
            "test_user_data_replaces_test_sets and test_refuses_another_training_text hold this group"
        )
    stored = stored_of(*history)
    replaced = [group_of(word), f"{word[:6]}.batch_size"]
    new = [each for each in history if group_of(each) not in replaced]
    assert keys_after(stored, history, start, word) == flatten(to_containers(stored_of(*new, word)))


@pytest.mark.slow
@pytest.mark.parametrize("word", of_groups(options("train"), sections=False))
def test_keys_in_a_refusal_have_the_effect_of_the_group(stored_of, word):
    """An option that differs from the stored run is refused; the keys in the message have its effect."""
    if group_of(word) == "hparams_search":
        pytest.importorskip("hydra_plugins.hydra_optuna_sweeper", reason="extra optuna is missing")
    stored = stored_of(*TINY)
    before = flatten(to_containers(stored))
    try:
        after = keys_after(stored, TINY, "ckpt_path=f", word)
    except InputError as refusal:
        message = str(refusal)
    else:
        assert after == before
        return
    if ": the run was started with " in message:
        key = message.partition("=")[0]
        assert effect_of(TrainConfig, key) == WEIGHTS or key in ("experiment", "regime")
        return
    if word == "scoring=none":
        assert "RNNsearch needs a scoring" in message
        return
    assert message.startswith(f"{word}: an option of this group cannot change a stored run")
    typed = shlex.split(message.partition("instead: ")[2])
    wanted = flatten(to_containers(stored_of(*TINY, word)))
    after = keys_after(stored, TINY, "ckpt_path=f", *typed)
    # In a new run, the file of an optimizer also decides about the schedule of another optimizer's file.
    others = {key for key in wanted if wanted[key] != after.get(key)}
    allowed = {"optimizer": {"optimizer.schedule._target_"}}
    # The default regime's optimizer decides about `decay_from`, too.
    allowed["schedule"] = {"optimizer.schedule.decay_from"}
    assert others <= allowed.get(group_of(word), set())
    trained = [key for key in wanted if wanted[key] != before.get(key)]
    if any(effect_of(TrainConfig, key) not in RESUMABLE for key in trained):
        with pytest.raises(InputError, match="was started with"):
            keys_after(stored, TINY, "resume=run", word)


def test_groups_of_the_original_command_may_be_repeated(stored_of):
    stored = stored_of(*GPU)
    again = keys_after(stored, GPU, *GPU, "resume=auto", "trainer.max_steps=9")
    assert again == flatten(to_containers(stored)) | {"trainer.max_steps": 9}


@pytest.mark.slow
@pytest.mark.parametrize("word", of_groups(options("evaluate"), sections=True))
def test_option_in_an_evaluation_equals_a_new_run(composer, stored_of, word):
    before, wanted = (flatten(to_containers(stored_of(*TINY, *more))) for more in ((), (word,)))
    replaced = ("data.test", "data.root") if group_of(word) == "data" else (group_of(word),)
    if word == "data=text":  # its file has no test sets, so the stored ones stay
        replaced = ("data.root",)
    config, _ = applied("evaluate", load(composer(*TINY)), TINY, ["checkpoint=f", word])
    for key, value in flatten(to_containers(config)).items():
        if key not in LOCAL and not key.startswith("logger"):
            assert value == (wanted if is_within(key, replaced) else before).get(key), key
    assert list(config.logger) == ([word[7:]] if group_of(word) == "logger" else ["wandb"]) or (
        word == "logger=none" and not config.logger
    )


@pytest.fixture
def own(tmp_path):
    """Returns the override that adds a folder of user-defined groups to Hydra's search path."""
    texts = {
        "mine/short.yaml": """
            # @package _global_
            search: {beam_size: 3}
            callbacks: {mine: {_target_: my.Callback}}
        """,
        "mine/wide.yaml": """
            # @package _global_
            model: {hidden: 99}
        """,
        "mine/lr.yaml": """
            # @package _global_
            optimizer: {lr: 0.5}
        """,
        "data/mine.yaml": """
            title: ours
            train: {source: a, target: b}
            valid: {source: a, target: b}
            test: {mine: {source: c, target: d}}
        """,
        "data/tests.yaml": """
            test: {mine: {source: c, target: d}}
        """,
        "trainer/mine.yaml": """
            accelerator: cpu
            enable_model_summary: true
        """,
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(dedent(text))
    return f"hydra.searchpath=[file://{tmp_path}]"


def test_user_data_replaces_test_sets(composer, own):
    """It replaces the test sets; a continued run refuses another training text, an evaluation ignores it."""
    stored = load(composer(*TINY))
    config, _ = applied("evaluate", stored, TINY, [own, "checkpoint=f", "data=mine"])
    assert list(config.data.test) == ["mine"]
    assert config.data.test["mine"].source == "c"
    assert config.data.train == stored.data.train
    config, record = applied("train", stored, TINY, [own, "resume=run", "data=tests"])
    assert list(config.data.test) == ["mine"]
    assert config.data.batch_size == stored.data.batch_size == 16
    assert record == [*TINY, "data=tests"]
    with pytest.raises(InputError, match=r"^data\.title=ours: the run was started with"):
        applied("train", stored, TINY, [own, "resume=run", "data=mine"])


def test_refuses_another_training_text(stored_of):
    with pytest.raises(InputError, match=r"^model\.init=|^data\.title=Multi30k: the run was"):
        keys_after(stored_of(*TINY), TINY, "resume=run", "data=multi30k")


def test_user_trainer_replaces_the_section(composer, own):
    history = (*TINY, "trainer=ddp")
    config, _ = applied(
        "train", load(composer(*history)), history, [own, "resume=r", "trainer=mine"]
    )
    assert config.trainer["enable_model_summary"]
    assert (config.trainer["devices"], "strategy" in config.trainer) == (1, False)
    assert config.trainer["max_steps"] == 12


@pytest.mark.parametrize(
    ("command", "word", "refusal"),
    [
        ("train", "+mine=short", r"\+mine=short: .* search\.beam_size=3 callbacks\.mine\._target_=my\."),
        ("train", "+mine=wide", r"model\.hidden=99: .* was started with model\.hidden=24"),
        ("evaluate", "+mine=short", r"\+mine=short: .* type its keys instead: search\.beam_size=3$"),
        ("evaluate", "+mine=lr", r"\+mine=lr: it belongs to the training run"),
    ],
)  # fmt: skip
def test_refuses_user_groups_over_a_stored_run(composer, own, command, word, refusal):
    start = {"train": "ckpt_path=f", "evaluate": "checkpoint=f"}[command]
    with pytest.raises(InputError, match=f"^{refusal}"):
        applied(command, load(composer(*TINY)), TINY, [own, start, word])


@pytest.mark.parametrize(
    ("typed", "refusal"),
    [
        ("+foo=1", "foo: no such key; --help lists keys and groups"),
        ("+data.tset.mine.source=f", "data.tset.mine.source: no such key; --help lists"),
        ("+data.max_length=9", "data.max_length: no such key; it belongs to the training run"),
    ],
)
def test_refuses_training_keys_in_an_evaluation(composer, typed, refusal):
    with pytest.raises(InputError, match=f"^{refusal}"):
        applied("evaluate", load(composer(*TINY)), TINY, ["checkpoint=f", typed])


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("data.max_length=30", {"name": "RNNsearch-30*", "data.max_length": 30}),
        (
            "callbacks.best.monitor=valid/bleu",
            {"callbacks.early_stopping.monitor": "valid/bleu", "callbacks.last.monitor": None},
        ),
        ("callbacks.early_stopping=null", {"callbacks.early_stopping.monitor": None}),
        ("trainer={max_epochs: 2}", {"trainer.max_epochs": 2, "trainer.val_check_interval": 6}),
        ("search.batch_size=4", {"search.beam_size": 7, "search.batch_size": 4}),
        ("~data.test.test", {"data.test.test.grammar": None, "data.test.mine.source": "s"}),
    ],
)
def test_typed_key_changes_keys_derived_from_it(composer, typed, expected):
    history = (
        "+experiment=rnnsearch50_long",
        "regime=tiny",
        "search.beam_size=7",
        "search.batch_size=5",
        "+data.test.mine.source=s",
    )
    after = keys_after(load(composer(*history)), history, "ckpt_path=f", typed)
    assert {key: after.get(key) for key in expected} == expected


def test_typed_name_stays(composer):
    history = (*TINY, "name=mine")
    stored = load(composer(*history))
    config, _ = applied("train", stored, history, ["ckpt_path=f", "data.max_length=30"])
    assert config.name == "mine"


def test_effect_of_nested_keys():
    """Some keys are entries of dictionaries, and some are not declared in a schema."""
    effects = {
        "model.hidden": "weights",
        "model.scoring.mine": "weights",
        "model.dropout": "training",
        "trainer.max_time": "length",
        "trainer.limit_train_batches": "training",
        "trainer.strategy": "machine",
        "optimizer.options.betas": "training",
        "data.test.mine.source": "tests",
        "data.root": "machine",
        "logger.wandb.offline": "local",
    }
    assert {key: effect_of(TrainConfig, key) for key in effects} == effects


class TestCommands:
    """Commands with overrides, most of which start from the checkpoint of a trained run."""

    LAST = "ckpt_path=rnnsearch/checkpoints/last.ckpt"

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("typed", "refusal"),
        [
            (
                "experiment=rnnsearch30 regime=laptop trainer.max_steps=14",
                "experiment=rnnsearch30: the run was started with experiment=rnnsearch50; keep that",
            ),
            (
                "regime=laptop trainer.max_steps=14",
                "regime=laptop: the run was started with regime",
            ),
            ("size=paper trainer.max_steps=14", "model.alignment=1000: the run was started with"),
            (
                "debug=fdr",
                "debug=fdr: an option of this group cannot change a stored run; leave it out, or type its "
                "keys instead: trainer.fast_dev_run=true",
            ),
            ("", f"{LAST}: its training ended at update 12 of 12; type trainer.max_steps=N"),
        ],
    )
    def test_refuses_changes_of_a_stored_run(self, program, rnnsearch, typed, refusal):
        ended = program("train", self.LAST, *typed.split(), "hydra.run.dir=refused", *SILENT)
        assert (ended.code, ended.out) == (2, "")
        assert f"nmt: {refusal}" in ended.err.splitlines()[-1]

    @pytest.mark.slow
    def test_fast_dev_run_writes_no_checkpoint(self, program, rnnsearch):
        """With `fast_dev_run`, training continues for one batch, and writes no checkpoint and no results."""
        ended = program(
            "train", self.LAST, "trainer.fast_dev_run=true", "hydra.run.dir=fdr", *SILENT
        )
        assert ended.code == 0, ended.err
        assert "update 13: validation" in ended.err
        assert files(program.folder / "fdr") == {"train.log", ".lock"} | {
            f".hydra/{name}.yaml" for name in ("config", "hydra", "overrides")
        }

    @pytest.mark.slow
    def test_results_record_another_optimizer(self, program, rnnsearch):
        optimizer = ("optimizer._target_=torch.optim.Adadelta", "optimizer.options.rho=0.95")
        typed = (self.LAST, *optimizer, "data.max_length=30")
        ended = program(
            "train",
            *typed,
            "trainer.max_steps=13",
            "hydra.run.dir=other",
            *SILENT,
            figures=False,
        )
        assert ended.code == 0, ended.err
        content = results(program.folder / "other")
        names = [content[key] for key in ("name", "experiment", "regime", "max_length")]
        assert names == ["RNNsearch-30", "rnnsearch50", "tiny", 30]
        assert [content["config"][key] for key in ("name", "experiment", "regime")] == names[:3]
        assert content["config"]["optimizer"]["_target_"] == "torch.optim.Adadelta"
        made = torch.load(program.folder / "other/checkpoints/last.ckpt", weights_only=True)
        [optimizer] = made["optimizer_states"]
        assert optimizer["param_groups"][0]["rho"] == 0.95
        assert int(optimizer["state"][0]["step"]) == 1
        assert f"{' '.join(typed)} trainer.max_steps=13" in content["command"]

    @pytest.mark.slow
    def test_early_stopped_run_continues_without_the_callback(self, program):
        """The run ended early, at its first validation, because the NLL was below the threshold."""
        typed = ("callbacks=early_stopping", "+callbacks.early_stopping.stopping_threshold=99")
        ended = program("train", *QUICK_TINY, *typed, "hydra.run.dir=early", figures=False)
        assert results(program.folder / "early")["train"]["updates"] == 6
        typed = (
            "ckpt_path=early/checkpoints/last.ckpt",
            "callbacks.early_stopping=null",
            "hydra.run.dir=late",
        )
        ended = program("train", *typed, figures=False)
        assert ended.code == 0, ended.err
        assert results(program.folder / "late")["train"]["updates"] == 12
        again = program("train", "resume=early", figures=False)
        assert "the training has already ended early: " in again.err
        assert results(program.folder / "early")["train"]["updates"] == 6
        longer = program("train", "resume=early", "trainer.max_steps=14", figures=False)
        assert longer.code == 0, longer.err
        assert results(program.folder / "early")["train"]["updates"] > 6

    @pytest.mark.slow
    def test_max_epochs_replaces_max_steps(self, program):
        """An epoch has 25 batches of 16 pairs, more than the regime's 12 updates."""
        typed = (
            *QUICK_TINY,
            "trainer.max_epochs=1",
            "evaluation.valid_sentences=0",
            "hydra.run.dir=e",
        )
        ended = program("train", *typed, figures=False)
        assert ended.code == 0, ended.err
        assert results(program.folder / "e")["train"]["updates"] == 25
