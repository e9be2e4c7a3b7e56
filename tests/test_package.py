"""`import nmt`: its names, and what it does not import."""

import importlib
import subprocess
import sys

import pytest

import nmt
from tests.helpers import ROOT


def test_every_name_can_be_imported():
    for name in nmt.__all__:
        assert callable(getattr(nmt, name)) or name == "__version__"
    assert set(nmt.__all__) <= set(dir(nmt))
    with pytest.raises(AttributeError, match="'nmt' has no attribute 'translte'"):
        _ = nmt.translte


def test_import_is_light():
    code = "import sys, nmt; print('pandas' in sys.modules, 'torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False"]


def test_compare_is_called_also_where_its_command_was_imported():
    importlib.import_module("nmt.compare")
    with pytest.raises(nmt.InputError, match="no/such/run"):
        nmt.compare(["no/such/run"])
