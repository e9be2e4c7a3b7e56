"""The example programs, with small models and little data."""

from __future__ import annotations

import pytest

from examples.omissions import find_omissions
from examples.probe import probe
from examples.scoring import train
from tests.helpers.models import small_checkpoint


def test_probe_returns_a_share_per_position(tmp_path):
    rows = probe(str(small_checkpoint(tmp_path / "model.ckpt")), sentences=12, positions=1)
    assert len(rows) == 1
    for row in rows:
        assert all(0 <= value <= 1 for value in row.values())


def test_find_omissions_lists_words_with_little_attention(tmp_path):
    run = str(small_checkpoint(tmp_path / "model.ckpt"))
    sentence = "the red cat sees a bird ."
    [none], [every] = (find_omissions(run, [sentence], least) for least in (0.0, 1000.0))
    assert none.omitted == []
    assert every.omitted == sentence.split()
    assert every.translation == none.translation


@pytest.mark.slow
def test_example_with_a_user_scoring_function_trains(tmp_path):
    typed = (f"data.cache={tmp_path}", "trainer.max_steps=4", "trainer.val_check_interval=4")
    own = train(*typed, "model.scoring._target_=examples.scoring.Distance")
    paper = train(*typed)
    assert own["valid/nll_per_word"] == pytest.approx(paper["valid/nll_per_word"], rel=0.2)
    assert own["valid/nll_per_word"] != paper["valid/nll_per_word"]
