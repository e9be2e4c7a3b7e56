"""Rows of history are read as W&B's own reader reads them, whole ones alone."""

from __future__ import annotations

import pytest

from nmt.report.wandb.rows import BLOCK, read_rows
from tests.report.wandb.test_panels import inspect


def test_rows_on_disk(tmp_path):
    wandb = pytest.importorskip("wandb")
    settings = {"console": "off", "silent": True}
    run = wandb.init(project="p", mode="offline", dir=tmp_path, settings=settings)
    for n in range(60):
        long = {"note": "e" * (5 * BLOCK)} if n == 20 else {}  # over several blocks
        run.log({"train/loss": 1 / (n + 1), "n": n, **long})
    wandb.finish()
    records, files = inspect(tmp_path)
    [file] = files.parent.glob("*.wandb")
    wanted = [record["history"]["item"] for record in records if record["type"] == "history"]
    found = list(read_rows(file))
    assert [row for _, row in found] == wanted
    assert [row["n"] for _, row in found] == list(range(60))
    blocks = [block for block, _ in found]
    assert blocks == sorted(blocks)
    assert blocks[20] - blocks[19] >= 4
    assert [row["n"] for _, row in read_rows(file, blocks[20])][-39:] == list(range(21, 60))

    content = file.read_bytes()
    for size in (0, 5, BLOCK + 3, len(content) // 2):
        file.write_bytes(content[:size])
        rows = [row for _, row in read_rows(file)]
        assert rows == wanted[: len(rows)]
        assert len(rows) < 60
