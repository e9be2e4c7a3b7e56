"""Checks the budgets of `[tool.nmt.budget]` in pyproject.toml."""

from __future__ import annotations

import tomllib

import pytest

from nmt.config.commands import SCHEMAS
from nmt.config.keys import entries
from nmt.config.schema import TextConfig
from tests.helpers import ROOT

BUDGET = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["nmt"]["budget"]


@pytest.mark.parametrize("folder", BUDGET["lines"])
def test_lines_of_each_folder(folder):
    files = (ROOT / folder).glob("*.py" if folder == "nmt" else "**/*.py")
    lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
    assert 0 < lines <= BUDGET["lines"][folder]


def test_every_folder_has_a_budget():
    folders = {f"nmt/{file.parent.name}" for file in ROOT.glob("nmt/*/__init__.py")}
    assert folders | {"nmt", "hydra_plugins", "benchmarks"} == set(BUDGET["lines"])


def test_configuration_keys():
    keys = {key for schema in SCHEMAS.values() for key, _ in entries(schema)}
    assert len(keys) + len(list(entries(TextConfig))) <= BUDGET["keys"]
