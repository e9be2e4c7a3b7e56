"""`nmt.configure`: what the command would train with."""

from __future__ import annotations

import pytest

import nmt
from nmt.config.validation import load


def test_it_is_the_commands_configuration(composer):
    typed = ("+experiment=rnnsearch30", "regime=tiny", "optimizer.lr=0.002")
    config = nmt.configure(*typed)
    assert config == load(composer(*typed))
    assert (config.data.max_length, config.optimizer.lr) == (30, 0.002)


def test_options_of_ones_own(tmp_path):
    (tmp_path / "optimizer").mkdir()
    (tmp_path / "optimizer/slow.yaml").write_text("defaults:\n  - adam\n\nlr: 0.0001\n")
    config = nmt.configure("optimizer=slow", searchpath=[f"file://{tmp_path}"])
    assert config.optimizer.lr == 0.0001


def test_a_wrong_key_is_refused():
    with pytest.raises(nmt.InputError, match=r"optimiser\.lr: no such key"):
        nmt.configure("optimiser.lr=1")
