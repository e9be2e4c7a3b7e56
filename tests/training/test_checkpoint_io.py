"""Checkpoints are written completely or not at all, also on a full disk."""

import ctypes
import multiprocessing
import os
import sys
from pathlib import Path

import pyarrow as pa
import pytest
import torch

from nmt.data.cache import filling, write_rows
from nmt.training.checkpoint_io import AtomicCheckpointIO
from nmt.utils.errors import RunError, lack_of_space

NEW_USER, NEW_MOUNTS = 0x10000000, 0x20000  # flags of unshare(2)
NO_NAMESPACES = 77  # exit code


def content(step, **more):
    return {"global_step": step, "weights": torch.tensor([step]), **more}


def test_each_checkpoint_is_a_file_of_its_own(tmp_path):
    """Two checkpoints of one update differ in the state of their callbacks, such as a best score."""
    writer = AtomicCheckpointIO()
    paths = [tmp_path / "best.ckpt", tmp_path / "last.ckpt"]
    for place, path in enumerate(paths):
        writer.save_checkpoint(content(3, callbacks={"best": place}), path)
    kept = [torch.load(path, weights_only=True)["callbacks"]["best"] for path in paths]
    assert kept == [0, 1]
    assert {*tmp_path.iterdir()} == {*paths}


def _write_until_full(disk):
    """Fills a tmpfs of 64 KiB; exits with NO_NAMESPACES if it cannot be mounted."""
    libc = ctypes.CDLL(None)
    maps = {"setgroups": "deny", "uid_map": f"0 {os.getuid()} 1", "gid_map": f"0 {os.getgid()} 1"}
    if libc.unshare(NEW_USER | NEW_MOUNTS):
        sys.exit(NO_NAMESPACES)
    for name, value in maps.items():
        Path("/proc/self", name).write_text(value)
    if libc.mount(b"tmpfs", bytes(disk), b"tmpfs", 0, b"size=64k"):
        sys.exit(NO_NAMESPACES)
    writer = AtomicCheckpointIO()
    last = disk / "last.ckpt"
    large = torch.zeros(1 << 16)
    for step in (1, 2, 3):
        if step == 2:
            writer.save_checkpoint(content(step), last)
            continue
        with pytest.raises(RunError, match="cannot write the checkpoint: No space left") as caught:
            writer.save_checkpoint(content(step, large=large), last)
        assert lack_of_space(caught.value) == f"{last}: No space left on device"
    rows = [pa.record_batch({"n": list(range(1 << 14))})]
    said = pytest.raises(RunError, match=rf"^data\.cache={disk}: .*No space left on device")
    with said, filling(disk, "text") as folder:
        write_rows(folder, rows[0].schema, rows, "numbers")
    assert {path.name for path in disk.iterdir()} == {"last.ckpt", ".text.lock"}
    assert torch.load(last, weights_only=True)["global_step"] == 2


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a file system in a user namespace")
def test_full_disk_error_names_the_file(tmp_path):
    process = multiprocessing.get_context("fork").Process(
        target=_write_until_full, args=(tmp_path,)
    )
    process.start()
    process.join()
    if process.exitcode == NO_NAMESPACES:
        pytest.skip("this system has no user namespaces")
    assert process.exitcode == 0
