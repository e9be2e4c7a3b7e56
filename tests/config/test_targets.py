"""Errors of code that a configuration names: one line, and nothing of Hydra's."""

from __future__ import annotations

import logging

import pytest
from hydra.utils import get_class, get_method, get_object, instantiate

from nmt.config.targets import named_by
from nmt.utils.errors import InputError

MODULES = {
    "broken_at_import": "import json\njson.loads('{')\n",
    "needs_another": "import a_package_that_is_missing\n",
    "fails_when_called": "def f(**given):\n    raise ValueError('first\\nsecond')\n"
    "def g(**given):\n    raise KeyError('size')\n",
}


@pytest.fixture(autouse=True)
def _modules(tmp_path, monkeypatch):
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize("locate", [get_class, get_method, get_object])
@pytest.mark.parametrize("target", ["torch.optim.Nope", "nope", "nope.f"])
def test_what_is_not_there_is_told_in_one_line(locate, target, caplog):
    with pytest.raises(InputError) as refused, named_by(f"some.key={target}"):
        locate(target)
    assert str(refused.value).startswith(f"some.key={target}: ")
    assert "\n" not in str(refused.value)
    assert not caplog.records
    assert not logging.getLogger("hydra.utils").disabled


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("nope.Nope", "No module named 'nope'"),
        ("broken_at_import.f", "Expecting property name"),
        ("needs_another.f", "No module named 'a_package_that_is_missing'"),
        ("fails_when_called.f", "some.key: first"),
        ("fails_when_called.g", "some.key: KeyError: 'size'"),
    ],
)
def test_hydras_own_lines_are_left_out(target, said):
    with pytest.raises(InputError) as refused, named_by("some.key"):
        instantiate({"_target_": target, "size": 3})
    assert str(refused.value).startswith("some.key: ")
    assert said in str(refused.value)
    assert "HYDRA_FULL_ERROR" not in str(refused.value)
    assert "\n" not in str(refused.value)
