"""Random values of keys, their bounds, and the reference of keys.

The table of refusals is in `tests/promises/test_1_refusals.py`.
"""

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


@pytest.mark.slow
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
