"""Every key is described; what is wrong is refused by name, in one or two lines."""

from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from nmt.cli.composition import conf_folder
from nmt.cli.reference import reference, type_name
from nmt.config import TrainConfig
from nmt.config.keys import entries
from nmt.config.schema import SCHEMAS, to_containers
from nmt.config.validation import NOT_LIGHTNINGS, load


def test_every_key_has_a_type_and_a_meaning():
    for schema in SCHEMAS.values():
        for path, entry, kind in entries(schema):
            assert type_name(kind), path
            assert len(entry.metadata["meaning"]) > 5, path
            assert "\n" not in entry.metadata["meaning"], path


def test_the_list_of_keys_is_up_to_date(composer):
    page = conf_folder().parent / "docs" / "configuration.md"
    assert page.read_text() == reference(conf_folder()), (
        "run: python -m nmt.cli.reference > docs/configuration.md"
    )


def test_the_list_of_keys_names_all_of_them():
    page = (conf_folder().parent / "docs" / "configuration.md").read_text()
    for schema in SCHEMAS.values():
        for path, _, _ in entries(schema):
            assert f"| `{path}` | " in page
    assert "| `optimizer.decay_from` | number | `0.5` | from 0, below 1 | linear: share" in page
    assert (
        "| `checkpoint` | value | must be given |  | file of the trained model, a run folder"
        in page
    )


def test_the_arguments_of_lightnings_trainer_that_are_refused_are_its():
    import inspect

    from pytorch_lightning import Trainer

    assert set(NOT_LIGHTNINGS) < set(inspect.signature(Trainer.__init__).parameters)


def test_new_entries_take_a_plus(composer):
    config = load(
        composer(
            "+data.test.mine.source=f",
            "+data.test.mine.target=g",
            "+data.test.mine.alignment_base=1",
        )
    )
    assert list(config.data.test) == ["test", "by_length", "mine"]
    mine = config.data.test["mine"]
    assert (mine.source, mine.target, mine.alignment_base, mine.tokenised) == ("f", "g", 1, False)


def test_a_configuration_read_back_is_the_same(composer):
    config = composer("+experiment=rnnsearch30", "+data.test.mine.source=f", "seed=7")
    values = to_containers(load(config))
    again = OmegaConf.merge(OmegaConf.structured(TrainConfig), values)
    assert to_containers(load(again)) == values


# what is typed (several overrides separated by spaces), and a part of what is said
REFUSED = [
    ("seeed=1", "seeed: no such key; did you mean seed"),
    ("trainer.max_step=5", "did you mean trainer.max_steps"),
    ("max_steps=5", "did you mean trainer.max_steps"),
    ("batch_size=5", "did you mean data.batch_size or search.batch_size"),
    ("quite.another=5", "quite.another: no such key; see docs/configuration.md"),
    ("+foo=1", "foo: no such key"),
    (
        "optimizer.rho=0.9",
        "optimizer.rho: renamed, type optimizer.options.rho",
    ),
    ("+optimizer.name=adam", "optimizer.name: renamed, type optimizer._target_"),
    (
        "optimizer.schedule=linear",
        "(schedule of the learning rate; type schedule=linear)",
    ),
    (
        "trainer.profiler=simple",
        "(an argument of Lightning's Trainer is typed +trainer.lightning.prof",
    ),
    ("trainer.lightning.profiler=simple", "to add one, type +trainer.lightning.profiler=…"),
    ("+trainer.lightning.max_epochs=3", "trainer.lightning.max_epochs: type trainer.max_steps"),
    (
        "optimizer.options={momentum:0.9}",
        "optimizer.options.momentum: no such entry; to add one, type +optimizer.options.momentum=…, "
        "and to remove one, ~optimizer.options.NAME",
    ),
    ("callbacks={ema:3}", "callbacks.ema: no such entry; to add one, type +callbacks.ema=…"),
    (
        "trainer.lightning={profiler:simple}",
        "trainer.lightning.profiler: no such entry; to add one, type +trainer.lightning.profiler=…",
    ),
    ("report.own={mine:3}", "report.own.mine: no such entry; to add one, type +report.own.mine=…"),
    ("callbacks=swaa", "available: device_stats, ema, learning_rate_monitor, none, swa"),
    ("callbacks.ema.decay=0.9", "to add one, type +callbacks.ema.decay=…"),
    ("schedule=cosine", "schedule=cosine: no such; available: constant, inverse_sqrt, linear"),
    ("+trainer.foo=1", "trainer.foo: no such key"),
    ("++trainer.foo=1", "trainer.foo: no such key"),
    ("+experiment=rnnsearch40", "rnnencdec30, rnnencdec50, rnnsearch30, rnnsearch50"),
    (
        "scoring=cosin",
        "scoring=cosin: no such; available: additive, cosine, dot, general, none, rescaled_dot, "
        "scaled_dot",
    ),
    ("callbacks=[ema,early]", "callbacks=early: no such; available: device_stats, ema, "),
    ("regime=desktop", "regime=desktop: no such; available: gpu, laptop, paper, tiny"),
    ("data=wmt15", "available: europarl, grammar, multi30k, text, wmt14"),
    ("+data=text", "type data=… without the plus"),
    ("experiment=rnnsearch50", "type +experiment=…"),
    ("stress=lengths", "type +stress=…"),
    ("+stress=widths", "stress=widths: no such; available: lengths"),
    ("model=null", "model=null: not the name of one of a group's options"),
    ("trainer=3", "trainer=3: not the name of one of a group's options"),
    ("=3", "=3: not the name"),
    ("trainer=cpu,gpu", "trainer=cpu,gpu: more than one value"),
    (
        "+experiment=rnnencdec50 scoring=dot",
        "scoring=nmt.layers.scoring.Dot: RNNencdec has no attention",
    ),
    ("scoring=none", "scoring=none: RNNsearch needs a scoring: additive, dot, scaled_dot"),
    (
        "evaluation.attention=mean",
        "must be one of as_trained, uniform, argmax, top_k, permuted, shif",
    ),
    (
        "model=rnnencdec model.projection_lr_exponent=-0.5",
        "RNNencdec has no attention, hence no W_a",
    ),
    ("seed", "seed: not of the form key=value"),
    ("a=b=c", "a=b=c: cannot be read"),
    ("name=a=b", "'name=\"a=b\"'"),
    ("data.languages=[en", "data.languages=[en: cannot be read"),
    ("+data.test.mi/ne.source=f", "+data.test.mi/ne.source=f: cannot be read"),
    ("+seed=1", "An item is already at 'seed'"),
    ("trainer.max_steps=abc", "trainer.max_steps takes: whole number, from 1 (updates of the"),
    ("trainer.max_steps=1.5", "trainer.max_steps=1.5: Value '1.5'"),
    ("trainer.max_steps=null", "field 'trainer.max_steps' is not Optional"),
    ("trainer.progress=maybe", "'maybe' is not a valid bool"),
    ("data.batch_size=true", "data.batch_size takes: whole number, from 1"),
    ("data.languages=en", "data.languages takes: list of text"),
    ("data.train.source=[a]", "data.train.source takes: text or null"),
    ("data.train=foo", "data.train=foo: Invalid type"),
    ("model.scoring=foo", "model.scoring=foo: Cannot assign str"),
    ("trainer.max_steps=0", "trainer.max_steps=0: must be at least 1"),
    ("trainer.threads=0", "trainer.threads=0: must be at least 1"),
    ("trainer.threads=all", "trainer.threads=all: must be a whole number, or auto"),
    ("trainer.threads=1.5", "trainer.threads"),
    ("seed=-1", "seed=-1: must be at least 0"),
    ("seed=4294967296", "seed=4294967296: must be at most 4294967295"),
    ("model.dropout=1", "model.dropout=1.0: must be below 1"),
    ("optimizer.lr=0", "optimizer.lr=0.0: must be above 0"),
    ("optimizer.lr=nan", "optimizer.lr=nan: must be a finite number"),
    ("optimizer.lr=inf", "optimizer.lr=inf: must be a finite number"),
    ("optimizer.clip_norm=-inf", "optimizer.clip_norm=-inf: must be a finite number"),
    ("checkpoint.minutes=1e400", "checkpoint.minutes=inf: must be a finite number"),
    ("evaluation.alignment.null=2", "evaluation.alignment.null=2.0: must be at most 1"),
    ("logger.mode=loud", "logger.mode=loud: must be one of offline, online, disabled"),
    ("trainer.precision=16", "trainer.precision=16: must be one of 32, bf16-mixed, auto"),
    ("tokenizer.kind=chars", "tokenizer.kind=chars: must be one of words, bpe"),
    ("data.train.grammar=foo", "data.train.grammar=foo: must be one of natural, by_length"),
    ("report.figures=[png,bmp]", "report.figures=['png', 'bmp']: must be one of png, svg, pdf"),
    ("data.languages=[en]", "data.languages=[en]: must be a source and a target language"),
    ("evaluation.edges=[10,5]", "evaluation.edges=[10, 5]: must be increasing"),
    ("evaluation.edges=[0,5]", "evaluation.edges=[0, 5]: must be at least 1"),
    ("data.grammar.edges=[5,5]", "data.grammar.edges=[5, 5]: must be increasing"),
    ("+stress=lengths stress.lengths=[40,20]", "stress.lengths=[40, 20]: must be increasing"),
    ("data.batch_size=81 trainer.devices=2", "data.batch_size=81: must be a multiple"),
    ("data.batch_by=words", "data.batch_by=words: must be one of sentences, tokens"),
    ("data.batch_tokens=0", "data.batch_tokens=0: must be at least 1"),
    ("tokenizer=bpe search.replace_unk=copy", "search.replace_unk=copy: tokenizer=bpe leaves"),
    ("trainer.strategy=ddp_spawn", "trainer.strategy=ddp_spawn: must be one of auto, ddp"),
    ("+data.test.a.detok.source=f", "data.test.a: "),
    ("data.max_length=65535", "data.max_length=65535: must be at most 65534"),
    ("search.nbest=13", "search.nbest=13: must be at most search.beam_size=12"),
    ("optimizer.warmup=1000", "optimizer.warmup=1000: must be below trainer.max_steps=1000"),
    ("data.test.mine.source=f", "data.test.mine.source: no such entry; to add one, type +"),
    ("+data.test.mine.sorce=f", "data.test.mine: Key 'sorce' not in 'TextConfig'"),
    ("+data.test.mine=f", "data.test.mine: "),
    ("+data.test.mine=null", "data.test.mine: "),
    ("+data.test.été.source=f", "+data.test.été.source=f: cannot be read"),
    ("+data.test.mine.pairs=0", "data.test.mine.pairs=0: must be at least 1"),
    ("+external.moses.test=f", "external: no such key"),
    ("name=${nope}", "name: Interpolation key 'nope' not found"),
    ("seed=${seed}", "seed: Recursive interpolation"),
    ("~trainer.max_steps", "~trainer.max_steps: TrainerConfig (DictConfig) does not support"),
]


@pytest.mark.parametrize(("typed", "part"), REFUSED, ids=[typed for typed, _ in REFUSED])
def test_refused_in_two_lines_that_name_the_key(check, typed, part):
    code, message = check(*typed.split())
    assert code == 2
    assert part in message
    assert message.startswith("nmt: ")
    assert 1 <= message.count("\n") <= 2
    assert "Traceback" not in message


@pytest.mark.parametrize(
    ("command", "typed", "part"),
    [
        ("translate", "nbets=3", "did you mean nbest"),
        ("translate", "checkpoint=f nbest=0", "nbest=0: must be at least 1"),
        ("translate", "checkpoint=f alignments=moses", "must be one of pharaoh, json"),
        ("evaluate", "set=[a]", "did you mean sets"),
        ("compare", "ruins=[a]", "did you mean runs"),
        ("compare", "runs=[a] resamples=-1", "resamples=-1: must be at least 0"),
        ("compare", "runs=[a] seed=1", "seed: no such key"),
        ("compare", "runs=a", "runs takes: list of text"),
        ("compare", "external.moses.test=f", "type +external.moses.test=…"),
        ("compare", "+external.moses=f", "+external.moses=f: Cannot assign str"),
        ("compare", "runs=[a] figures=gif", "figures=gif: must be one of png, svg, pdf"),
        ("compare", "runs=[a] figures=[pdf,gif]", "must be one of png, svg, pdf"),
        ("prepare", "data.cash=f", "did you mean data.cache"),
    ],
)
def test_each_command_knows_its_own_keys(check, command, typed, part):
    code, message = check(*typed.split(), command=command)
    assert code == 2
    assert part in message
    assert message.count("\n") <= 2


BOUNDED = [
    (path, kind, entry.metadata)
    for path, entry, kind in entries(TrainConfig)
    if kind in (int, float) and {"minimum", "maximum", "above", "below"} & set(entry.metadata)
]


def accepted(value: float, bounds: dict[str, float]) -> bool:
    """The bounds of a key, written a second time."""
    return (
        math.isfinite(value)
        and value >= bounds.get("minimum", -math.inf)
        and value <= bounds.get("maximum", math.inf)
        and value > bounds.get("above", -math.inf)
        and value < bounds.get("below", math.inf)
    )


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_value_out_of_bounds_is_always_a_refusal(check, data):
    path, kind, bounds = data.draw(st.sampled_from(BOUNDED))
    numbers = st.floats(width=32) if kind is float else st.integers(-(10**12), 10**12)
    value = data.draw(numbers.filter(lambda number: not accepted(number, bounds)), label=path)
    code, message = check(f"{path}={value}")
    assert code == 2
    assert message.startswith(f"nmt: {path}=")
    assert message.count("\n") == 1


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    path=st.sampled_from([path for path, _, _ in entries(TrainConfig)]),
    value=st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12),
)
def test_whatever_is_typed_no_traceback(check, path, value):
    code, message = check(f"{path}={value}")
    assert code in (0, 2), message
    assert "Traceback" not in message
    assert message.count("\n") <= 2
