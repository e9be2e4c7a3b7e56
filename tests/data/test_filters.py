"""Filters of training pairs, against the same rules spelt out in plain Python."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt.config import Config, TextConfig
from nmt.data.encode import REASONS
from nmt.data.prepare import Prepared, prepare
from nmt.utils.errors import InputError

Write = Callable[[str, list[str]], str]
Pairs = list[tuple[str, str]]


def random_pairs(seed: int, count: int) -> Pairs:
    """Short lines of few words, so that every filter drops some."""
    draw = random.Random(seed)
    words = ["the", "cat", "sat", "жук", "λόγος", "12", "x" * 9, "é", "-"]

    def line() -> str:
        return " ".join(draw.choices(words, k=draw.randint(1, 4)))

    pairs = [(line(), line()) for _ in range(count)]
    return [(source, source if draw.random() < 0.1 else target) for source, target in pairs]


def train_on(config: Config, write: Write, pairs: Pairs) -> None:
    sources, targets = zip(*pairs, strict=True)
    config.data.train = TextConfig(
        source=write("f.en", list(sources)), target=write("f.fr", list(targets)), tokenised=True
    )


def kept(prepared: Prepared) -> Pairs:
    return [prepared.train.text(number) for number in range(len(prepared.train))]


def naive(pairs: Pairs, duplicates: str) -> tuple[Pairs, dict[str, int]]:
    left: Pairs = []
    dropped = dict.fromkeys(REASONS[1:], 0)
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


@pytest.mark.parametrize("workers", [None, 3])
@pytest.mark.parametrize("duplicates", ["none", "pair", "source", "target"])
def test_filters_keep_and_count_what_plain_python_does(
    config: Config,
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
    duplicates: str,
    workers: int | None,
) -> None:
    monkeypatch.setattr("nmt.data.tokenised.processes", lambda rows: workers)
    pairs = random_pairs(7, 1500)
    train_on(config, write, pairs)
    filters = config.data.filters
    filters.length_ratio, filters.identical, filters.duplicates = 2.0, True, duplicates
    prepared = prepare(config.data, config.tokenizer, progress=False)
    expected, dropped = naive(pairs, duplicates)
    assert kept(prepared) == expected
    counts = prepared.counts["train"]
    assert counts["dropped"] == dropped
    assert counts["pairs"] + counts["empty"] + sum(dropped.values()) == counts["lines"] == 1500
    words = {word for source, _ in expected for word in source.split()}
    assert prepared.types[0] == len(words)
    # The line of a kept pair is still its line in the file.
    row = prepared.train[len(expected) - 1]
    assert pairs[row["line"]] == (" ".join(row["source"]), " ".join(row["target"]))


def test_development_and_test_pairs_are_never_filtered(config: Config, write: Write) -> None:
    same = write("same", ["the cat", "the cat", "a"])
    config.data.valid = TextConfig(source=same, target=same, tokenised=True)
    config.data.test = {"mine": TextConfig(source=same, target=same, tokenised=True)}
    first = prepare(config.data, config.tokenizer, progress=False)
    config.data.filters.identical, config.data.filters.duplicates = True, "pair"
    prepared = prepare(config.data, config.tokenizer, progress=False)
    assert len(prepared.valid) == len(prepared.test["mine"]) == 3
    assert prepared.fingerprint != first.fingerprint


def test_filters_that_leave_nothing_are_refused(config: Config, write: Write) -> None:
    train_on(config, write, [("a", "a"), ("a b", "a b")])
    config.data.filters.identical = True
    with pytest.raises(InputError, match=r"none of 2 pairs is left"):
        prepare(config.data, config.tokenizer, progress=False)
    assert not list(Path(config.data.cache).glob("pairs-*"))


def test_pairs_are_counted_before_the_cap(config: Config, write: Write) -> None:
    pairs = [("a b", "c"), ("a b", "c"), ("", "c"), ("a", " ".join("d" * 12)), ("b", "b")]
    train_on(config, write, pairs)
    config.data.filters.duplicates, config.data.max_length = "pair", 5
    config.tokenizer.source_size = 1
    counts = prepare(config.data, config.tokenizer, progress=False).counts["train"]
    assert counts == {
        **{"lines": 5, "empty": 1, "dropped": {"duplicate": 1}, "too_long": 1, "pairs": 2},
        **{"source_words": 4, "target_words": 14, "target_unknown": 0},
        # a and b are equally frequent: the first in code point order is the whole shortlist
        "source_unknown": 2 / 4,
    }
