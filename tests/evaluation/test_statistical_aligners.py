"""Statistical aligners beside the attention; without their package, the refusal that names it."""

import sys

import numpy as np
import pytest

from nmt.evaluation.alignment import Gold
from nmt.evaluation.statistical_aligners import check_aligners, statistical_alignment_scores
from nmt.utils.errors import InputError

WORDS = 30


def language(pairs: int, seed: int = 0):
    """Word n is written t<n>, in reversed order: links j -> length - 1 - j."""
    generator = np.random.default_rng(seed)
    for _ in range(pairs):
        words = generator.integers(WORDS, size=generator.integers(3, 8)).tolist()
        links = frozenset((j, len(words) - 1 - j) for j in range(len(words)))
        yield [f"s{w}" for w in words], [f"t{w}" for w in reversed(words)], Gold(links, links)


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "thot.alignment", None)
    with pytest.raises(
        InputError,
        match=r"statistical_aligners=true: needs the extra 'thot'[^\n]*\npip install 'nmt\[thot\]'",
    ):
        check_aligners()


def test_a_reordering_language_is_aligned_almost_without_error():
    pytest.importorskip("thot", reason="the extra 'thot' is not installed")
    training = [(source, target) for source, target, _ in language(400)]
    sets = {"a": list(language(20, seed=1)), "b": list(language(30, seed=2))}
    found = statistical_alignment_scores(training, sets, resamples=50)
    assert [found[name]["training_pairs"] for name in ("a", "b")] == [400, 400]
    assert [found[name]["hmm"]["sentences"] for name in ("a", "b")] == [20, 30]
    for name in sets:
        for aligner in ("hmm", "fast_align"):
            scores = found[name][aligner]
            assert set(scores) == {"sentences", "alignment_error_rate", "precision", "recall"}
            rate = scores["alignment_error_rate"]
            assert rate["low"] <= rate["score"] <= rate["high"]
            assert 0.7 < scores["precision"]["low"] <= scores["precision"]["high"] <= 1
        assert found[name]["hmm"]["alignment_error_rate"]["score"] < 0.1
        assert found[name]["fast_align"]["alignment_error_rate"]["score"] < 0.25
    assert found == statistical_alignment_scores(training, sets, resamples=50)


def test_the_source_word_stands_first_in_a_link():
    """A target of twice as many words: links out of a square would fall outside the gold's."""
    pytest.importorskip("thot", reason="the extra 'thot' is not installed")
    doubled = [
        (source, [w for word in reversed(source) for w in (f"x{word}", f"y{word}")], len(source))
        for source, _, _ in language(400, seed=3)
    ]
    gold = [
        (s, t, Gold(links, links))
        for s, t, n in doubled[:20]
        if (links := frozenset((j, 2 * (n - 1 - j) + k) for j in range(n) for k in (0, 1)))
    ]
    found = statistical_alignment_scores([(s, t) for s, t, _ in doubled], {"a": gold}, resamples=0)
    rate = found["a"]["hmm"]["alignment_error_rate"]
    assert rate["score"] < 0.2
    assert rate["low"] is None
