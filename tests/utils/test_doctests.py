"""The examples of docstrings."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["commands", "errors", "text"])
def test_examples(name):
    found = doctest.testmod(importlib.import_module(f"nmt.utils.{name}"))
    assert found.attempted
    assert not found.failed
