"""Preparing text that is killed in the middle and started again."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from pathlib import Path
from typing import Any

import datasets
import pytest
from omegaconf import DictConfig

from nmt.data import checksums
from nmt.data.prepare import prepare


def _killed_after(config: DictConfig, calls: int) -> None:
    """Prepares until `Dataset.map` has done its work for the last time of so many."""
    done, original = [], datasets.Dataset.map

    def mapped(self: datasets.Dataset, *args: Any, **kwargs: Any) -> datasets.Dataset:
        result = original(self, *args, **kwargs)
        done.append(True)
        if len(done) == calls:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    datasets.Dataset.map = mapped
    prepare(config.data, config.tokenizer, progress=False)


def _content(cache: Path) -> dict[str, Any]:
    """Rows of Arrow files (the metadata differ, hence the checksums), bytes of all others."""
    files = [path for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock"]
    files = [path for path in files if path.name != checksums.NAME]
    return {
        str(path.relative_to(cache)): datasets.Dataset.from_file(str(path)).to_dict()
        if path.suffix == ".arrow"
        else path.read_bytes()
        for path in files
    }


@pytest.mark.parametrize("calls", range(1, 6))  # tokenise, filter, keep, encode, and a held-out set
def test_killed_and_started_again(config: DictConfig, tmp_path: Path, calls: int) -> None:
    config.data.filters.duplicates = "pair"
    expected = prepare(config.data, config.tokenizer, progress=False)
    whole = _content(Path(config.data.cache))
    config.data.cache = str(tmp_path / "again")
    process = multiprocessing.get_context("fork").Process(
        target=_killed_after, args=(config, calls)
    )
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    names = {path.name for path in Path(config.data.cache).glob("[!.]*")}
    assert len(names) == [0, 1, 1, 2, 3][calls - 1]
    prepared = prepare(config.data, config.tokenizer, progress=False)
    assert prepared.fingerprint == expected.fingerprint
    assert _content(Path(config.data.cache)) == whole


def _helper(pipe: Any) -> None:
    pipe.send(os.getpid())
    time.sleep(600)


def _builder(cache: Path, pipe: Any) -> None:
    from nmt.data.cache import build_once

    def build(folder: Path) -> None:
        helper = multiprocessing.get_context("fork").Process(target=_helper, args=(pipe,))
        helper.start()
        helper.join()

    build_once(cache, "thing", build)


@pytest.mark.skipif(not Path("/proc").exists(), reason="processes are looked up in /proc")
def test_helpers_end_with_the_process_they_help(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    builder = context.Process(target=_builder, args=(tmp_path, there))
    builder.start()
    helper = Path("/proc", str(here.recv()))
    assert helper.exists()
    builder.kill()
    builder.join()
    for _ in range(200):
        if not helper.exists() or " Z " in (helper / "stat").read_text():
            return
        time.sleep(0.05)
    pytest.fail("the helper outlives the process it helped")
