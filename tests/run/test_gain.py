"""What one model gains over another, word by word."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from nmt.config.validation import load
from nmt.data.batch import collate
from nmt.evaluation.alignment import Gold
from nmt.evaluation.examples import Example
from nmt.evaluation.positions import gains_at_positions
from nmt.inference.trained import from_checkpoints, read_members
from nmt.run.gain import measure_gains, word_likelihoods
from nmt.utils.errors import InputError
from nmt.utils.progress import Stage
from tests.helpers.models import ENGLISH, FRENCH, small_checkpoint

PAIRS = [(ENGLISH[:4], FRENCH[:3]), (ENGLISH[2:3], FRENCH[4:6]), (ENGLISH, FRENCH)]
QUIET = Stage("", shown=False)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """RNNsearch and RNNencdec with the same vocabularies."""
    folder, found = tmp_path_factory.mktemp("gain"), []
    for attends in (True, False):
        file = small_checkpoint(folder / f"{attends}.ckpt", seed=2 - attends, attends=attends)
        members = read_members(file)
        found.append(from_checkpoints(members, load(members[0].config.copy(), training=False)))
    return found


def examples(gold=None):
    return [Example(n, *pair, gold=gold) for n, pair in enumerate(PAIRS)]


def run_of(trained):
    evaluation = dataclasses.replace(trained.config.evaluation, resamples=20, edges=[2, 5])
    config = dataclasses.replace(trained.config, evaluation=evaluation)
    config.trainer.progress = False
    return SimpleNamespace(config=config)


def test_likelihoods_are_those_of_each_pair_alone(models):
    for trained in models:
        found = word_likelihoods(trained, examples(), QUIET)
        for (source, target), words in zip(PAIRS, found, strict=True):
            ids = trained.codec.source.encode(source), trained.codec.target.encode(target)
            with torch.no_grad():
                nll, _ = trained.model(collate([ids[0]], [ids[1]]))
            assert len(words) == len(target)  # </s> is no word
            torch.testing.assert_close(
                torch.tensor(words), -nll[0, : len(target)], atol=1e-5, rtol=0
            )


def test_gains_are_differences_of_likelihoods(models):
    ours, theirs = (word_likelihoods(each, examples(), QUIET) for each in models)
    each = [np.subtract(a, b) for a, b in zip(ours, theirs, strict=True)]
    found = measure_gains(run_of(models[0]), *models, {"mine": examples()}, positions=2)
    assert [(row["order"], row["positions"]) for row in found] == [
        ("from_start", "target"),
        ("from_end", "target"),
    ]
    for row in found:
        assert row["gain"]["score"] == pytest.approx(np.concatenate(each).mean(), abs=1e-6)
        assert row["words"] == sum(map(len, each))
        assert [at["position"] for at in row["by_position"]] == [1, 2]
    last = found[1]["by_position"][0]
    assert last["gain"]["score"] == pytest.approx(np.mean([words[-1] for words in each]), abs=1e-6)
    assert [row["sentences"] for row in found[0]["by_length"]] == [1, 1, 1]


def test_with_gold_links_the_positions_are_those_of_source_words(models):
    gold = Gold(frozenset({(0, 1)}), frozenset({(0, 1), (0, 0)}))
    (first, last) = measure_gains(run_of(models[0]), *models, {"mine": examples(gold)}, positions=9)
    assert first["positions"] == last["positions"] == "source"
    assert [at["position"] for at in first["by_position"]] == [1]
    assert [at["position"] for at in last["by_position"]] == sorted(
        {len(source) for source, _ in PAIRS}
    )
    nowhere = examples(Gold(frozenset(), frozenset()))
    found = measure_gains(run_of(models[0]), *models, {"m": nowhere}, positions=9)
    assert found[0]["gain"]["score"] is None  # no word is linked
    mixed = [*examples(gold)[:2], examples()[2]]  # one without
    assert measure_gains(run_of(models[0]), *models, {"m": mixed}, 9)[0]["positions"] == "target"


def test_a_table_of_gains():
    rng = np.random.default_rng(3)
    gains = [rng.normal(size=7), rng.normal(size=4)]
    links = [{(4, 0), (4, 6), (1, 3)}, {(0, 1)}]
    golds = [Gold(frozenset(each), frozenset()) for each in links]
    table = gains_at_positions(gains, [5, 3], golds)
    assert table.shape == (2, 5)
    assert table[0, 4] == pytest.approx((gains[0][0] + gains[0][6]) / 2)
    assert table[0, 1] == gains[0][3]
    assert table[1, 0] == gains[1][1]
    assert np.isfinite(table).sum() == 3
    back = gains_at_positions(gains, [5, 3], golds, from_end=True)
    assert back[0, 0] == table[0, 4]
    assert back[1, 2] == table[1, 0]


def test_models_of_other_words_are_refused(models, tmp_path):
    members = read_members(small_checkpoint(tmp_path / "a.ckpt", french=FRENCH[::-1]))
    other = from_checkpoints(members, load(members[0].config.copy(), training=False))
    with pytest.raises(InputError, match="against: its vocabulary is another"):
        measure_gains(run_of(models[0]), models[0], other, {"mine": examples()}, 9)
