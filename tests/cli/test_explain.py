"""What is said of Hydra's and OmegaConf's errors: the file and the key that they are about."""

import shlex

import hydra
import pytest
import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import OverrideParseException

from nmt.cli.command import REFUSALS, check_composed
from nmt.cli.composition import conf_folder, register_configs
from nmt.cli.explain import explain
from nmt.config import StudyConfig

STARTS = (
    "type initial_checkpoint=RUN_FOLDER to start from its weights, "
    "or resume=RUN_FOLDER to go on with its training"
)
RUNS = {"a": {}}
CLAIMS = {"c": {"claim": "${nowhere}", "source": "s", "runs": ["a"], "statistic": "score"}}


@pytest.mark.parametrize(
    ("study", "said"),
    [
        ({"seeds": ["x"]}, "study/mine: study.seeds[0]: Value 'x' of type 'str' could not"),
        ({"seeds": 3}, "study/mine: study.seeds: Invalid value assigned: AnyNode is not a ListConfig, "
         "list or tuple.\nstudy.seeds takes: list of whole number, from 0 (seeds of each group"),
        ({"overrides": "size=tiny"}, "study/mine: study.overrides: Invalid value assigned"),
        ({"claims": [{"claim": "c"}]}, "In 'study/mine': ConfigTypeError raised while composing"),
        ({"runs": {1: {}}}, "study/mine: study.runs.1: Key 1 (int) is incompatible with (str)"),
        ({"runs": RUNS, "claims": CLAIMS}, "study.claims.c.claim: Interpolation key 'nowhere'"),
    ],
)  # fmt: skip
def test_the_key_is_named(tmp_path, study, said):
    (tmp_path / "study").mkdir()
    (tmp_path / "study/mine.yaml").write_text(yaml.safe_dump(study))
    register_configs()
    typed = ["+study=mine", f"hydra.searchpath=[file://{tmp_path}]"]
    with (
        hydra.initialize_config_dir(str(conf_folder()), version_base="1.3"),
        pytest.raises(REFUSALS) as refusal,
    ):
        check_composed(hydra.compose("study", overrides=typed))
    assert explain(refusal.value, StudyConfig, typed).startswith(said)


@pytest.mark.parametrize(
    ("typed", "instead"),
    [
        ("study.overrides=[a=b]", """'study.overrides=["a=b"]'"""),
        ("study.overrides=[a=b, c/d=[e]", """'study.overrides="[a=b, c/d=[e]"'"""),
        ("study.overrides=[data=text, x.y=1]", """'study.overrides=["data=text","x.y=1"]'"""),
        ("title=a=b", """'title="a=b"'"""),
    ],
)
def test_how_a_value_of_special_characters_is_quoted(typed, instead):
    with pytest.raises(OverrideParseException) as refusal:
        OverridesParser.create().parse_overrides([typed])
    said = explain(refusal.value, StudyConfig, [typed])
    assert said.splitlines()[1].endswith(f" take two pairs of quotes: {instead}")
    (read,) = OverridesParser.create().parse_overrides(shlex.split(instead))
    assert read.key_or_group == typed.partition("=")[0]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("seeds: [\nresamples: 1\n", ":3: expected ',' or ']', but got '<stream end>'"),
        ("title: a: b\n", ":1: mapping values are not allowed here"),
        ("seeds:\n\t- 1\n", ":2: found character '\\t' that cannot start any token"),
        ("title: a\ntitle: b\n", ":2: found duplicate key title"),
    ],
)
def test_a_file_that_is_no_yaml_is_named_with_its_line(program, tmp_path, content, said):
    (tmp_path / "study").mkdir()
    file = tmp_path / "study/mine.yaml"
    file.write_text(content)
    ended = program("study", "--config-dir", str(tmp_path), "+study=mine", "study.plan_only=true")
    assert (ended.code, ended.err.splitlines()[-1]) == (2, f"nmt: {file}{said}")


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


def test_the_words_of_a_list_are_quoted_one_by_one(program):
    """As a shell leaves `study.overrides=["data=mine","regime=tiny"]`; what is said composes."""
    ended = program("study", "+study=own", "study.overrides=[data=mine,regime=tiny]")
    said = ended.err.splitlines()
    assert ended.code == 2
    assert said[-2].startswith("nmt: study.overrides=[data=mine,regime=tiny]: cannot be read")
    assert said[-1].endswith(""": 'study.overrides=["data=mine","regime=tiny"]'""")
