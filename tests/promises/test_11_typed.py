"""Promise 11: every override is applied or refused, and the record shows what ran.

Each option of each config group is applied to the configuration of a checkpoint: with `ckpt_path`, with
`resume`, and in an evaluation. It must have the same effect as in a new run.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from textwrap import dedent
from typing import Any

import pytest
import torch

from nmt.cli.composition import LISTS, PLUS, conf_folder
from nmt.config.commands import EvaluateConfig, TrainConfig
from nmt.config.keys import RESUMABLE, WEIGHTS, effect_of, entries, flatten, is_within
from nmt.config.loading import load
from nmt.config.schema import to_containers
from nmt.utils.errors import InputError
from tests.helpers.composition import applied, composing
from tests.helpers.processes import SILENT
from tests.helpers.processes import TINY as QUICK_TINY
from tests.helpers.produced import files, results

TINY = ("+experiment=rnnsearch50", "regime=tiny")
CHOSEN = (
    "+experiment=rnnsearch50_long",
    "regime=gpu",
    "search=groundhog",
    "logger=[csv]",
    "trainer=ddp",
    "schedule=inverse_sqrt",
)
ACTING = (
    "search=greedy",
    "callbacks=none",
    "logger=none",
    "trainer=cpu",
    "optimizer=adamw",
    "schedule=linear",
    "debug=overfit",
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


def rest_is_slow(command: str, *before: Any) -> list[Any]:
    """Returns a pytest parameter per option, marked slow except for the first two options of each group."""
    seen: Counter[str] = Counter()
    parameters = []
    for word in options(command):
        seen[group_of(word)] += 1
        marks = [pytest.mark.slow] if seen[group_of(word)] > 2 else []
        parameters.append(pytest.param(*before, word, marks=marks))
    return parameters


@pytest.fixture(scope="module")
def keys_of(composer):
    """Returns keys_of(*typed), which returns the configuration of a new run by dotted key.

    It returns {} if the overrides are refused, such as RNNsearch with scoring=none.
    """

    @functools.cache
    def composed(*typed: str) -> dict[str, Any]:
        try:
            return flatten(to_containers(load(composer(*typed))))
        except InputError:
            return {}

    return composed


@pytest.fixture(scope="module")
def stored_of(composer):
    """Returns stored_of(*history), which returns the stored configuration of a run with these overrides."""
    return functools.cache(lambda *history: load(composer(*history)))


def going_on(stored_of, how: str, history: Sequence[str], word: str) -> dict[str, Any] | str:
    """Continues a run with `how` (such as ckpt_path=f) and `word`; returns its configuration, or the refused key."""
    try:
        config, _ = applied("train", stored_of(*history), history, [how, word], composed=[how])
    except InputError as refusal:
        return str(refusal).partition("=")[0]
    return flatten(to_containers(config)) | {"ckpt_path": None, "resume": None}


def test_groups_are_those_of_the_folder():
    folders = {path.name for path in conf_folder().iterdir() if path.is_dir()}
    assert folders - {"hydra"} == set(map(group_of, options("train")))


@pytest.mark.parametrize(
    ("history", "word"),
    [*rest_is_slow("train", TINY), *((CHOSEN, word) for word in ACTING)],
)
def test_a_group_gives_what_it_gives_in_the_first_command(stored_of, keys_of, history, word):
    """With ckpt_path and resume, an option has the same effect as in a new run, or is refused.

    Both refuse options that change the weights, the experiment or the regime. `resume` also refuses
    options that change the training.
    """
    if group_of(word) == "hparams_search":
        pytest.importorskip("hydra_plugins.hydra_optuna_sweeper", reason="extra optuna is missing")
    before = keys_of(*history)
    wanted = keys_of(*(each for each in history if group_of(each) != group_of(word)), word)
    differing = {key for key in before | wanted if before.get(key) != wanted.get(key)}
    names = {key for key in differing if key in ("experiment", "regime")}
    fixed = {key for key in differing if effect_of(TrainConfig, key) == WEIGHTS} | names
    ended = {key for key in differing if effect_of(TrainConfig, key) not in RESUMABLE}
    after = going_on(stored_of, "ckpt_path=f", history, word)
    assert (after in fixed) if fixed else (after == wanted)
    if not fixed:
        after = going_on(stored_of, "resume=run", history, word)
        assert (after in ended) if ended else (after == wanted)


@pytest.mark.parametrize("word", rest_is_slow("evaluate"))
def test_a_group_gives_an_evaluation_what_it_gives_in_the_first_command(composer, keys_of, word):
    before, wanted = keys_of(*TINY), keys_of(*TINY, word)
    declared = [name for name, _ in entries(EvaluateConfig) if name != "logger"]
    config, _ = applied("evaluate", load(composer(*TINY)), TINY, ["checkpoint=f", word])
    for key, value in flatten(to_containers(config)).items():
        if key not in LOCAL and not key.startswith("logger"):
            assert value == (wanted if is_within(key, declared) else before).get(key), key
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
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(dedent(text))
    return f"hydra.searchpath=[file://{tmp_path}]"


def test_a_group_of_the_users_own_acts(composer, own):
    stored = load(composer(*TINY))
    config, record = applied("train", stored, TINY, [own, "ckpt_path=f", "+mine=short"])
    assert (config.search.beam_size, config.search.max_ratio) == (3, 1.5)
    assert config.callbacks.keys() == {"best", "last", "mine"}
    assert record == [*TINY, "ckpt_path=f", "+mine=short"]


def test_a_group_of_the_users_own_acts_on_an_evaluation(composer, own, caplog):
    """The group changes keys that `nmt.evaluate` has; its other keys are ignored, and logged."""
    stored = load(composer(*TINY))
    with caplog.at_level("INFO"):
        config, _ = applied("evaluate", stored, TINY, [own, "checkpoint=f", "+mine=short"])
    assert config.search.beam_size == 3
    assert config.callbacks == stored.callbacks
    assert "+mine=short: unchanged training keys: callbacks.mine" in caplog.text
    config, _ = applied("evaluate", stored, TINY, [own, "checkpoint=f", "data=mine"])
    assert config.data.test["mine"].source == "c"
    assert list(config.data.test) == ["mine"]
    assert config.data.train == stored.data.train


@pytest.mark.parametrize(
    ("command", "word", "refusal"),
    [
        (
            "train",
            "+mine=wide",
            r"model\.hidden=99: .* was started with model\.hidden=24",
        ),
        ("evaluate", "+mine=lr", r"\+mine=lr: it belongs to the training run"),
    ],
)
def test_a_group_of_the_users_own_is_refused(composer, own, command, word, refusal):
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
def test_an_evaluation_has_no_key_that_it_does_not_use(composer, typed, refusal):
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
        ("callbacks=ema", {"callbacks.early_stopping.monitor": None, "callbacks.ema.decay": 0.999}),
        ("trainer={max_epochs: 2}", {"trainer.max_epochs": 2, "trainer.val_check_interval": 6}),
        ("search=beam", {"search.beam_size": 12, "search.batch_size": 5}),
        ("~data.test.test", {"data.test.test.grammar": None, "data.test.mine.source": "s"}),
    ],
)
def test_what_a_word_entails_follows_and_what_was_typed_before_stays(composer, typed, expected):
    history = (
        "+experiment=rnnsearch50_long",
        "regime=tiny",
        "search.beam_size=7",
        "search.batch_size=5",
        "+data.test.mine.source=s",
    )
    config, _ = applied("train", load(composer(*history)), history, ["ckpt_path=f", typed])
    after = flatten(to_containers(config))
    assert {key: after.get(key) for key in expected} == expected


def test_a_title_that_was_typed_stays(composer):
    history = (*TINY, "name=mine")
    stored = load(composer(*history))
    config, _ = applied("train", stored, history, ["ckpt_path=f", "data.max_length=30"])
    assert config.name == "mine"


def test_a_checkpoint_from_elsewhere_chooses_names_of_options_only(composer):
    """Hydra parses a stored override only if it names an existing option of a group."""
    stored = load(composer(*TINY))
    history = (*TINY, "search=${oc.env:HOME}", "scoring=../x", "nowhere=1", "seed=4", "x={a: 1")
    config, _ = applied("train", stored, history, ["ckpt_path=f", "search=greedy"])
    assert (config.search.beam_size, config.seed) == (1, 1)


def test_the_effects_of_keys():
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
            ("", f"{LAST}: its training ended at update 12 of 12; type trainer.max_steps=N"),
        ],
    )
    def test_refusals(self, program, rnnsearch, typed, refusal):
        ended = program("train", self.LAST, *typed.split(), "hydra.run.dir=refused", *SILENT)
        assert (ended.code, ended.out) == (2, "")
        assert f"nmt: {refusal}" in ended.err.splitlines()[-1]

    def test_a_debug_group_acts(self, program, rnnsearch):
        """With `debug=fdr`, training continues for one batch, and writes no checkpoint and no results."""
        ended = program("train", self.LAST, "debug=fdr", "hydra.run.dir=fdr", *SILENT)
        assert ended.code == 0, ended.err
        assert "update 13: validation" in ended.err
        assert files(program.folder / "fdr") == {"train.log", ".lock"} | {
            f".hydra/{name}.yaml" for name in ("config", "hydra", "overrides")
        }

    def test_an_optimizer_acts_and_the_record_says_what_ran(self, program, rnnsearch):
        typed = (self.LAST, "optimizer=adadelta", "schedule=constant", "data.max_length=30")
        ended = program(
            "train",
            *typed,
            "trainer.max_steps=13",
            "hydra.run.dir=with-adamw",
            *SILENT,
            figures=False,
        )
        assert ended.code == 0, ended.err
        content = results(program.folder / "with-adamw")
        names = [content[key] for key in ("name", "experiment", "regime", "max_length")]
        assert names == ["RNNsearch-30", "rnnsearch50", "tiny", 30]
        assert [content["config"][key] for key in ("name", "experiment", "regime")] == names[:3]
        assert content["config"]["optimizer"]["_target_"] == "torch.optim.Adadelta"
        made = torch.load(program.folder / "with-adamw/checkpoints/last.ckpt", weights_only=True)
        [optimizer] = made["optimizer_states"]
        assert optimizer["param_groups"][0]["rho"] == 0.95
        assert int(optimizer["state"][0]["step"]) == 1
        assert f"{' '.join(typed)} trainer.max_steps=13" in content["command"]

    def test_a_run_that_ended_early_is_continued_without_the_callback(self, program):
        """The run ended early, at its first validation, because the NLL was below the threshold."""
        typed = ("callbacks=early_stopping", "+callbacks.early_stopping.stopping_threshold=99")
        ended = program("train", *QUICK_TINY, *typed, "hydra.run.dir=early", figures=False)
        assert results(program.folder / "early")["train"]["updates"] == 6
        typed = ("ckpt_path=early/checkpoints/last.ckpt", "callbacks=none", "hydra.run.dir=late")
        ended = program("train", *typed, figures=False)
        assert ended.code == 0, ended.err
        assert results(program.folder / "late")["train"]["updates"] == 12
        again = program("train", "resume=early", figures=False)
        assert "the training has already ended early: " in again.err
        assert results(program.folder / "early")["train"]["updates"] == 6
        longer = program("train", "resume=early", "trainer.max_steps=14", figures=False)
        assert longer.code == 0, longer.err
        assert results(program.folder / "early")["train"]["updates"] > 6

    def test_epochs_replace_the_updates_of_the_regime(self, program):
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
