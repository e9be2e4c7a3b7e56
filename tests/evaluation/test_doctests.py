import doctest
import importlib
import pkgutil

import pytest

import nmt.evaluation

MODULES = [
    module.name for module in pkgutil.walk_packages(nmt.evaluation.__path__, "nmt.evaluation.")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0
