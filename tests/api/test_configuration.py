"""`nmt.configure`: what the command would train with."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

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


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("optimiser.lr=1", "optimiser.lr: no such key; did you mean optimizer.lr"),
        ("model=seq2seq", "model=seq2seq: no such; available: rnnencdec, rnnsearch"),
        ("trainer.max_steps=0", "trainer.max_steps=0: must be at least 1"),
        ("optimizer.lr=fast", "optimizer.lr takes: number"),
        ("data=null", "data=null: "),
    ],
)
def test_what_is_wrong_is_refused_as_by_the_command(typed, said):
    with pytest.raises(nmt.InputError) as refused:
        nmt.configure(typed)
    assert said in str(refused.value)


def test_one_place_to_search_is_not_a_list():
    with pytest.raises(TypeError, match="searchpath: a list is expected"):
        nmt.configure("seed=1", searchpath="pkg://mine.conf")


def test_threads_compose_at_the_same_time():
    """Hydra holds what it composes with in a global place."""
    rates = [0.001 * number for number in range(1, 9)]
    with ThreadPoolExecutor(4) as pool:
        made = pool.map(lambda rate: nmt.configure(f"optimizer.lr={rate}"), rates)
        assert [config.optimizer.lr for config in made] == rates
