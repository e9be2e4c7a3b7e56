"""Promise 5: results are equal for any number of devices, and every test sentence counts once.

Here the ranks are processes on the CPU, started as Lightning starts them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
import torch

from nmt.evaluation.scores_csv import read_scores
from tests.helpers.processes import TINY, run

# 13 is not divisible by 2 or 3, so the ranks get different numbers of sentences of a batch.
TYPED = (
    "+experiment=rnnsearch50",
    *TINY,
    "data.batch_size=13",
    "hydra.run.dir=run",
    "trainer.max_steps=8",
    "trainer.val_check_interval=4",
    "trainer.log_every_n_steps=2",
)


def train(folder: Path, ranks: int, *typed: str) -> dict:
    devices = ("trainer=ddp", f"trainer.devices={ranks}") if ranks > 1 else ()
    cache = f"data.cache={folder.parent}/cache"
    ended = run("train", *TYPED, *devices, cache, *typed, cwd=folder, ranks=ranks)
    assert ended.codes == [0] * ranks, ended.err
    return json.loads((folder / "run/results.json").read_text())


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    folder = tmp_path_factory.mktemp("devices") / "1"
    return folder, train(folder, 1)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_give_the_results_of_one_device(one, ranks):
    folder, alone = one
    together = train(folder.parent / str(ranks), ranks)
    weights = [
        torch.load(folder.parent / f"{n}/run/checkpoints/last.ckpt", weights_only=True)[
            "state_dict"
        ]
        for n in (1, ranks)
    ]
    for name, weight in weights[0].items():
        torch.testing.assert_close(weights[1][name], weight, rtol=1e-4, atol=1e-5)
    for ours, theirs in zip(together["history"], alone["history"], strict=True):
        for key in ("nll_per_word", "train_nll_per_word"):
            assert ours[key] == pytest.approx(theirs[key], rel=1e-4)
    for name in ("test", "by_length"):
        files = [folder.parent / f"{n}/run/translations/{name}.jsonl" for n in (1, ranks)]
        ids = [[json.loads(line)["id"] for line in file.open()] for file in files]
        assert ids[0] == ids[1] == list(range(len(ids[0])))
    tables = [read_scores(folder.parent / f"{n}/run").drop(columns="bucket") for n in (1, ranks)]
    pd.testing.assert_frame_equal(*tables, rtol=1e-3, atol=1e-3)
