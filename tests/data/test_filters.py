"""Compares the filters of training pairs with a simple implementation of the same rules."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt.config.schema import Config, TextConfig
from nmt.data.preparation import prepare
from nmt.utils.errors import InputError

Write = Callable[[str, list[str]], str]
Pairs = list[tuple[str, str]]


def random_pairs(seed: int, count: int) -> Pairs:
    """Returns pairs of short lines from a small vocabulary, so that every filter drops some pairs."""
    draw = random.Random(seed)
    words = ["the", "cat", "sat", "жук", "λόγος", "12", "x" * 9, "é", "-"]

    def line() -> str:
        return " ".join(draw.choices(words, k=draw.randint(1, 4)))

    return [(line(), line()) for _ in range(count)]


def train_on(config: Config, write: Write, pairs: Pairs) -> None:
    sources, targets = zip(*pairs, strict=True)
    config.data.train = TextConfig(
        source=write("f.en", list(sources)), target=write("f.fr", list(targets)), tokenised=True
    )


def naive(pairs: Pairs, duplicates: str) -> tuple[Pairs, dict[str, int]]:
    left: Pairs = []
    dropped = dict.fromkeys(("length_ratio", "duplicate"), 0)
    seen: set[Any] = set()
    for source, target in pairs:
        lengths = sorted((len(source.split()), len(target.split())))
        key = {"pair": (source, target), "source": source, "target": target}.get(duplicates)
        if lengths[1] / lengths[0] > 2:
            dropped["length_ratio"] += 1
        elif key is not None and key in seen:
            dropped["duplicate"] += 1
        else:
            seen.add(key)
            left.append((source, target))
    return left, {name: count for name, count in dropped.items() if count}


@pytest.mark.parametrize("duplicates", ["none", "pair", "source", "target"])
def test_filters_equal_a_plain_implementation(
    config: Config, write: Write, duplicates: str
) -> None:
    pairs = random_pairs(7, 1500)
    train_on(config, write, pairs)
    filters = config.data.filters
    filters.length_ratio = 2.0
    filters.duplicates = duplicates
    prepared = prepare(config.data, config.tokenizer)
    expected, dropped = naive(pairs, duplicates)
    kept = [(" ".join(pair["source"]), " ".join(pair["target"])) for pair in prepared.train]
    assert kept == expected
    counts = prepared.train.counts
    assert dropped.items() <= counts.items()
    assert counts["pairs"] + sum(dropped.values()) == 1500
    words = {word for source, _ in expected for word in source.split()}
    assert counts["source_types"] == len(words)
    # A kept pair stores the number of its line in the unfiltered file.
    row = prepared.train[len(expected) - 1]
    assert pairs[row["line"]] == (" ".join(row["source"]), " ".join(row["target"]))


def test_refuses_filters_that_drop_all_pairs(config: Config, write: Write) -> None:
    train_on(config, write, [("a", "a b c"), ("a b c", "a")])
    config.data.filters.length_ratio = 2.0
    with pytest.raises(InputError, match=r"none of 2 pairs is left"):
        prepare(config.data, config.tokenizer)
    assert not list(Path(config.data.cache).glob("pairs-*"))
