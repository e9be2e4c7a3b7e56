"""Fixtures that write a small parallel text, and a configuration that uses it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt.config.schema import Config, TextConfig

WORDS = ("le", "chat", "noir", "dort", "sous", "la", "table", "rouge", "hier", "encore")


def sentence(number: int, length: int) -> str:
    """Returns `length` words; if `length` >= 4, numbers below 10,000 give different sentences."""
    digits = [int(digit) for digit in f"{number:04d}"]
    return " ".join(WORDS[(digits[place % 4] + place // 4) % 10] for place in range(length))


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, list[str]], str]:
    """Returns a function that writes lines to a file in the test's folder and returns its path."""

    def writer(name: str, lines: list[str]) -> str:
        path = tmp_path / name
        path.write_bytes("".join(line + "\n" for line in lines).encode())
        return str(path)

    return writer


@pytest.fixture
def config(tmp_path: Path, write: Callable[[str, list[str]], str]) -> Config:
    """Returns a configuration with 57 training (4-12 source, 3-15 target words), 7 development and 5 test pairs."""
    lines: dict[str, Any] = {}
    for name, pairs, offset in (("train", 57, 0), ("valid", 7, 100), ("test", 5, 200)):
        numbers = range(offset, offset + pairs)
        lines[name] = TextConfig(
            source=write(f"{name}.en", [sentence(k, 4 + k % 9) for k in numbers]),
            target=write(f"{name}.fr", [sentence(k + 1, 3 + k * 7 % 13) for k in numbers]),
            tokenised=True,
        )
    config = Config()
    config.data.train, config.data.valid = lines["train"], lines["valid"]
    config.data.test = {"mine": lines["test"]}
    config.data.cache = str(tmp_path / "cache")
    config.data.batch_size = 6
    config.data.workers = 0
    config.tokenizer.source_size = 7
    config.tokenizer.target_size = 8
    config.search.batch_size = 2
    return config
