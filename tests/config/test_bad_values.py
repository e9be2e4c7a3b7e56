"""Every key that has bounds, with values beyond each of them, and numbers that are none."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from typing import Any

import pytest
from omegaconf import OmegaConf

from nmt.config.keys import entries
from nmt.config.schema import SCHEMAS
from nmt.config.validation import validate_keys
from nmt.utils.errors import InputError


def beyond(accepts: Any, kind: Any) -> Iterator[Any]:
    """Values of the key's own type that it does not accept."""
    step = 1 if kind is int or int in typing.get_args(kind) else 1e-3
    if "choices" in accepts:
        yield -1 if step == 1 and not isinstance(accepts["choices"][0], str) else "nonsense"
    if "minimum" in accepts:
        yield accepts["minimum"] - step
        yield -(10**9)
    if "above" in accepts:
        yield accepts["above"]
    if "maximum" in accepts:
        yield accepts["maximum"] + step
        yield accepts["maximum"] * 10**6 + step
    if "below" in accepts:
        yield accepts["below"]
    if "path" in accepts:
        yield ""
    if kind is float or float in typing.get_args(kind):
        yield from (float("nan"), float("inf"))


def cases() -> dict[str, tuple[str, str, Any]]:
    """The command, the key and the value, by a name; keys that commands share once."""
    found: dict[str, tuple[str, str, Any]] = {}
    for command, schema in SCHEMAS.items():
        for key, entry, kind in entries(schema):
            for value in beyond(entry.metadata, kind):
                given = [value] if typing.get_origin(kind) is list else value
                found.setdefault(f"{key}={value}", (command, key, given))
    return found


CASES = cases()


def test_there_are_enough_of_them():
    assert len(CASES) >= 150
    large = {"trainer.threads", "data.workers", "search.beam_size", "data.batch_size"}
    asked = {key for _, key, value in CASES.values() if isinstance(value, int) and value > 1}
    assert asked >= large | {f"size.{name}" for name in ("hidden", "embedding", "maxout")}


EMPTY = [name for name, (_, _, value) in CASES.items() if value in ("", [""])]


def test_files_and_folders_have_names():
    assert {"checkpoint=", "page=", "against=", "output=", "runs=", "data.cache="} <= set(EMPTY)


@pytest.mark.parametrize(
    "names",
    [EMPTY, list(CASES)[::20], pytest.param(list(CASES), marks=pytest.mark.slow)],
    ids=["empty", "some", "all"],
)
def test_values_beyond_their_bounds_are_refused_in_a_line_that_names_the_key(names):
    configs = {command: OmegaConf.structured(schema) for command, schema in SCHEMAS.items()}
    for config in configs.values():
        for missing in OmegaConf.missing_keys(config):
            OmegaConf.update(config, missing, ["x"] if missing == "runs" else "x")
        validate_keys(config)
    for name in names:
        command, key, value = CASES[name]
        config = configs[command].copy()
        OmegaConf.update(config, key, value)
        with pytest.raises(InputError) as refusal:
            validate_keys(config)
        said = str(refusal.value)
        assert said.startswith(f"{key}="), name
        assert ": must be " in said
        assert "\n" not in said
