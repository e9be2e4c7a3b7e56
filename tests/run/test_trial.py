"""Lightning's `fast_dev_run`: the whole path of a training on a few batches, and nothing kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.processes import TINY, run
from tests.helpers.produced import files

TYPED = (
    *(option for option in TINY if option != "logger=none"),
    "logger=csv",
    "callbacks=[ema,learning_rate_monitor]",
    "trainer.patience=1",
)
LEFT = {f".hydra/{name}.yaml" for name in ("config", "hydra", "overrides")} | {"train.log"}


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trial of three batches in `run`."""
    folder = tmp_path_factory.mktemp("trial")
    ended = run(
        "train",
        *TYPED,
        "hydra.run.dir=run",
        "+trainer.lightning.fast_dev_run=3",
        cwd=folder,
        hook=SPY,
    )
    assert ended.code == 0, ended.err
    last = ended.err.strip().splitlines()[-1]
    assert "trial run (trainer.lightning.fast_dev_run=3)" in last
    assert "updates made: 3; no checkpoint, no log of scores and no results.json were kept" in last
    assert "for 3 updates of 16 sentences" in ended.err
    return folder


SPY = """
from pathlib import Path
import nmt.models.base as base
for step in ('training_step', 'validation_step'):
    def counted(self, batch, index, step=step, real=getattr(base.Translator, step)):
        with Path('steps').open('a') as file:
            file.write(step + '\\n')
        return real(self, batch, index)
    setattr(base.Translator, step, counted)
"""


def test_a_few_batches_are_trained_on_and_validated_and_nothing_is_kept(tried):
    steps = (tried / "steps").read_text().split()
    assert steps[:3] == ["training_step"] * 3
    assert set(steps[3:]) == {"validation_step"}
    assert 1 <= len(steps[3:]) <= 3
    assert set(files(tried / "run")) == LEFT


def test_the_same_folder_can_be_trained_in_afterwards(tried):
    ended = run("train", *TYPED, "hydra.run.dir=run", "trainer.max_steps=1", cwd=tried)
    assert ended.code == 0, ended.err
    assert (tried / "run/results.json").is_file()
    ended = run("train", "resume=run", "+trainer.lightning.fast_dev_run=true", cwd=tried)
    assert ended.code == 2
    said = "resume=run: trainer.lightning.fast_dev_run makes a trial, of which nothing is kept;"
    assert said in ended.err.strip().splitlines()[-1]
    assert (tried / "run/results.json").is_file()


@pytest.mark.slow
def test_a_sweep_of_trials_ends_well_without_a_page(tried):
    typed = ("+trainer.lightning.fast_dev_run=true", "hydra.sweep.dir=sweep", "data.cache=data")
    ended = run("train", "-m", *TYPED, *typed, "seed=1,2", cwd=tried)
    assert ended.code == 0, ended.err
    assert ended.err.count("updates made: 1") == 2
    assert "no comparison page: " in ended.err
    assert not (tried / "sweep/comparison.html").exists()
