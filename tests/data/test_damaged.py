"""Prepared text that is damaged on disk is named and made anew, never used."""

from __future__ import annotations

import logging
import random
from pathlib import Path

import pytest
from omegaconf import DictConfig

from nmt.data import checksums
from nmt.data.cache import build_once
from nmt.data.checksums import damage
from nmt.data.prepare import Prepared, prepare


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1 << at % 8
    path.write_bytes(bytes(content))


def pairs(prepared: Prepared) -> list[list[int]]:
    return [pair["source_ids"].tolist() for pair in prepared.train]


def cached(config: DictConfig) -> list[Path]:
    """Files of the cache that a start reads; the manifest is for people."""
    files = (path for path in Path(config.data.cache).glob("[!.]*/*") if path.is_file())
    return sorted(path for path in files if path.name != "manifest.json")


def test_damage_of_every_file_is_named_and_mended(config, caplog):
    """A flipped bit, a file cut short, an empty one, one that is missing: for every file."""
    expected = prepare(config.data, config.tokenizer, progress=False)
    draw, tried = random.Random(1), 0
    for path in cached(config):
        size = path.stat().st_size
        for harm in (
            lambda: flip(path, draw.randrange(size)),  # noqa: B023
            lambda: path.write_bytes(path.read_bytes()[: draw.randrange(1, size)]),  # noqa: B023
            lambda: path.write_bytes(b""),  # noqa: B023
            lambda: path.unlink(),  # noqa: B023
        ):
            harm()
            caplog.clear()
            with caplog.at_level(logging.WARNING):
                prepared = prepare(config.data, config.tokenizer, progress=False)
            warnings = [record.getMessage() for record in caplog.records]
            assert len(warnings) == 1, (path, warnings)
            assert warnings[0].startswith(f"{path.parent} is damaged (")
            if path.name != checksums.NAME:  # by it another file may seem to be the damaged one
                assert f"({path.name} " in warnings[0]
            assert prepared.fingerprint == expected.fingerprint
            assert pairs(prepared) == pairs(expected)
            assert damage(path.parent) is None
            tried += 1
    assert tried >= 4 * 14
    assert not list(Path(config.data.cache).glob(".*/damaged"))


def test_text_that_is_whole_is_not_made_again(config, caplog):
    prepare(config.data, config.tokenizer, progress=False)
    before = {path: path.stat().st_mtime_ns for path in cached(config)}
    prepare(config.data, config.tokenizer, progress=False)
    assert {path: path.stat().st_mtime_ns for path in cached(config)} == before
    assert not caplog.records


@pytest.fixture
def large(tmp_path, monkeypatch) -> Path:
    """A folder of 100 blocks, of which 10 are a sample."""
    monkeypatch.setattr(checksums, "BLOCK", 100)
    monkeypatch.setattr(checksums, "WHOLE", 1000)
    return build_once(tmp_path, "thing", lambda folder: fill(folder / "content"))


def fill(path: Path) -> None:
    path.write_bytes(random.Random(2).randbytes(9950))


def test_of_a_large_folder_a_sample_is_read_or_all_of_it(large):
    flip(large / "content", 5000)
    found = [damage(large) for _ in range(60)]
    assert 0 < sum(problem is not None for problem in found) < 30
    assert damage(large, whole=True) == "content is not as it was written"
    build_once(large.parent, "thing", lambda folder: fill(folder / "content"), verify=True)
    assert damage(large, whole=True) is None
    (large / "content").write_bytes((large / "content").read_bytes()[:-1])
    assert damage(large) == "content has 9,949 bytes, not 9,950"
