"""What commands refuse: in a line or two that name the key, with exit code 2, before any work."""

from __future__ import annotations

import pytest

from tests.helpers.produced import BEST, QUICK, files, last_line

NOWHERE = "checkpoint=nowhere.ckpt"


@pytest.fixture
def refused(program):
    """refused(command, *typed): the last line of a refusal."""

    def run(command: str, *typed: str) -> str:
        ended = program(command, *typed)
        assert (ended.code, ended.out) == (2, ""), ended.err
        assert "Traceback" not in ended.err
        return last_line(ended.err)

    return run


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        ("train seeed=1", "seeed: no such key"),
        ("train trainer.max_steps=many", "trainer.max_steps=many: must be int"),
        ("train data=text", "data.train.source"),
        ("train resume=nowhere", "resume=nowhere"),
        (
            "prepare data=wmt14 data.cache=elsewhere",
            "type data.root=FOLDER with train.en and train.fr",
        ),
        ("train evaluation.scores=[blue]", "evaluation.scores: no score 'blue'"),
        ("train evaluation.scores=[nowhere.Mine]", "evaluation.scores: nowhere.Mine"),
        ("train trainer.accelerator=gpu regime=tiny", "trainer.accelerator=gpu: no GPU found"),
        ("compare scores=[blue] runs=[nowhere]", "scores: no score 'blue'"),
        ("compare runs=[nowhere]", "nowhere"),
        ("translate", "checkpoint takes: "),
        (f"translate {NOWHERE}", f"{NOWHERE}: no such file"),
        (f"evaluate {NOWHERE}", f"{NOWHERE}: no such file"),
        (f"score {NOWHERE} source=a target=b", "source=a: no such file"),
        (f"evaluate {BEST} model=rnnencdec", "model: no such key; it belongs to the training run"),
        (f"translate {BEST} seed=4", "seed: no such key; it belongs to the training run"),
        (
            "train -m hydra.launcher.n_jobs=0 seed=1,2",
            "hydra.launcher.n_jobs=0: must be at least 1",
        ),
    ],
)
def test_a_wrong_line_names_the_key(refused, rnnsearch, typed, named):
    assert named in refused(*typed.split())


def test_a_file_that_is_no_checkpoint(refused, program):
    (program.folder / "x.ckpt").write_text("not a checkpoint")
    assert "checkpoint=x.ckpt: " in refused("translate", "checkpoint=x.ckpt")


@pytest.mark.parametrize(
    ("command", "typed"),
    [("train", ("regime=tiny",)), ("evaluate", (BEST,)), ("baseline", ())],
)
def test_the_folder_of_another_run_stays_as_it_is(program, refused, rnnsearch, command, typed):
    before = {name: (rnnsearch / name).stat().st_size for name in files(rnnsearch)}
    assert "holds" in refused(command, *typed, "hydra.run.dir=rnnsearch", *QUICK)
    for name, size in before.items():
        if not name.startswith(".hydra/again") and not name.endswith(".log"):
            assert (rnnsearch / name).stat().st_size == size, name
