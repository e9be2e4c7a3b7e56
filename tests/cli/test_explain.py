"""What is said of Hydra's and OmegaConf's errors: the file and the key that they are about."""

import shlex

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import OverrideParseException

from nmt.cli.explain import explain
from nmt.config import CompareConfig

STARTS = (
    "type initial_checkpoint=RUN_FOLDER to start from its weights, "
    "or resume=RUN_FOLDER to go on with its training"
)


@pytest.mark.parametrize(
    ("typed", "instead"),
    [
        ("runs=[a=b]", """'runs=["a=b"]'"""),
        ("runs=[a=b, c/d=[e]", """'runs="[a=b, c/d=[e]"'"""),
        ("runs=[data=text, x.y=1]", """'runs=["data=text","x.y=1"]'"""),
        ("title=a=b", """'title="a=b"'"""),
    ],
)
def test_how_a_value_of_special_characters_is_quoted(typed, instead):
    with pytest.raises(OverrideParseException) as refusal:
        OverridesParser.create().parse_overrides([typed])
    said = explain(refusal.value, CompareConfig, [typed])
    assert said.splitlines()[1].endswith(f" take two pairs of quotes: {instead}")
    (read,) = OverridesParser.create().parse_overrides(shlex.split(instead))
    assert read.key_or_group == typed.partition("=")[0]


@pytest.mark.parametrize(
    ("typed", "instead"),
    [
        ("trainer.gradient_clip_val=1.0", "type optimizer.clip_norm"),
        ("trainer.max_epochs=3", "type trainer.max_steps"),
        ("trainer.ckpt_path=a.ckpt", "type resume=RUN_FOLDER"),
        ("ckpt_path=a.ckpt", "type resume=RUN_FOLDER"),
        ("learning_rate=0.1", "type optimizer.lr"),
        ("trainer.early_stopping=true", "type trainer.patience"),
        ("load_model=a.ckpt", STARTS),
    ],
)
def test_the_key_for_what_is_called_otherwise_elsewhere(program, typed, instead):
    ended = program("train", typed)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[-1] == f"nmt: {typed.partition('=')[0]}: no such key; {instead}"


def test_what_other_commands_call_a_trained_model(program):
    ended = program("train", "checkpoint=a.ckpt")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"nmt: checkpoint=a.ckpt: a section of keys; {STARTS}\n"
