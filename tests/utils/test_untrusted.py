"""What is read quickly is still held to the bounds."""

import json

import pytest

from nmt.utils import untrusted
from nmt.utils.errors import InputError
from nmt.utils.untrusted import DEEPEST, read_json


def test_a_long_line_of_small_numbers_is_not_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untrusted, "bounded", None)
    row = {"weights": [[0.25, 1e-05]] * 300, "target": ['[[[["', "\\[[{"] * 100}
    assert read_json(json.dumps(row).encode(), "here") == row


@pytest.mark.parametrize(
    "text",
    [
        '["]]]]", ' + "[" * DEEPEST + "]" * DEEPEST + "]",
        '{"a": [' + "[1]," * 200 + "9223372036854775808]}",
        '{"a": [' + "[1]," * 200 + "-99999999999999999999]}",
    ],
)
def test_what_is_too_deep_or_too_large_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"here: .*(deep|bits)"):
        read_json(text.encode(), "here")
