"""Sampled sentences: reproducible, disjoint between splits, with the right lengths, links and variety."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b

import pytest
from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer

from nmt.evaluation.alignment import parse_links
from nmt.grammar import AlignedPair, draw, draw_by_length
from nmt.grammar.sampling import split_share

EDGES = [10, 20, 30, 40, 50, 60]


@pytest.fixture(scope="module")
def corpus() -> list[AlignedPair]:
    return [draw(1, "train", k) for k in range(5_000)]


@pytest.fixture(scope="module")
def short() -> list[AlignedPair]:
    return [draw(1, "train", k, mean_length=5) for k in range(2000)]


@pytest.fixture(scope="module")
def by_length() -> list[AlignedPair]:
    return [draw_by_length(1, "test", k) for k in range(70)]


def digest(pairs: list[AlignedPair]) -> str:
    lines = ["\t".join((" ".join(p.source), " ".join(p.target), p.pharaoh())) for p in pairs]
    text = "\n".join(lines)
    return blake2b(text.encode(), digest_size=8).hexdigest()


def test_draws_never_change(by_length: list[AlignedPair]) -> None:
    """If these digests change, VERSION must change, too."""
    assert digest([draw(1, "train", k) for k in range(200)]) == "11b53a284fb72d8c"
    assert digest([draw(1, "test", k) for k in range(50)]) == "a8d7b4ff620c3cec"
    assert digest(by_length) == "8e63baccb82f2de4"


def test_draw_depends_on_its_number_only() -> None:
    alone = draw(3, "valid", 17)
    assert [draw(3, "valid", k) for k in range(20)][17] == alone
    assert draw(3, "valid", 18) != alone
    assert draw(4, "valid", 17) != alone


@pytest.mark.slow
def test_splits_share_no_sentence(
    corpus: list[AlignedPair], short: list[AlignedPair], by_length: list[AlignedPair]
) -> None:
    """No source or target sentence is in two splits, not even a short one, which is most likely to repeat."""
    held = [draw(1, "valid", k, mean_length=5) for k in range(500)]
    held += [draw(2, "test", k, mean_length=5) for k in range(500)]
    held += by_length
    sides = ("source", "target")
    for side in sides:
        train = {" ".join(getattr(pair, side)) for pair in [*corpus, *short]}
        assert not train & {" ".join(getattr(pair, side)) for pair in held}
    assert len({" ".join(pair.source) for pair in short}) < len(short)  # sentences do repeat
    shares = [split_share(split) for split in ("train", "valid", "test")]
    assert sorted(s for share in shares for s in share) == list(range(16))
    assert split_share("test:by_length") == split_share("test")


def test_equal_sources_have_equal_translations(
    corpus: list[AlignedPair], short: list[AlignedPair]
) -> None:
    translations: dict[str, set[str]] = {}
    for pair in [*corpus, *short]:
        translations.setdefault(" ".join(pair.source), set()).add(" ".join(pair.target))
    assert [s for s, targets in translations.items() if len(targets) > 1] == []
    assert len(translations) > len(corpus)


def test_moses_keeps_the_tokens(corpus: list[AlignedPair], by_length: list[AlignedPair]) -> None:
    pairs = corpus[:300] + by_length
    for language, side in (("en", 0), ("fr", 1)):
        tokenizer = MosesTokenizer(language)
        detokenizer = MosesDetokenizer(language)
        normalizer = MosesPunctNormalizer(language)
        for pair in pairs:
            text = normalizer.normalize(detokenizer.detokenize(pair[side]))
            assert tokenizer.tokenize(text, escape=False) == pair[side]


def test_every_word_is_aligned(corpus: list[AlignedPair]) -> None:
    for pair in corpus:
        links = [*pair.sure, *pair.possible]
        assert {i for i, _ in links} == set(range(len(pair.source)))
        assert {j for _, j in links} == set(range(len(pair.target)))
        assert len(set(links)) == len(links)
        assert pair.sure == sorted(pair.sure)
        assert pair.possible == sorted(pair.possible)
        final = (len(pair.source) - 1, len(pair.target) - 1)
        assert [link for link in links if final[0] in link[:1]] == [final]
        assert final in pair.sure


def test_most_links_are_sure(corpus: list[AlignedPair]) -> None:
    sure = sum(len(pair.sure) for pair in corpus)
    assert 0.8 < sure / sum(len(pair.sure) + len(pair.possible) for pair in corpus) < 0.9


def test_pharaoh_format_is_read_back(corpus: list[AlignedPair]) -> None:
    for pair in corpus[:300]:
        gold = parse_links(pair.pharaoh(), lengths=(len(pair.source), len(pair.target)))
        assert sorted(gold.sure) == pair.sure
        assert sorted(gold.possible - gold.sure) == pair.possible


def test_word_frequencies_are_zipfian(corpus: list[AlignedPair]) -> None:
    for side, least in ((0, 1500), (1, 2000)):
        counts = [n for _, n in Counter(w for p in corpus for w in p[side]).most_common()]
        assert len(counts) > least
        # Zipf's law: a word of ten times the rank is about ten times as rare.
        assert 5 < counts[9] / counts[99] < 20
        assert 5 < counts[99] / counts[999] < 20


def test_distribution_of_lengths(corpus: list[AlignedPair]) -> None:
    lengths = [len(pair.source) for pair in corpus]
    share = Counter(min((length - 1) // 10, 6) for length in lengths)
    assert sum(lengths) / len(lengths) == pytest.approx(22, abs=0.7)
    assert share[0] / len(lengths) == pytest.approx(0.21, abs=0.04)
    assert sum(share[b] for b in (1, 2, 3)) / len(lengths) == pytest.approx(0.69, abs=0.05)
    assert 0.004 < share[6] / len(lengths) < 0.03
    assert min(lengths) >= 3
    assert max(lengths) >= 75
    assert max(max(map(len, pair[:2])) for pair in corpus) == 80


@pytest.mark.parametrize("mean", [8, 15])
def test_mean_length_follows_the_setting(mean: float) -> None:
    pairs = [draw(5, "train", k, mean_length=mean) for k in range(700)]
    lengths = [len(pair.source) for pair in pairs]
    assert max(lengths) <= 80
    assert sum(lengths) / len(lengths) == pytest.approx(mean, rel=0.12)


def test_by_length_fills_buckets_in_turn() -> None:
    bounds = [2, *EDGES, 80]
    pairs = [draw_by_length(1, "test", k) for k in range(70)]
    for k, pair in enumerate(pairs):
        assert bounds[k % 7] < len(pair.source) <= bounds[k % 7 + 1]
        assert len(pair.target) <= 80
    assert max(len(pair.source) for pair in pairs) > 70


@pytest.mark.parametrize("split", ["dev", "nothing:test"])
def test_refuses_an_unknown_split(split: str) -> None:
    for draw_pair in (draw, draw_by_length):
        with pytest.raises(ValueError, match="built-in corpus: no split"):
            draw_pair(1, split, 0)


@pytest.mark.parametrize("mean", [0, -5])
def test_refuses_a_mean_length_that_is_not_positive(mean: float) -> None:
    with pytest.raises(ValueError, match=f"built-in corpus: mean_length={mean}: must be above 0"):
        draw(1, "train", 0, mean_length=mean)
