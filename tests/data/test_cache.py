"""The cache of prepared text: built once, whole or not at all, and never another text's."""

from __future__ import annotations

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
from nmt.utils.errors import RunError


def prepared(config: Config) -> Prepared:
    return prepare(config.data, config.tokenizer, progress=False)


def pairs(text: Prepared) -> list[list[int]]:
    return [pair["source_ids"].tolist() for pair in (*text.train, *text.valid)]


def content(cache: Path) -> dict[str, bytes]:
    files = (path for path in cache.glob("[!.]*/*") if path.is_file())
    return {str(path.relative_to(cache)): path.read_bytes() for path in files}


HARMS: list[Callable[[Path], Any]] = [
    lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    Path.unlink,
]


def test_a_damaged_folder_is_built_again(config: Config, caplog: pytest.LogCaptureFixture) -> None:
    expected = pairs(prepared(config))
    before = content(Path(config.data.cache))
    files = [name for name in before if name.startswith("pairs")]
    assert {Path(name).name for name in files} == {"pairs.arrow", "complete.json"}
    for path in (Path(config.data.cache, name) for name in files):
        for harm in HARMS:
            harm(path)
            caplog.clear()
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


@pytest.mark.parametrize("calls", [1, 4])  # tokenises training, development, test text; encodes
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
    def build(folder: Path) -> dict[str, Any]:
        helper = multiprocessing.get_context("fork").Process(target=_helper, args=(pipe,))
        helper.start()
        helper.join()
        return {}

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
    def fill(folder: Path) -> dict[str, Any]:
        with log.open("a") as stream:
            stream.write("x")
        rows = datasets.Dataset.from_dict({"n": [1, 2]})
        rows.map(cache_file_name=str(folder / "rows.arrow"))
        return {"whole": True}

    rows, facts = build_once(cache, "thing", fill)
    assert (rows["n"][:], facts) == ([1, 2], {"whole": True})


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


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    def fill(folder: Path) -> dict[str, Any]:
        (folder / "part").touch()
        raise OSError(28, "No space left on device")

    with pytest.raises(RunError, match=r"^data\.cache=.*No space left"):
        build_once(tmp_path, "thing", fill)
    assert [path.name for path in tmp_path.iterdir()] == [".thing.lock"]
