"""The program stays small: `[tool.nmt.budget]` of pyproject.toml holds the largest numbers."""

from __future__ import annotations

import tomllib

import pytest

from nmt.config import TextConfig
from nmt.config.commands import SCHEMAS
from nmt.config.keys import entries
from tests.helpers import ROOT

BUDGET = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["nmt"]["budget"]
FOLDERS = {"nmt": ("nmt", "hydra_plugins"), "tests": ("tests",)}


@pytest.mark.parametrize("part", FOLDERS)
def test_lines_of_python(part):
    files = [file for folder in FOLDERS[part] for file in (ROOT / folder).rglob("*.py")]
    lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
    assert lines <= BUDGET[part]


def test_configuration_keys():
    keys = {key for schema in SCHEMAS.values() for key, _ in entries(schema)}
    assert len(keys) + len(list(entries(TextConfig))) <= BUDGET["keys"]
