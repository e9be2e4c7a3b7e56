"""The cache of prepared text, whose folders are built once, and completely or not at all."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from nmt.config.schema import Config
from nmt.data import preparation as steps
from nmt.data.cache import filling, read_stored, write_facts, write_rows
from nmt.data.preparation import MANY, Prepared, map_chunks, prepare
from nmt.utils.errors import InputError, RunError

FORK = multiprocessing.get_context("fork")
SCHEMA = pa.schema({"n": pa.int64()})


def prepared(config: Config) -> Prepared:
    return prepare(config.data, config.tokenizer)


def content(cache: Path) -> dict[str, bytes]:
    files = (path for path in cache.glob("[!.]*/*") if path.is_file())
    return {str(path.relative_to(cache)): path.read_bytes() for path in files}


def _killed_after(config: Config, calls: int) -> None:
    """Prepares text, and kills this process after the given number of calls of `write_rows`."""
    done: list[bool] = []

    def write(*arguments: Any) -> pa.Table:
        rows = write_rows(*arguments)
        done.append(True)
        if len(done) == calls:
            os.kill(os.getpid(), signal.SIGKILL)
        return rows

    steps.write_rows = write
    prepared(config)


# Calls 1 to 3 write tokenised texts, and call 4 writes encoded pairs.
@pytest.mark.parametrize("calls", [1, 4])
def test_cache_is_complete_after_a_kill_and_a_restart(
    config: Config, tmp_path: Path, calls: int
) -> None:
    expected = prepared(config)
    whole = content(Path(config.data.cache))
    assert {Path(name).name for name in whole} == {"rows.arrow", "facts.json"}
    config.data.cache = str(tmp_path / "again")
    process = FORK.Process(target=_killed_after, args=(config, calls))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert len(list(Path(config.data.cache).glob("[!.]*"))) == calls - 1
    assert prepared(config).fingerprint == expected.fingerprint
    assert content(Path(config.data.cache)) == whole


def _build(cache: Path, log: Path) -> None:
    with filling(cache, "thing") as folder:
        if folder is not None:
            with log.open("a") as stream:
                stream.write("x")
            write_rows(folder, SCHEMA, [pa.record_batch({"n": [1, 2]})], "numbers")
            write_facts(folder, {"whole": True})
    rows, facts = read_stored(cache, "thing")
    assert rows["n"].to_pylist() == [1, 2]
    assert facts == {"whole": True}


def test_concurrent_processes_fill_a_folder_once(tmp_path: Path) -> None:
    """The folder `.thing` stands for the leftovers of a killed process, which must be ignored."""
    (tmp_path / "cache/.thing").mkdir(parents=True)
    (tmp_path / "cache/.thing/part").touch()
    builders = [
        FORK.Process(target=_build, args=(tmp_path / "cache", tmp_path / "log")) for _ in range(4)
    ]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join()
    assert [builder.exitcode for builder in builders] == [0] * 4
    assert (tmp_path / "log").read_text() == "x"
    assert {path.name for path in (tmp_path / "cache").iterdir()} == {"thing", ".thing.lock"}
    assert {path.name for path in (tmp_path / "cache/thing").iterdir()} == {
        "rows.arrow",
        "facts.json",
    }


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("rows.arrow", lambda content: content[: len(content) // 2]),
        ("rows.arrow", lambda content: content[:-8]),  # complete rows, but no end marker
        ("rows.arrow", lambda content: b""),
        ("facts.json", lambda content: b""),
        ("facts.json", lambda content: b"[]"),
        ("facts.json", lambda content: content.replace(b"true", b"false")),
        ("facts.json", None),
    ],
)
def test_damaged_cache_names_the_folder_to_delete(tmp_path: Path, name: str, damage: Any) -> None:
    _build(tmp_path, tmp_path / "log")
    file = tmp_path / "thing" / name
    content = file.read_bytes()
    file.unlink()
    if damage is not None:
        file.write_bytes(damage(content))
    with pytest.raises(
        InputError, match=rf"^data\.cache=.*damaged .*delete {tmp_path}/thing to rebuild"
    ):
        _build(tmp_path, tmp_path / "log")
    shutil.rmtree(tmp_path / "thing")
    _build(tmp_path, tmp_path / "log")


def test_full_disk_leaves_no_partial_folder(tmp_path: Path) -> None:
    said = pytest.raises(RunError, match=r"^data\.cache=.*No space left")
    with said, filling(tmp_path, "thing") as folder:
        assert folder is not None
        (folder / "part").touch()
        raise OSError(28, "No space left on device")
    assert [path.name for path in tmp_path.iterdir()] == [".thing.lock"]


def test_error_of_the_network_is_not_blamed_on_the_cache(tmp_path: Path) -> None:
    """Libraries raise an OSError without a number if a server cannot be reached."""
    with pytest.raises(OSError, match=r"^no server$"), filling(tmp_path, "thing"):
        raise OSError("no server")
    assert [path.name for path in tmp_path.iterdir()] == [".thing.lock"]


def _double(number: int) -> tuple[int, int]:
    return 2 * number, os.getpid()


def test_map_chunks_keeps_order_across_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(steps, "shared_cores", lambda: 2)
    read: list[int] = []
    chunks = (read.append(number) or number for number in range(500))
    results = map_chunks(_double, chunks)
    assert next(results)[0] == 0
    assert len(read) < 2 * MANY  # most of the input has not been read yet
    values, processes = zip(*results, strict=True)
    assert values == tuple(range(2, 1000, 2))
    assert os.getpid() not in processes
    few = list(map_chunks(_double, range(MANY - 1)))
    assert few == [(2 * number, os.getpid()) for number in range(MANY - 1)]


def _wait(pipe: Any, number: int) -> None:
    pipe.send((os.getpid(), signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)))
    time.sleep(600)


def _map_for_long(pipe: Any) -> None:
    signal.signal(signal.SIGTERM, lambda *_: None)
    steps.shared_cores = lambda processes=1: 2
    list(map_chunks(lambda number: _wait(pipe, number), range(MANY)))


@pytest.mark.skipif(not Path("/proc").exists(), reason="processes are looked up in /proc")
def test_workers_end_when_the_parent_is_killed() -> None:
    here, there = FORK.Pipe()
    parent = FORK.Process(target=_map_for_long, args=(there,))
    parent.start()
    number, *handlers = here.recv()
    assert handlers == [signal.SIG_IGN, signal.SIG_DFL]
    worker = Path("/proc", str(number))
    parent.kill()
    parent.join()
    for _ in range(200):
        if not worker.exists() or " Z " in (worker / "stat").read_text():
            return
        time.sleep(0.05)
    pytest.fail("the worker outlives its parent")
