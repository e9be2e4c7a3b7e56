"""The copy in the order of reading holds the same pairs for the same updates."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from omegaconf import DictConfig

from nmt.data import in_order
from nmt.data.module import MicroBatches, TranslationData
from nmt.data.prepare import prepare


def data(config: DictConfig, when: str) -> TranslationData:
    config.data.in_order = when
    return TranslationData(prepare(config.data, config.tokenizer, progress=False), config)


def copies(config: DictConfig) -> list[Path]:
    return sorted(Path(config.data.cache).glob("order-*"))


@pytest.mark.parametrize("block", [1, 100, 2**27])
@pytest.mark.parametrize("batch_by", ["sentences", "tokens"])
def test_updates_are_those_of_the_corpus(
    config: DictConfig, monkeypatch: pytest.MonkeyPatch, block: int, batch_by: str
) -> None:
    """Written in many blocks or in one; also by a process that is not forked."""
    monkeypatch.setattr(in_order, "BLOCK", block)
    config.trainer.progress = False
    config.data.max_length, config.data.batch_by, config.data.batch_tokens = 10, batch_by, 60
    plain, copied = data(config, "never"), data(config, "always")
    assert len(copies(config)) == 1
    pairs = len(plain.train)
    assert 0 < pairs < 57
    for train in (copied.train, pickle.loads(pickle.dumps(copied.train))):
        one, other = (
            MicroBatches(pairs, plain.schedule, 1, 0, 1) for pairs in (plain.train, train)
        )
        for update in range(14):
            for name in ("rows", "source", "target", "target_mask", "weight"):
                left, right = getattr(one[update], name), getattr(other[update], name)
                np.testing.assert_array_equal(left, right)


def test_copy_is_read_from_start_to_end(config: DictConfig) -> None:
    config.trainer.progress = False
    copied = data(config, "always")
    copy = in_order.InOrder(copies(config)[0])
    end = None
    for number in copied.schedule.shuffled.tolist():
        source, target = copy[number]
        assert end in (None, source.ctypes.data)
        assert target.ctypes.data == source.ctypes.data + source.nbytes
        end = target.ctypes.data + target.nbytes


def test_copy_is_made_again_for_another_order_or_other_pairs(config: DictConfig) -> None:
    config.trainer.progress = False
    made = []
    for seed, max_length in ((1, 50), (1, 50), (2, 50), (1, 8)):
        config.seed, config.data.max_length = seed, max_length
        data(config, "always")
        made.append(len(copies(config)))
    assert made == [1, 1, 2, 3]


def test_copy_is_made_where_the_pairs_exceed_half_of_the_memory(
    config: DictConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.trainer.progress = False
    assert in_order.memory() > 2**28
    needed = 4 * int(data(config, "auto").train.sizes.sum())
    for memory, expected in ((2 * needed, 0), (2 * needed - 1, 1)):
        monkeypatch.setattr(in_order, "memory", lambda memory=memory: memory)
        data(config, "auto")
        assert len(copies(config)) == expected
