import doctest
import importlib
import pkgutil

import pytest

import nmt.evaluation

MODULES = [module.name for module in pkgutil.iter_modules(nmt.evaluation.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    result = doctest.testmod(importlib.import_module(f"nmt.evaluation.{name}"))
    assert result.failed == 0
