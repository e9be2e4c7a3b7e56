"""The files at the root of the repository are consistent."""

from __future__ import annotations

import re
import tomllib

import yaml

import nmt
from tests.helpers import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_version_is_the_same_everywhere():
    assert PROJECT["project"]["version"] == nmt.__version__
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == nmt.__version__
    assert citation["license"] == PROJECT["project"]["license"]
    assert citation["preferred-citation"]["authors"][0]["family-names"] == "Bahdanau"
    changes = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert changes[0] in ("Unreleased", nmt.__version__)
    assert nmt.__version__ in changes


def test_every_dependency_is_pinned_with_the_hashes_of_its_files():
    pins = (ROOT / "constraints.txt").read_text().replace("\\\n", "")
    pinned = {re.match(r"[\w.-]+", line)[0] for line in pins.splitlines() if "--hash=" in line}
    named = {re.match(r"[\w-]+", need)[0].lower() for need in PROJECT["project"]["dependencies"]}
    assert named <= pinned
    assert "://" not in pins  # no URL of a package index
    assert re.search(r"^torch==2\.15\.", pins, re.MULTILINE)
