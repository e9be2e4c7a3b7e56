"""Two checkpoints of the same update are hard links to one file, which a later checkpoint does not change."""

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
from nmt.utils.files import write_atomically

NEW_USER, NEW_MOUNTS = 0x10000000, 0x20000  # flags of unshare(2)
NO_NAMESPACES = 77  # exit code


def content(step, **more):
    return {
        "global_step": step,
        "loops": {"batches": step},
        "weights": torch.tensor([step]),
        **more,
    }


def test_equal_checkpoints_share_one_file(tmp_path):
    writer = AtomicCheckpointIO()
    best = tmp_path / "best.ckpt"
    last = tmp_path / "last.ckpt"
    for step, improved in ((1, True), (2, False), (3, True)):
        for path in (best, last) if improved else (last,):
            writer.save_checkpoint(content(step), path)
        assert best.samefile(last) is improved
        kept = [int(torch.load(path, weights_only=True)["weights"]) for path in (best, last)]
        assert kept == [step if improved else 1, step]
    writer.save_checkpoint({"global_step": 3, "loops": {"batches": 3}}, tmp_path / "other.ckpt")
    assert not last.samefile(tmp_path / "other.ckpt")
    assert {path.name for path in tmp_path.iterdir()} == {"best.ckpt", "last.ckpt", "other.ckpt"}


def test_checkpoints_without_hard_links(tmp_path, monkeypatch):
    def refuse(*names):
        raise OSError("operation not supported")

    monkeypatch.setattr(os, "link", refuse)
    writer = AtomicCheckpointIO()
    best = tmp_path / "best.ckpt"
    last = tmp_path / "last.ckpt"
    for path in (best, last):
        writer.save_checkpoint(content(1), path)
    assert not best.samefile(last)
    assert torch.equal(torch.load(last, weights_only=True)["weights"], torch.tensor([1]))


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
    last, best = disk / "last.ckpt", disk / "best.ckpt"
    large = torch.zeros(1 << 16)
    cannot = "cannot write the checkpoint: No space left on device"
    with pytest.raises(RunError, match=f"^{last}: {cannot}$"):
        writer.save_checkpoint(content(1, large=large), last)
    writer.save_checkpoint(content(2), last)
    with pytest.raises(RunError, match=f"^{last}: {cannot}; the previous checkpoint is intact$"):
        writer.save_checkpoint(content(3, large=large), last)
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_atomically(best, lambda stream: torch.save(large, stream))
    assert lack_of_space(caught.value) == f"{best}: No space left on device"
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
