"""Input that is not as it should be, through the command: a message that names it, or a count."""

from __future__ import annotations

import json
import lzma
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

GOOD = b"the cat\nthe dog\na fish\n"
XZ = lzma.compress(GOOD * 3000)

REFUSED: dict[str, tuple[str, bytes, str]] = {
    "unequal lengths": ("s.en", b"one\ntwo\n", r"s\.en has 2, .*t\.fr has 3 lines"),
    "NUL byte": ("s.en", b"one\nt\0wo\nthree\n", r"s\.en:2: NUL byte at column 2;"),
    "UTF-16": ("s.en", "one\ntwo\nthree\n".encode("utf-16"), r"s\.en:1: (NUL byte|not UTF-8)"),
    "not UTF-8": ("s.en", b"one\ntwo\nd\xe9j\xe0\n", r"s\.en:3: not UTF-8 \(byte 0xe9 at column 2"),
    "cut .xz": ("s.en.xz", XZ[:-40], r"s\.en\.xz:\d+: cannot be read further \(.*end"),
    "empty file": ("s.en", b"", r"s\.en has 0, .*t\.fr has 3 lines"),
}


@pytest.fixture
def prepare(program: Any, tmp_path: Path) -> Callable[..., Any]:
    """Runs nmt.prepare on training text with the given files, and good held-out text."""
    (tmp_path / "t.fr").write_bytes(GOOD)
    (tmp_path / "good").write_bytes(GOOD)

    def run(name: str, content: bytes, *typed: str, hook: str = "") -> Any:
        (tmp_path / name).write_bytes(content)
        good = tmp_path / "good"
        return program(
            "prepare",
            "data=text",
            "trainer.enable_progress_bar=false",
            f"data.train.source={tmp_path / name}",
            f"data.train.target={tmp_path / 't.fr'}",
            f"data.valid.source={good}",
            f"data.valid.target={good}",
            f"data.cache={tmp_path / 'cache'}",
            *typed,
            hook=hook,
        )

    return run


def prepared_folders(tmp_path: Path) -> list[str]:
    return [path.name for path in (tmp_path / "cache").glob("*") if path.is_dir()]


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_file_and_line(prepare: Callable[..., Any], tmp_path: Path, case: str) -> None:
    name, content, message = REFUSED[case]
    ended = prepare(name, content)
    assert ended.code == 2, ended
    assert re.search(message, ended.err), ended.err
    assert len(ended.err.strip().splitlines()) <= 2
    assert prepared_folders(tmp_path) == []


def counts(tmp_path: Path) -> dict[str, Any]:
    (path,) = (tmp_path / "cache").glob("pairs-*/manifest.json")
    return json.loads(path.read_text())


def test_byte_order_mark_and_carriage_returns_are_no_part_of_the_text(
    prepare: Callable[..., Any], tmp_path: Path
) -> None:
    assert prepare("s.en", b"\xef\xbb\xbfthe cat\r\nthe dog\r\na fish\r\n").code == 0
    (path,) = (tmp_path / "cache").glob("pairs-*/vocabularies.json")
    assert json.loads(path.read_text())["source"]["words"] == ["the", "a", "cat", "dog", "fish"]


def test_empty_side_is_counted(prepare: Callable[..., Any], tmp_path: Path) -> None:
    ended = prepare("s.en", b"the cat\n \xc2\xa0\na fish\n")
    assert ended.code == 0
    assert ended.out.splitlines()[1].split()[:4] == ["train", "2", "1", "0"]
    assert (counts(tmp_path)["lines"], counts(tmp_path)["empty"]) == (3, 1)


@pytest.mark.parametrize(
    "line", ["a" * 10**6, pytest.param("a, " * 333_333, marks=pytest.mark.slow)]
)
def test_line_of_a_megabyte_is_one_like_any_other(
    prepare: Callable[..., Any], tmp_path: Path, line: str
) -> None:
    content = f"the cat\n{line}\na fish\n".encode()
    ended = prepare("s.en", content)
    assert ended.code == 0
    kept, too_long = ("3", "0") if len(line.split()) == 1 else ("2", "1")
    assert ended.out.splitlines()[1].split()[:4] == ["train", kept, "0", too_long]


def rewritten(path: Path) -> None:
    """Other text of the same size, with the old time of the change but for a nanosecond tick."""
    status = path.stat()
    path.write_bytes(path.read_bytes().replace(b"fish", b"bird"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))


def replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.rename(path)


CHANGES: dict[str, Callable[[Path], object]] = {
    "longer": lambda path: path.open("ab").write(b"more\n"),
    "shorter": lambda path: os.truncate(path, 5),
    "rewritten": rewritten,
    "replaced": replaced,
    "removed": Path.unlink,
}


def change_while_read(change: str, path: Path) -> None:
    """Has a file changed after its second line was read; for the process that prepares."""
    from nmt.data.sources import corpus

    read = corpus.read_parallel
    changed = []

    def reading(paths: tuple[Path, ...], limit: int | None) -> Iterator[tuple[str, ...]]:
        for number, row in enumerate(read(paths, limit)):
            yield row
            if number == 1 and path in paths and not changed:
                changed.append(CHANGES[change](path))

    corpus.read_parallel = reading


@pytest.mark.parametrize("change", CHANGES)
def test_file_that_changes_while_it_is_read(
    prepare: Callable[..., Any], tmp_path: Path, change: str
) -> None:
    hook = (
        "from pathlib import Path\n"
        f"from {__name__} import change_while_read\n"
        f"change_while_read({change!r}, Path({str(tmp_path / 's.en')!r}))"
    )
    ended = prepare("s.en", GOOD, hook=hook)
    assert ended.code == 2, ended
    assert re.search(r"s\.en: changed while it was read; start again", ended.err), ended.err
    assert prepared_folders(tmp_path) == []
