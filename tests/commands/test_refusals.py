"""What commands refuse: in a line or two that name the key, with exit code 2, before any work."""

from __future__ import annotations

import pytest

from tests.helpers.produced import BEST


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        (
            "prepare data=wmt14 data.cache=elsewhere",
            "type data.root=FOLDER with train.en and train.fr",
        ),
        ("train evaluation.scores=[blue] regime=tiny", "evaluation.scores: no score 'blue'"),
        ("train evaluation.scores=[nowhere.Mine]", "evaluation.scores: nowhere.Mine"),
        ("train trainer.accelerator=gpu regime=tiny", "trainer.accelerator=gpu: no GPU found"),
        ("compare scores=[blue] runs=[nowhere]", "scores: no score 'blue'"),
        ("evaluate checkpoint=nowhere.ckpt", "checkpoint=nowhere.ckpt: no such file"),
        ("score checkpoint=nowhere.ckpt source=a target=b", "source: no such file: /"),
        (f"evaluate {BEST} model=rnnencdec", "model: no such key; it belongs to the training run"),
        (f"translate {BEST} seed=4", "seed: no such key; it belongs to the training run"),
        ("translate checkpoint=x.ckpt", "checkpoint=x.ckpt: damaged, or not a checkpoint"),
        (
            "train -m hydra.launcher.n_jobs=0 seed=1,2",
            "hydra.launcher.n_jobs=0: must be at least 1",
        ),
    ],
)
def test_a_wrong_line_names_the_key(program, rnnsearch, typed, named):
    (program.folder / "x.ckpt").write_text("not a checkpoint")
    command, *words = typed.split()
    ended = program(command, *words)
    assert (ended.code, ended.out) == (2, ""), ended.err
    assert "Traceback" not in ended.err
    assert named in ended.err.splitlines()[-1]
