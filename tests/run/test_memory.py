"""The memory that large values would take, said before any work."""

from __future__ import annotations

import logging

import pytest
import torch

from benchmarks.memory import measure
from nmt.config import Config, SearchConfig, TrainerConfig
from nmt.models import build_model
from nmt.run import memory
from nmt.run.memory import memory_needs, warn_of_memory


def laptop(**search: object) -> Config:
    """Of 256 hidden units, with 6,500 words and one thread."""
    config = Config(
        search=SearchConfig(**search), trainer=TrainerConfig(accelerator="cpu", threads=1)
    )
    config.model.hidden = config.model.alignment = 256
    config.model.embedding = config.model.maxout = 128
    config.tokenizer.target_size = 6500
    return config


def sizes(config: Config) -> dict[str, int]:
    return {need.what: need.size for need in memory_needs(config, training=True)}


def test_what_it_grows_with():
    config = laptop(beam_size=12, batch_size=64)
    before = sizes(config)
    assert before["a search"] == memory.SCORE * 64 * 12 * 6500
    config.trainer.threads, config.data.workers = 3, 2
    config.data.batch_size *= 5
    config.trainer.accumulate = 2
    after = sizes(config)
    assert after["a search"] == 3 * before["a search"]
    assert after["an update"] == 5 * before["an update"] // 2
    assert (before["making batches"], after["making batches"]) == (0, 2 * memory.WORKER)
    config.search.replace_unk = "copy"
    assert sizes(config)["search.replace_unk=copy"] == 2 * 4 * 3 * 64 * 50 * 6500
    assert [need.what for need in memory_needs(laptop(), training=False)] == ["a search"]


def test_threads_that_share_a_batch_have_gradients_of_their_own():
    config = laptop()
    config.tokenizer.source_size, config.model.scoring = 5000, {"_target_": "nmt.layers.Additive"}
    with torch.device("meta"):
        model = build_model(config, 5000, 6500)
    one = sizes(config)["gradients"]
    assert one == pytest.approx(4 * sum(each.numel() for each in model.parameters()), rel=0.25)
    config.trainer.threads = 3
    assert sizes(config)["gradients"] == 3 * one
    config.data.batch_size = 40  # two shares of at least 16
    assert sizes(config)["gradients"] == 2 * one
    config.data.batch_by = "tokens"
    assert sizes(config)["gradients"] == 3 * one
    config.trainer.threads = "auto"  # not known yet
    assert "gradients" not in sizes(config)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("search.beam_size", 1000, "search.batch_size=64, search.beam_size=1000"),
        ("search.batch_size", 100_000, "search.batch_size=100000, search.beam_size=12"),
        ("trainer.threads", 1024, "trainer.threads=1024: a search may take about 31 GB"),
        ("data.batch_size", 1_000_000, "data.batch_size=1000000, data.max_length=50"),
        ("data.workers", 1024, "data.workers=1024: making batches may take about 17 GB"),
    ],
)
def test_a_large_value_is_warned_of(monkeypatch, caplog, key, value, said):
    """One line, which says what there is; nothing is said of the values of a regime."""
    monkeypatch.setattr(memory, "host_memory", lambda: 10**9)
    config = laptop(beam_size=12, batch_size=64)
    with caplog.at_level(logging.WARNING):
        warn_of_memory(config, training=True)
        assert not caplog.records
        section, _, name = key.partition(".")
        setattr(getattr(config, section), name, value)
        warn_of_memory(config, training=True)
    (line,) = caplog.messages
    assert said in line
    assert line.endswith("of 1 GB here: take smaller values")


def test_other_ranks_say_nothing(monkeypatch, caplog):
    monkeypatch.setattr(memory, "host_memory", lambda: 1)
    monkeypatch.setenv("LOCAL_RANK", "1")
    warn_of_memory(laptop(), training=True)
    assert not caplog.records


@pytest.mark.slow
def test_an_update_takes_about_as_much():
    """Measured in a process of its own, with sentences of the greatest length on both sides."""
    config = laptop()
    config.data.batch_size, config.data.max_length = 80, 100
    measured = measure("laptop", "additive", "fused", False, 100, 80, "cpu") * 2**20
    assert 0.6 < sizes(config)["an update"] / measured < 1.6
