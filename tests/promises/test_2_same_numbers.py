"""Promise 2: the same command, seed, device and number of threads gives the same numbers."""

from __future__ import annotations

import pytest
import torch

from tests.helpers.processes import TINY

TYPED = (*TINY, "trainer.max_steps=6", "trainer.val_check_interval=3")


def test_same_command_gives_the_same_weights_and_scores(program):
    weights, tables = [], []
    for folder in ("first", "second"):
        ended = program("train", *TYPED, "seed=5", f"hydra.run.dir={folder}", figures=False)
        assert ended.code == 0, ended.err
        file = program.folder / folder / "checkpoints/last.ckpt"
        weights.append(torch.load(file, weights_only=True)["state_dict"])
        tables.append((program.folder / folder / "scores.csv").read_text())
    first, second = weights
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert tables[0] == tables[1]
    assert tables[0].count("\n") > 20


@pytest.mark.slow
def test_another_seed_gives_other_scores(program):
    ended = program("train", *TYPED, "seed=6", "hydra.run.dir=third", figures=False)
    assert ended.code == 0, ended.err
    scores = [(program.folder / folder / "scores.csv").read_text() for folder in ("first", "third")]
    assert scores[0] != scores[1]
