"""Which checkpoint is gone on with, and what is put right before."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from nmt.training.checkpoints import Seeds, find_checkpoint, repair_checkpoints, updates_of
from nmt.utils import files
from nmt.utils.errors import InputError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run folder whose `last` is of update 6, `previous` of 4 and `best` of 2."""
    for name, update in (("last", 6), ("previous", 4), ("best", 2)):
        write(tmp_path, name, update)
    return tmp_path


def write(folder: Path, name: str, update: int) -> None:
    files.write_atomically(
        folder / f"checkpoints/{name}.ckpt",
        lambda stream: torch.save({"global_step": update}, stream),
        checksum=True,
    )


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def test_the_newest_whole_checkpoint_is_found(folder, caplog):
    checkpoints = folder / "checkpoints"
    assert find_checkpoint(folder) == checkpoints / "last.ckpt"
    damage(checkpoints / "last.ckpt")
    assert find_checkpoint(folder) == checkpoints / "previous.ckpt"
    assert "last.ckpt is damaged" in caplog.text
    assert "going on with" in caplog.text
    damage(checkpoints / "previous.ckpt")
    with pytest.raises(InputError, match="no checkpoint is whole"):
        find_checkpoint(folder)


def test_a_checkpoint_without_a_checksum_is_read_to_see(folder):
    (folder / "checkpoints/last.ckpt.sha256").unlink()
    assert find_checkpoint(folder) == folder / "checkpoints/last.ckpt"
    damage(folder / "checkpoints/last.ckpt")
    assert find_checkpoint(folder) == folder / "checkpoints/previous.ckpt"


def test_a_damaged_checkpoint_never_takes_the_place_of_a_whole_one(folder):
    checkpoints = folder / "checkpoints"
    damage(checkpoints / "last.ckpt")
    repair_checkpoints(checkpoints / "previous.ckpt", 4, None)
    assert not (checkpoints / "last.ckpt").exists()
    assert updates_of(checkpoints / "previous.ckpt") == 4


@pytest.mark.parametrize(("best", "copied"), [(6.0, 6), (2.0, 2)])
def test_a_best_one_that_was_not_copied_is_copied(folder, best, copied):
    repair_checkpoints(folder / "checkpoints/last.ckpt", 6, {"update": best})
    assert updates_of(folder / "checkpoints/best.ckpt") == copied
    files.verify(folder / "checkpoints/best.ckpt")


def test_seeds_differ_with_the_micro_batch_and_the_rank_alone():
    def drawn(seed: int, batch: int, rank: int) -> float:
        trainer: Any = SimpleNamespace(
            fit_loop=SimpleNamespace(total_batch_idx=batch), global_rank=rank
        )
        Seeds(seed).on_train_batch_start(cast(Any, trainer), cast(Any, None), None, 0)
        return float(torch.rand(1))

    torch.manual_seed(0)
    first = drawn(1, 7, 0)
    torch.rand(5)
    assert drawn(1, 7, 0) == first
    assert len({first, drawn(1, 8, 0), drawn(1, 7, 1), drawn(2, 7, 0)}) == 4
