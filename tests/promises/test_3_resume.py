"""Promise 3: a stopped run continues with `resume`, and its results equal those of an unstopped run.

Runs are stopped by `kill -9`, by other signals, or by a full disk. The last good checkpoint is never
lost. A worse model never replaces `best.ckpt`, even after the folder was moved.
"""

from __future__ import annotations

import errno
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.helpers.processes import TINY, run

# The BLEU score of such a small model fluctuates, so some validations bring no improvement.
TYPED = (
    "+experiment=rnnsearch50",
    *TINY,
    "seed=3",
    "model.dropout=0.1",
    "data.batch_size=12",
    "trainer.max_steps=16",
    "trainer.val_check_interval=4",
    "trainer.log_every_n_steps=2",
    "callbacks.best.monitor=valid/bleu",
    "evaluation.valid_sentences=10",
    "optimizer.lr=0.05",
    "data.train.pairs=120",
    "data.test.test.pairs=2",
    "data.test.by_length.pairs=2",
)
BATCH = "nmt.training.callbacks:Seeds.on_train_batch_start"
SAVE = "nmt.training.checkpoint_io:AtomicCheckpointIO.save_checkpoint"
VALIDATED = "nmt.models.base:Translator.on_validation_epoch_end"
NO_RESULTS = """
from nmt.inference import held_out
from nmt.training import outcome, publish

held_out.evaluate = lambda *arguments: []
outcome.describe_run = lambda *arguments, **entries: None
publish.publish = outcome.write_results = lambda *arguments: None
"""


def train(folder: Path, *typed: str, hook: str = ""):
    """Trains in `folder/run`, or resumes that run; skips the evaluation after the training."""
    line = (*TYPED, "hydra.run.dir=run", "resume=auto", f"data.cache={folder.parent}/cache")
    return run("train", *line, *typed, cwd=folder, hook=NO_RESULTS + hook)


def checkpoint(folder: Path, name: str) -> dict[str, Any]:
    return torch.load(folder / f"run/checkpoints/{name}.ckpt", weights_only=True)


def check_same(folder: Path, whole: Path) -> None:
    """Checks that the checkpoints of two runs are bit for bit equal, from weights to history."""
    for name in ("last", "best"):
        ours, theirs = checkpoint(folder, name), checkpoint(whole, name)
        assert ours["global_step"] == theirs["global_step"], name
        for key in ("state_dict", "optimizer_states", "lr_schedulers", "loops", "log_sums"):
            check_equal(ours[key], theirs[key], f"{name}: {key}")
        histories = [each["callbacks"]["TrainingRecord"]["history"] for each in (ours, theirs)]
        assert histories[0] == histories[1]


def check_equal(ours: Any, theirs: Any, where: str) -> None:
    if isinstance(theirs, torch.Tensor):
        assert torch.equal(ours, theirs), where
    elif isinstance(theirs, dict):
        assert ours.keys() == theirs.keys(), where
        for key in theirs:
            check_equal(ours[key], theirs[key], f"{where}.{key}")
    elif isinstance(theirs, list | tuple):
        assert len(ours) == len(theirs), where
        for number, pair in enumerate(zip(ours, theirs, strict=True)):
            check_equal(*pair, f"{where}.{number}")
    else:
        assert ours == theirs, where


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of a run that was not stopped."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    ended = train(folder)
    assert ended.code == 0, ended.err
    return folder


def test_fixture_has_validations_without_improvement(whole):
    """If every validation were an improvement, the tests below could not show that `best.ckpt` is kept."""
    history = checkpoint(whole, "last")["callbacks"]["TrainingRecord"]["history"]
    scores = [entry["bleu"] for entry in history]
    assert scores.index(max(scores)) < len(scores) - 1
    assert checkpoint(whole, "best")["global_step"] == 4 * (1 + scores.index(max(scores)))


@pytest.mark.parametrize(
    ("place", "count"),
    [
        pytest.param(BATCH, 3, id="before the first checkpoint", marks=pytest.mark.slow),
        pytest.param(BATCH, 7, id="in the middle of an epoch", marks=pytest.mark.slow),
        pytest.param(BATCH, 13, id="in the second epoch"),
        pytest.param(SAVE, 1, id="before the first best", marks=pytest.mark.slow),
        pytest.param(SAVE, 2, id="between the first best and last", marks=pytest.mark.slow),
        pytest.param("torch:save", 3, id="while a checkpoint is filled", marks=pytest.mark.slow),
        pytest.param("os:fsync", 5, id="before a checkpoint is on disk", marks=pytest.mark.slow),
        pytest.param(VALIDATED, 3, id="in a validation", marks=pytest.mark.slow),
    ],
)
def test_killed_run_resumes_to_the_same_bits(whole, place, count):
    folder = whole.parent / f"{place.rpartition(':')[2]}-{count}"
    ended = train(folder, hook=f"kill({place!r}, {count})")
    assert ended.code == -signal.SIGKILL, ended.err
    ended = train(folder)
    assert ended.code == 0, ended.err
    check_same(folder, whole)
    assert not list(folder.glob("run/checkpoints/*.partial"))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_moved_run_resumes_after_a_signal(whole, number):
    folder = whole.parent / f"signal-{number}"
    ended = train(folder, hook=f"send({number:d}, {BATCH!r}, 7)")
    assert ended.code == -number
    assert f"type: python -m nmt.train resume={folder}/run\n" in ended.err
    assert checkpoint(folder, "last")["global_step"] == 4
    moved = whole.parent / f"moved-{number}"
    moved.mkdir()
    shutil.move(folder / "run", moved / "run")
    ended = run("train", "resume=run", cwd=moved)
    assert ended.code == 0, ended.err
    check_same(moved, whole)


@pytest.mark.parametrize(
    ("number", "place"),
    [
        (signal.SIGTERM, "nmt.training.run:make_training_run"),
        (signal.SIGINT, VALIDATED),
        *(
            pytest.param(number, place, marks=pytest.mark.slow)
            for number, place in (
                (signal.SIGINT, "nmt.cli.application:run_hydra"),
                (signal.SIGUSR1, "nmt.data.preparation:_learn"),
                (signal.SIGINT, "nmt.training.fit:build_model"),
                (signal.SIGTERM, "torch:save"),
                (signal.SIGINT, "nmt.inference.held_out:evaluate"),
                (signal.SIGUSR1, "nmt.training.publish:write_scores"),
                (signal.SIGINT, "nmt.training.outcome:write_json"),
            )
        ),
    ],
)
def test_signal_ends_a_run_at_any_moment_without_a_traceback(tmp_path, number, place):
    typed = (*TYPED, "trainer.max_steps=2", "trainer.val_check_interval=2")
    ended = run("train", *typed, cwd=tmp_path, hook=f"send({number:d}, {place!r}, 1)")
    assert ended.code == -number, ended.err
    assert ended.out == ""
    assert "Traceback" not in ended.err
    assert "nmt: " not in ended.err
    assert not list(tmp_path.glob("**/results.json"))


@pytest.mark.slow
def test_full_disk_keeps_the_last_checkpoint(whole):
    folder = whole.parent / "full"
    full = f"OSError({errno.ENOSPC}, 'No space left on device')"
    ended = train(folder, hook=f"fail('torch:save', 3, {full})")
    assert ended.code == 1
    assert "cannot write the checkpoint: No space left on device" in ended.err
    assert checkpoint(folder, "last")["global_step"] in (4, 8)
    assert train(folder).code == 0
    check_same(folder, whole)


@pytest.mark.slow
def test_failed_gpu_keeps_the_last_checkpoint(whole):
    """After the failure, every further CUDA call fails, including those in Lightning's teardown."""
    folder = whole.parent / "illegal"
    error = "RuntimeError('CUDA error: an illegal memory access was encountered\\nCompile with')"
    teardown = "nmt.models.base:Translator.teardown"
    hook = f"fail({BATCH!r}, 7, {error})\nfail({teardown!r}, 1, {error})"
    ended = train(folder, hook=hook)
    assert ended.code == 1
    [line] = [line for line in ended.err.splitlines() if line.startswith("nmt: ")]
    assert "the GPU has failed (CUDA error: an illegal memory access was encountered)" in line
    assert f"; type resume={folder}/run; if it fails again, add model.kernels=false " in line
    assert "Traceback" not in ended.err
    assert checkpoint(folder, "last")["global_step"] == 4
    assert train(folder).code == 0
    check_same(folder, whole)


@pytest.mark.slow
def test_resume_with_accumulation_workers_and_averaging(tmp_path):
    typed = ("trainer.accumulate_grad_batches=2", "data.workers=1", "callbacks=ema")
    typed += ("data.batch_tokens=300", "trainer.max_steps=8", "trainer.val_check_interval=8")
    assert train(tmp_path / "whole", *typed).code == 0
    folder = tmp_path / "killed"
    ended = train(folder, *typed, hook=f"send({signal.SIGTERM:d}, {BATCH!r}, 11)")  # in mid-update
    assert ended.code == -signal.SIGTERM, ended.err
    assert checkpoint(folder, "last")["global_step"] == 4
    assert train(folder, *typed).code == 0
    check_same(folder, tmp_path / "whole")


def test_resume_refuses_keys_that_change_the_result(whole):
    ended = run("train", "resume=run", "optimizer.lr=1", cwd=whole)
    assert ended.code == 2
    assert "optimizer.lr=1" in ended.err


@pytest.mark.slow
def test_resume_refuses_another_regime(whole):
    typed = [word for word in TYPED if word != "regime=tiny"]
    ended = run("train", *typed, "hydra.run.dir=run", "resume=auto", cwd=whole)
    assert ended.code == 2
    assert "regime=laptop: the run was started with regime=tiny" in ended.err


@pytest.mark.slow
def test_resume_refuses_another_text(whole):
    hook = "from nmt.data import preparation\npreparation.PAIRS_FORMAT = 'another'"
    ended = run("train", "resume=run", cwd=whole, hook=hook)
    assert ended.code == 2
    assert "text differs from the checkpoint's" in ended.err


@pytest.mark.slow
def test_ckpt_path_continues_in_another_folder(whole):
    """`ckpt_path` works as in any Lightning project; the new run continues from update 16 to 20."""
    typed = (f"ckpt_path={whole}/run/checkpoints/last.ckpt", "trainer.max_steps=20")
    ended = run("train", *typed, "hydra.run.dir=longer/run", cwd=whole.parent)
    assert ended.code == 0, ended.err
    last, best = (checkpoint(whole.parent / "longer", name) for name in ("last", "best"))
    assert last["global_step"] == 20
    # The best checkpoint is the best of the new folder's validations, even if an earlier one was better.
    assert 16 < best["global_step"] <= 20
