"""Data selection, against the definition spelt out with plain counts and recursion."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from omegaconf import DictConfig

from nmt.config import TextConfig
from nmt.data.batches import shuffle
from nmt.data.filtering.ngrams import closed, cross_entropy, frequent_words, load_model, write_model
from nmt.data.filtering.selection import best
from nmt.data.prepare import prepare
from nmt.utils.errors import InputError

Write = Callable[[str, list[str]], str]
NEEDS_THOT = "the extra 'thot' is not installed"


class Interpolated:
    """Jelinek-Mercer interpolation with weight 1/2 at every order, in Python's own numbers."""

    def __init__(self, sentences: list[str], vocabulary: frozenset[str], order: int) -> None:
        self.order = order
        self.counts: Counter[tuple[str, ...]] = Counter()
        for sentence in sentences:
            words = ["<s>", *closed(sentence.split(), vocabulary), "</s>"]
            self.counts[()] += len(words)
            for n in range(1, order + 1):
                self.counts.update(zip(*(words[i:] for i in range(n)), strict=False))
        self.types = sum(len(gram) == 1 for gram in self.counts)

    def probability(self, word: str, history: tuple[str, ...]) -> float:
        lower = self.probability(word, history[1:]) if history else 1 / (self.types + 1)
        seen = self.counts[history]
        return 0.5 * (self.counts[(*history, word)] / seen if seen else 0) + 0.5 * lower

    def bits(self, words: list[str]) -> float:
        words = ["<s>", *words, "</s>"]
        places = range(1, len(words))
        probabilities = [
            self.probability(words[i], tuple(words[max(0, i - self.order + 1) : i])) for i in places
        ]
        return -sum(map(math.log2, probabilities)) / len(probabilities)


def lines(seed: int, count: int, words: str) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(words.split(), k=draw.randint(1, 9))) for _ in range(count)]


@pytest.mark.parametrize("order", [1, 2, 4])
def test_model_is_the_interpolation_it_is_said_to_be(tmp_path: Path, order: int) -> None:
    pytest.importorskip("thot", reason=NEEDS_THOT)
    learnt = [*lines(1, 60, "a b c d é"), "once <unk> <s> a", "</s> b"]
    vocabulary = frequent_words(learnt)
    assert vocabulary == set("abcdé")
    write_model(learnt, vocabulary, order, tmp_path / "counts")
    model = load_model(tmp_path / "counts")
    expected = Interpolated(learnt, vocabulary, order)
    for line in [*lines(2, 40, "a b c d é once never"), "<unk>", "</s> <s>", "a"]:
        words = closed(line.split(), vocabulary)
        assert cross_entropy(model, words) == pytest.approx(expected.bits(words), abs=1e-5)


@pytest.mark.parametrize("most", [0, 1, 7, 40, 10**6])
def test_best_pairs_fill_the_words_that_are_allowed(most: int) -> None:
    draw = random.Random(most)
    scores = np.array([draw.choice([-1.0, 0.0, 0.5, np.inf]) for _ in range(30)], np.float32)
    words = np.array([draw.randint(1, 5) for _ in range(30)])
    expected, total = set(), 0
    for place in sorted(range(30), key=lambda place: (scores[place], place)):
        total += words[place]
        if total > most or np.isinf(scores[place]):
            break
        expected.add(place)
    assert set(np.flatnonzero(best(scores, words, most)).tolist()) == expected


def mixed(config: DictConfig, write: Write) -> tuple[list[tuple[str, str]], list[bool]]:
    """General text of two kinds, one of which the in-domain text is of."""
    sea = lines(1, 150, "ship sea sail wind the of"), lines(2, 150, "navire mer voile vent le de")
    law = lines(3, 150, "court law judge the of"), lines(4, 150, "cour loi juge le de")
    pairs = [*zip(*sea, strict=True), *zip(*law, strict=True)]
    is_sea = [True] * 150 + [False] * 150
    order = random.Random(5).sample(range(300), 300)
    pairs, is_sea = [pairs[i] for i in order], [is_sea[i] for i in order]
    data = config.data
    data.train = TextConfig(
        source=write("g.en", [source for source, _ in pairs]),
        target=write("g.fr", [target for _, target in pairs]),
        tokenised=True,
    )
    data.in_domain = TextConfig(
        source=write("i.en", lines(11, 40, "ship sea sail wind the of")),
        target=write("i.fr", lines(12, 40, "navire mer voile vent le de")),
        tokenised=True,
    )
    data.selection, data.selection_target_words, data.selection_order = "axelrod", 400, 3
    return pairs, is_sea


@pytest.mark.parametrize("workers", [None, 2])
def test_pairs_nearest_to_the_domain_are_kept(
    config: DictConfig, write: Write, monkeypatch: pytest.MonkeyPatch, workers: int | None
) -> None:
    pytest.importorskip("thot", reason=NEEDS_THOT)
    pairs, is_sea = mixed(config, write)
    monkeypatch.setattr("nmt.data.filtering.filters.processes", lambda rows: workers)
    prepared = prepare(config.data, config.tokenizer, progress=False)

    scores = np.zeros(len(pairs))
    sample = sorted(shuffle(len(pairs), 1)[:40].tolist())
    for side, name in enumerate(("source", "target")):
        inside = Path(getattr(config.data.in_domain, name)).read_text().splitlines()
        vocabulary = frequent_words(inside)
        h_in = Interpolated(inside, vocabulary, 3)
        h_out = Interpolated([pairs[i][side] for i in sample], vocabulary, 3)
        for number, pair in enumerate(pairs):
            words = closed(pair[side].split(), vocabulary)
            scores[number] += h_in.bits(words) - h_out.bits(words)
    expected = best(scores, np.array([len(target.split()) for _, target in pairs]), 400)

    kept = [prepared.train[number]["line"] for number in range(len(prepared.train))]
    assert kept == np.flatnonzero(expected).tolist()
    assert sum(is_sea[line] for line in kept) > 0.9 * len(kept)
    assert sum(len(pairs[line][1].split()) for line in kept) in range(392, 401)
    dropped = {"not_selected": 300 - len(kept)}
    assert prepared.manifest["splits"]["train"]["dropped"] == dropped
    assert f"by data.selection=axelrod: {dropped['not_selected']}" in prepared.summary()
    (path,) = Path(config.data.cache).glob("pairs-*/manifest.json")
    settings = json.loads(path.read_text())["settings"]
    assert settings["selection_target_words"] == 400
    assert settings["in_domain"]["source"].endswith("i.en")


def test_what_filters_leave_out_is_neither_selected_nor_sampled(
    config: DictConfig, write: Write
) -> None:
    pytest.importorskip("thot", reason=NEEDS_THOT)
    pairs, _ = mixed(config, write)
    config.data.filters.duplicates = "source"
    config.data.selection_target_words = 10**6
    prepared = prepare(config.data, config.tokenizer, progress=False)
    sources = {source for source, _ in pairs}
    assert len(prepared.train) == len(sources) < len(pairs)
    dropped = prepared.manifest["splits"]["train"]["dropped"]
    assert dropped == {"duplicate": len(pairs) - len(sources)}


def test_selection_that_lacks_something_is_refused(config: DictConfig, write: Write) -> None:
    mixed(config, write)
    config.data.selection_target_words = 0
    with pytest.raises(
        InputError, match=r"data\.selection=axelrod: .*data\.selection_target_words"
    ):
        prepare(config.data, config.tokenizer, progress=False)
    pytest.importorskip("thot", reason=NEEDS_THOT)
    config.data.selection_target_words = 100
    config.data.in_domain = TextConfig()
    with pytest.raises(InputError, match=r"data\.in_domain\.source: missing"):
        prepare(config.data, config.tokenizer, progress=False)
    assert not [*Path(config.data.cache).glob("text-*")]  # refused before any text was worked on
    mixed(config, write)
    config.data.selection_target_words = 1
    with pytest.raises(InputError, match=r"data\.selection: none of 300 .* is left"):
        prepare(config.data, config.tokenizer, progress=False)
