"""Wrong overrides end with exit code 2, and with one or two lines that name the key."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from docs.configuration import reference
from nmt.cli.composition import conf_folder
from nmt.config.commands import SCHEMAS, TrainConfig
from nmt.config.keys import entries
from nmt.config.loading import check_bounds
from nmt.utils.errors import InputError

# command, overrides, and a part of the message
REFUSED = [
    ("train", "seeed=1", "did you mean seed?"),
    ("train", "+foo=1", "foo: no such key"),
    ("train", "quite.another=5", "quite.another: no such key"),
    ("train", "model=seq2seq", "available: rnnencdec, rnnsearch"),
    ("train", "callbacks=[ema,early]", "callbacks=early: no such option"),
    ("train", "seed", "seed"),
    ("train", "name=a=b", "'name=\"a=b\"'"),
    ("train", "data.batch_size=abc", "data.batch_size takes: int, at least 1"),
    ("train", "data.languages=en", "data.languages takes: list[str]"),
    ("train", "data.languages=en-fr", "must be a list, [a,b]"),
    ("train", "seed=1,2", "put -m before the overrides"),
    ("train", "data.train=foo", "data.train"),
    ("train", "optimizer.lr=nan", "optimizer.lr=nan: must be a finite number"),
    ("train", "data.languages=[en]", "data.languages"),
    ("train", "evaluation.edges=[10,5]", "evaluation.edges=[10, 5]: must be increasing"),
    ("train", "model=rnnencdec scoring=dot", "RNNencdec has no attention"),
    ("train", "scoring=none", "scoring=none: RNNsearch needs"),
    ("train", "+data.test.mine.sorce=f", "data.test.mine"),
    ("train", "name=${nope}", "name"),
    ("translate", "checkpoint=f search.nbest=0", "nbest=0: must be at least 1"),
    ("translate", "checkpoint=f alignments=moses", "must be one of pharaoh, json"),
    ("evaluate", "checkpoint=f set=[a]", "did you mean sets"),
    ("evaluate", "checkpoint=f model=rnnencdec", "model: no such key"),
    ("evaluate", "checkpoint=f +experiment=rnnencdec50", "experiment"),
    ("translate", "checkpoint=f data.test.test.pairs=3", "data.test.test.pairs: no such key"),
    ("translate", "scores=true", "checkpoint: must be given"),
    ("compare", "runs=a", "runs takes: list[str]"),
]


@pytest.mark.parametrize(
    ("command", "typed", "named"), REFUSED, ids=[f"{row[0]} {row[1]}" for row in REFUSED]
)
def test_refusal_names_the_key(check, command, typed, named):
    code, message = check(*typed.split(), command=command)
    assert code == 2
    assert named in message
    assert 1 <= message.count("\n") <= 2


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    path=st.sampled_from([path for path, _ in entries(TrainConfig)]),
    value=st.text(st.characters(codec="utf-8", exclude_characters="\0\n\r"), max_size=12),
)
def test_random_values_never_raise_a_traceback(check, path, value):
    code, message = check(f"{path}={value}")
    assert code in (0, 2), message
    assert message.count("\n") <= 2


def beyond(accepts: Mapping[str, Any]) -> Iterator[Any]:
    """Yields values that have the right type for a key, but break its bounds or choices."""
    if "choices" in accepts:
        yield -1 if isinstance(accepts["choices"][0], int) else "nonsense"
    for name, step in (("minimum", -1), ("above", 0), ("maximum", 1), ("below", 0)):
        if name in accepts:
            yield accepts[name] + step


def test_check_bounds_refuses_values_beyond_each_bound():
    count = 0
    for schema in SCHEMAS.values():
        config = schema()
        check_bounds(config)
        for key, entry in entries(schema):
            *parents, name = key.split(".")
            section = functools.reduce(getattr, parents, config)
            before = getattr(section, name)
            for value in beyond(entry.metadata):
                setattr(section, name, [value] if str(entry.type).startswith("list") else value)
                with pytest.raises(InputError, match=rf"^{key}=.*: must be [^\n]*$"):
                    check_bounds(config)
                count += 1
            setattr(section, name, before)
    assert count > 80


def test_reference_of_keys_is_up_to_date():
    page = conf_folder().parent / "docs" / "configuration.md"
    assert page.read_text() == reference(), (
        "run: python -m docs.configuration > docs/configuration.md"
    )
