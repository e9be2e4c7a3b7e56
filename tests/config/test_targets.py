"""If code of a `_target_` raises an error, the message has one line, without the text that Hydra adds."""

from __future__ import annotations

import pytest
from hydra.utils import instantiate

from nmt.config.code import errors_naming
from nmt.utils.errors import InputError

MODULES = {
    "broken_at_import": "import json\njson.loads('{')\n",
    "needs_another": "import a_package_that_is_missing\n",
    "fails_when_called": "def f(**given):\n    raise ValueError('first\\nsecond')\n"
    "def g(**given):\n    raise KeyError('size')\n",
}


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("nope.Nope", "No module named 'nope'"),
        ("torch.optim.Nope", "No module named 'torch.optim.Nope'"),
        ("broken_at_import.f", "Expecting property name"),
        ("needs_another.f", "No module named 'a_package_that_is_missing'"),
        ("fails_when_called.f", "some.key: first"),
        ("fails_when_called.g", "some.key: KeyError: 'size'"),
    ],
)
def test_errors_of_instantiate_are_one_line_with_the_key(
    target, said, tmp_path, monkeypatch, caplog
):
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError) as refused, errors_naming("some.key"):
        instantiate({"_target_": target, "size": 3})
    message = str(refused.value)
    assert message.startswith("some.key: ")
    assert said in message
    assert "\n" not in message
    assert not caplog.records
