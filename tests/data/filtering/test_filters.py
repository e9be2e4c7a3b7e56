"""Filters of training pairs, against the same rules spelt out in plain Python."""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from omegaconf import DictConfig

from nmt.config import TextConfig
from nmt.data.filtering.filters import REASONS, first_occurrences
from nmt.data.prepare import Prepared, prepare
from nmt.utils.errors import InputError

Write = Callable[[str, list[str]], str]
Pairs = list[tuple[str, str]]


def random_pairs(seed: int, count: int) -> Pairs:
    """Short lines of few words, so that all filters have something to leave out."""
    draw = random.Random(seed)
    words = ["the", "cat", "sat", "жук", "λόγος", "12", "x" * 9, "é", "-"]

    def line() -> str:
        return " ".join(draw.choices(words, k=draw.randint(1, 4)))

    pairs = [(line(), line()) for _ in range(count)]
    return [(source, source if draw.random() < 0.1 else target) for source, target in pairs]


def train_on(config: DictConfig, write: Write, pairs: Pairs) -> None:
    sources, targets = zip(*pairs, strict=True)
    config.data.train = TextConfig(
        source=write("f.en", list(sources)), target=write("f.fr", list(targets)), tokenised=True
    )


def kept(prepared: Prepared) -> Pairs:
    return [prepared.train.text(number) for number in range(len(prepared.train))]


def naive(pairs: Pairs, duplicates: str) -> tuple[Pairs, dict[str, int]]:
    left: Pairs = []
    dropped = dict.fromkeys(REASONS, 0)
    seen: set[Any] = set()
    for source, target in pairs:
        lengths = sorted((len(source.split()), len(target.split())))
        key = {"pair": (source, target), "source": source, "target": target}.get(duplicates)
        if lengths[1] / lengths[0] > 2:
            dropped["length_ratio"] += 1
        elif source == target:
            dropped["identical"] += 1
        elif key is not None and key in seen:
            dropped["duplicate"] += 1
        else:
            seen.add(key)
            left.append((source, target))
    return left, {name: count for name, count in dropped.items() if count}


@pytest.mark.parametrize("duplicates", ["none", "pair", "source", "target"])
def test_filters_keep_and_count_what_plain_python_does(
    config: DictConfig, write: Write, duplicates: str
) -> None:
    pairs = random_pairs(7, 1500)
    train_on(config, write, pairs)
    filters = config.data.filters
    filters.length_ratio, filters.identical, filters.duplicates = 2.0, True, duplicates
    prepared = prepare(config.data, config.tokenizer, progress=False)
    expected, dropped = naive(pairs, duplicates)
    assert kept(prepared) == expected
    counts = prepared.manifest["splits"]["train"]
    assert counts["dropped"] == dropped
    assert len(dropped) == (2 if duplicates == "none" else 3)
    assert counts["pairs"] + counts["empty"] + sum(dropped.values()) == counts["lines"] == 1500
    words = {word for source, _ in expected for word in source.split()}
    assert prepared.manifest["vocabulary"]["source"]["types"] == len(words)
    table = prepared.summary()
    assert f"length_ratio {dropped['length_ratio']:,}, " in table
    # The line of a kept pair is still its line in the file.
    row = prepared.train[len(expected) - 1]
    assert pairs[row["line"]] == (" ".join(row["source"]), " ".join(row["target"]))


def test_development_and_test_pairs_are_never_filtered(config: DictConfig, write: Write) -> None:
    same = write("same", ["the cat", "the cat", "a"])
    config.data.valid = TextConfig(source=same, target=same, tokenised=True)
    config.data.test = {"mine": TextConfig(source=same, target=same, tokenised=True)}
    config.data.filters.identical, config.data.filters.duplicates = True, "pair"
    prepared = prepare(config.data, config.tokenizer, progress=False)
    assert len(prepared.valid) == len(prepared.test["mine"]) == 3


def test_filters_that_ask_for_nothing_change_nothing(config: DictConfig) -> None:
    first = prepare(config.data, config.tokenizer, progress=False)
    config.data.filters.length_ratio = 0
    config.data.selection_order = 3
    config.data.in_domain = config.data.valid
    again = prepare(config.data, config.tokenizer, progress=False)
    assert again.fingerprint == first.fingerprint
    assert not list(Path(config.data.cache).glob("filtered-*"))
    assert "data.filters: none" in first.summary()
    assert "data.selection" not in first.summary()
    config.data.filters.length_ratio = 1.5
    assert prepare(config.data, config.tokenizer, progress=False).fingerprint != first.fingerprint


@pytest.mark.parametrize("processes", [2, 3])
def test_processes_do_not_change_what_is_left(
    config: DictConfig, write: Write, monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    train_on(config, write, random_pairs(3, 300))
    config.data.filters.duplicates, config.data.filters.identical = "pair", True
    alone = prepare(config.data, config.tokenizer, progress=False)
    expected, manifest = kept(alone), alone.manifest
    shutil.rmtree(config.data.cache)
    for module in ("tokenised", "encode", "filtering.filters"):
        monkeypatch.setattr(f"nmt.data.{module}.processes", lambda rows: processes)
    again = prepare(config.data, config.tokenizer, progress=False)
    assert kept(again) == expected
    assert (again.manifest, again.fingerprint) == (manifest, alone.fingerprint)


def test_pairs_in_another_language_are_left_out(config: DictConfig, write: Write) -> None:
    pytest.importorskip("py3langid", reason="the extra 'languages' is not installed")
    english = "the committee has voted on the proposal of the commission"
    french = "le comité a voté sur la proposition de la commission"
    train_on(config, write, [(english, french), (french, french), (english, english), ("oh", "ah")])
    config.data.filters.other_language = 0.5
    prepared = prepare(config.data, config.tokenizer, progress=False)
    assert kept(prepared) == [(english, french), ("oh", "ah")]
    assert prepared.manifest["splits"]["train"]["dropped"] == {"wrong_language": 2}
    config.data.filters.other_language = 0.0  # any probability at all: asked for, too
    assert len(kept(prepare(config.data, config.tokenizer, progress=False))) < 4


def test_missing_identifier_is_named(config: DictConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "py3langid", None)
    config.data.filters.other_language = 0.5
    with pytest.raises(InputError, match="needs the extra 'languages'"):
        prepare(config.data, config.tokenizer, progress=False)


def test_filters_that_leave_nothing_are_refused(config: DictConfig, write: Write) -> None:
    train_on(config, write, [("a", "a"), ("a b", "a b")])
    config.data.filters.identical = True
    with pytest.raises(InputError, match=r"none of 2 training pairs is left \(identical 2\)"):
        prepare(config.data, config.tokenizer, progress=False)
    assert not list(Path(config.data.cache).glob("filtered-*"))


def test_first_occurrences() -> None:
    draw = np.random.default_rng(1)
    values = draw.integers(0, 2**64, 400, np.uint64)
    hashes = draw.choice(values, 1000)
    seen: set[int] = set()
    expected = [not (value in seen or seen.add(value)) for value in hashes.tolist()]
    assert first_occurrences(hashes).tolist() == expected
    assert first_occurrences(hashes[:0]).tolist() == []


def test_manifest_lies_beside_the_pairs(config: DictConfig, write: Write) -> None:
    pairs = [("a b", "c"), ("a b", "c"), ("", "c"), ("a", " ".join("d" * 12)), ("b", "b")]
    train_on(config, write, pairs)
    config.data.filters.duplicates = "pair"
    config.tokenizer.source_size = 1
    prepare(config.data, config.tokenizer, progress=False)
    (path,) = Path(config.data.cache).glob("pairs-*/manifest.json")
    manifest = json.loads(path.read_text())
    assert path.parent.name == f"pairs-{manifest['fingerprint']}"
    assert manifest["settings"]["train"]["source"].endswith("f.en")
    assert manifest["settings"]["filters"]["duplicates"] == "pair"
    assert [manifest[name] for name in ("lines", "empty", "pairs")] == [5, 1, 3]
    assert manifest["dropped"] == {"duplicate": 1}
    assert manifest["words"] == {"source": 4, "target": 14}
    # a and b are equally frequent: the first in code point order is the whole shortlist
    assert manifest["coverage"]["source"] == pytest.approx(2 / 4)
    assert manifest["coverage"]["target"] == 1
    first, second, *rest = manifest["lengths"]
    assert first == {"from": 1, "to": 10, "source": 3, "target": 2, "longer": 2}
    assert second == {"from": 11, "to": 20, "source": 0, "target": 1, "longer": 1}
    assert rest[-1]["to"] is None
    assert not any(bin["longer"] for bin in rest)
