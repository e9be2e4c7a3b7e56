"""Which checkpoint a run is resumed from, and what is repaired before."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from nmt.config import TrainConfig
from nmt.models.checkpoint import ValidationProgress, updates_of
from nmt.training.checkpoint_folder import CheckpointFolder
from nmt.training.checkpoints import Checkpoints, Seeds
from nmt.training.signals import Stop
from nmt.utils import files
from nmt.utils.errors import InputError


@pytest.fixture
def folder(tmp_path: Path) -> CheckpointFolder:
    """Whose `last` is of update 6, `previous` of 4 and `best` of 2."""
    folder = CheckpointFolder(tmp_path / "checkpoints")
    for path, update in ((folder.last, 6), (folder.previous, 4), (folder.best, 2)):
        write(path, update)
    return folder


def write(path: Path, update: int) -> None:
    content = {"global_step": update}
    files.write_atomically(path, lambda stream: torch.save(content, stream), checksum=True)


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def read(path: Path, update: int, best: float | None) -> Any:
    """What `repair` asks of a checkpoint that was read."""
    progress = ValidationProgress(best=None if best is None else {"update": best})
    return SimpleNamespace(path=path, update=update, progress=progress)


def test_the_newest_whole_checkpoint_is_found(folder, caplog):
    assert folder.newest() == folder.last
    damage(folder.last)
    assert folder.newest() == folder.previous
    assert "last.ckpt: damaged" in caplog.text
    assert "resuming from" in caplog.text
    damage(folder.previous)
    with pytest.raises(InputError, match="no checkpoint is intact"):
        folder.newest()


def test_a_folder_without_checkpoints_has_no_newest(tmp_path):
    assert CheckpointFolder(tmp_path / "none").newest() is None


def test_a_checkpoint_without_a_checksum_is_read_to_see(folder):
    Path(f"{folder.last}.sha256").unlink()
    assert folder.newest() == folder.last
    damage(folder.last)
    assert folder.newest() == folder.previous


def test_the_last_one_becomes_the_previous_one(folder):
    folder.make_room()
    assert updates_of(folder.previous) == 6
    assert not folder.last.exists()
    files.verify(folder.previous)


def test_a_damaged_checkpoint_never_takes_the_place_of_a_whole_one(folder):
    damage(folder.last)
    folder.repair(read(folder.previous, 4, None))
    assert not folder.last.exists()
    assert updates_of(folder.previous) == 4


@pytest.mark.parametrize("name", ["last.ckpt.sha256", "previous.ckpt", "best.ckpt"])
def test_a_folder_with_the_name_of_a_checkpoint_is_refused_before_any_update(folder, name):
    folder.prepare()
    (folder.path / name).unlink()
    (folder.path / name).mkdir()
    with pytest.raises(InputError, match=rf"{name}: is not a file; move it away"):
        folder.prepare()


@pytest.mark.parametrize(("best", "copied"), [(6.0, 6), (2.0, 2)])
def test_a_best_one_that_was_not_copied_is_copied(folder, best, copied):
    folder.repair(read(folder.last, 6, best))
    assert updates_of(folder.best) == copied
    files.verify(folder.best)


def test_a_best_one_with_a_wrong_bit_is_copied_anew(folder):
    folder.keep_best()
    content = bytearray(folder.best.read_bytes())
    content[100] ^= 1
    folder.best.write_bytes(content)
    folder.repair(read(folder.last, 6, 6.0))
    files.verify(folder.best)


@pytest.mark.parametrize("wrong", [None, "damaged", "gone"])
def test_the_last_one_stands_for_a_best_one_that_was_lost(folder, caplog, wrong):
    made = Checkpoints(folder, TrainConfig(), Stop(folder.path))
    made.progress.history = [{"update": 2.0}, {"update": 6.0}]
    made.progress.best = made.progress.history[0]
    if wrong == "damaged":
        damage(folder.best)
    elif wrong == "gone":
        folder.best.unlink()
    made.replace_damaged_best()
    expected = 2 if wrong is None else 6
    assert made.progress.best == {"update": expected}
    assert updates_of(folder.best) == expected
    files.verify(folder.best)
    assert ("last.ckpt takes its place" in caplog.text) == (wrong is not None)


CPU: Any = SimpleNamespace(device=torch.device("cpu"))


def micro_batch(number: int, rank: int) -> Any:
    """A trainer that is about to make a micro-batch."""
    return SimpleNamespace(fit_loop=SimpleNamespace(total_batch_idx=number), global_rank=rank)


def test_seeds_differ_with_the_micro_batch_and_the_rank_alone():
    def drawn(seed: int, batch: int, rank: int) -> float:
        Seeds(seed).on_train_batch_start(micro_batch(batch, rank), CPU, None, 0)
        return float(torch.rand(1))

    torch.manual_seed(0)
    first = drawn(1, 7, 0)
    torch.rand(5)
    assert drawn(1, 7, 0) == first
    assert len({first, drawn(1, 8, 0), drawn(1, 7, 1), drawn(2, 7, 0)}) == 4


def test_seeding_a_micro_batch_touches_its_own_device_alone(monkeypatch):
    """The numbers are those after `torch.manual_seed`, which takes 100 times as long."""
    number = int(np.random.SeedSequence([5, 7, 1]).generate_state(1, np.uint64)[0])
    torch.manual_seed(number)
    expected = torch.rand(3)
    on_gpu = [torch.Generator(), torch.Generator()]
    monkeypatch.setattr(torch.cuda, "default_generators", on_gpu)
    untouched = on_gpu[0].initial_seed()
    monkeypatch.setattr(torch, "manual_seed", None)
    gpu: Any = SimpleNamespace(device=torch.device("cuda", 1))
    for module in (CPU, gpu):
        torch.default_generator.manual_seed(0)
        Seeds(5).on_train_batch_start(micro_batch(7, 1), module, None, 0)
        assert torch.equal(torch.rand(3), expected)
    assert [each.initial_seed() for each in on_gpu] == [untouched, number]
