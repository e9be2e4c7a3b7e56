"""The examples of docstrings."""

import doctest
import importlib

import pytest

from tests.helpers import ROOT

FILES = [file for file in (ROOT / "nmt").rglob("*.py") if ">>> " in file.read_text()]
MODULES = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in FILES]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted
    assert not found.failed
