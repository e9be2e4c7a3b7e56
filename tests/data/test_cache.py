"""The cache of prepared text: built once, whole or not at all, and never another text's."""

from __future__ import annotations

import errno
import logging
import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pytest

from nmt.config import Config
from nmt.data.cache import build_once
from nmt.data.prepare import Prepared, prepare
from nmt.utils.errors import InputError, RunError


def prepared(config: Config) -> Prepared:
    return prepare(config.data, config.tokenizer, progress=False)


def pairs(text: Prepared) -> list[list[int]]:
    return [pair["source_ids"].tolist() for pair in (*text.train, *text.valid)]


def content(cache: Path) -> dict[str, bytes]:
    files = (path for path in cache.glob("[!.]*/*") if path.is_file())
    return {str(path.relative_to(cache)): path.read_bytes() for path in files}


def test_a_cache_is_built_once_and_is_the_same_byte_for_byte(
    config: Config, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config.data.filters.duplicates = "pair"
    caches = [tmp_path / "one", tmp_path / "other"]
    for cache in caches:
        config.data.cache = str(cache)
        prepared(config)
    assert content(caches[0]) == content(caches[1])
    times = {path: path.stat().st_mtime_ns for path in caches[1].glob("*/*")}
    prepared(config)
    assert {path: path.stat().st_mtime_ns for path in caches[1].glob("*/*")} == times
    assert not caplog.records


HARMS: dict[str, Callable[[Path], Any]] = {
    "cut short": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "missing": Path.unlink,
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_folder_is_built_again(
    config: Config, caplog: pytest.LogCaptureFixture, harm: str
) -> None:
    expected = pairs(prepared(config))
    before = content(Path(config.data.cache))
    for name in before:
        path = Path(config.data.cache) / name
        HARMS[harm](path)
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            assert pairs(prepared(config)) == expected
        assert caplog.messages == [f"{path.parent} is damaged; it is built again"]
        assert content(Path(config.data.cache)) == before


def test_a_folder_of_another_text_is_built_again(config: Config) -> None:
    expected = prepared(config)
    cache = Path(config.data.cache)
    folders = set(cache.glob("pairs-*"))
    source = Path(config.data.train.source)
    text = source.read_text()
    source.write_text("".join(text.splitlines(keepends=True)[::-1]))
    prepared(config)
    (mine,), (other,) = folders, set(cache.glob("pairs-*")) - folders
    shutil.rmtree(mine)
    shutil.copytree(other, mine)
    source.write_text(text)
    assert pairs(prepared(config)) == pairs(expected)


def _killed_after(config: Config, calls: int) -> None:
    """Prepares until `Dataset.map` has returned so many times."""
    done, original = [], datasets.Dataset.map

    def mapped(self: datasets.Dataset, *args: Any, **kwargs: Any) -> datasets.Dataset:
        result = original(self, *args, **kwargs)
        done.append(True)
        if len(done) == calls:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    datasets.Dataset.map = mapped
    prepared(config)


@pytest.mark.parametrize("calls", range(1, 5))  # tokenise, filter, encode, and a held-out set
def test_killed_and_started_again(config: Config, tmp_path: Path, calls: int) -> None:
    config.data.filters.duplicates = "pair"
    expected = prepared(config)
    whole = content(Path(config.data.cache))
    config.data.cache = str(tmp_path / "again")
    process = multiprocessing.get_context("fork").Process(
        target=_killed_after, args=(config, calls)
    )
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert len(list(Path(config.data.cache).glob("[!.]*"))) == calls - 1
    assert prepared(config).fingerprint == expected.fingerprint
    assert content(Path(config.data.cache)) == whole


def _helper(pipe: Any) -> None:
    pipe.send(os.getpid())
    time.sleep(600)


def _builder(cache: Path, pipe: Any) -> None:
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
    builder.kill()
    builder.join()
    for _ in range(200):
        if not helper.exists() or " Z " in (helper / "stat").read_text():
            return
        time.sleep(0.05)
    pytest.fail("the helper outlives the process it helped")


def _build(cache: Path, log: Path) -> None:
    def fill(folder: Path) -> None:
        with log.open("a") as stream:
            stream.write("x")
        (folder / "content").write_text("whole")

    assert (build_once(cache, "thing", fill) / "content").read_text() == "whole"


def test_processes_build_a_folder_once(tmp_path: Path) -> None:
    abandoned = tmp_path / "cache" / ".thing-killed"
    abandoned.mkdir(parents=True)
    arguments = (tmp_path / "cache", tmp_path / "log")
    context = multiprocessing.get_context("fork")
    builders = [context.Process(target=_build, args=arguments) for _ in range(4)]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join()
    assert [builder.exitcode for builder in builders] == [0] * 4
    assert (tmp_path / "log").read_text() == "x"
    assert not abandoned.exists()


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (OSError(errno.ENOSPC, "No space"), RunError, "no space left for prepared text"),
        (OSError("Not enough disk space. Needed: 1 GiB"), RunError, "no space left"),
        (OSError(errno.EIO, "I/O error", "/text/train.en"), InputError, "^/text/train.en: I/O"),
        (OSError(errno.EACCES, "Denied"), InputError, r"^data\.cache=.*: cannot be written \(Den"),
    ],
)
def test_errors_of_the_disk(
    tmp_path: Path, error: OSError, kind: type[Exception], message: str
) -> None:
    def fill(folder: Path) -> None:
        raise error

    with pytest.raises(kind, match=message):
        build_once(tmp_path, "thing", fill)
    assert [path.name for path in tmp_path.iterdir()] == [".thing.lock"]
