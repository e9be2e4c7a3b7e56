"""Vocabularies map words to ids and back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.vocabulary import BpeVocabulary, WordVocabulary, load_vocabulary, rank_words
from nmt.text.symbols import END, UNKNOWN
from nmt.text.tokenise import split

SENTENCES = ["b a a", "c a b", "zz é", "</s> <unk> <unk> <unk>"]
WORDS = st.lists(st.text(min_size=1).map(split).filter(len).map(lambda tokens: tokens[0]))


def test_rank_words_sorts_by_frequency_then_spelling() -> None:
    assert rank_words(SENTENCES) == ["<unk>", "a", "b", "</s>", "c", "zz", "é"]
    vocabulary = WordVocabulary(rank_words(SENTENCES)[:3])
    assert len(vocabulary) == 5
    assert vocabulary.encode(["b", "é", "a"]) == [4, UNKNOWN, 3, END]
    assert vocabulary.decode([4, 1, 3, 0, 3]) == ["b", "<unk>", "a"]
    assert vocabulary.words_of([4, 1, 3, 0, 3]) == ["b", None, "a"]
    assert vocabulary.symbols([4, 1, 0]) == ["b", "<unk>", "</s>"]
    assert vocabulary.word_index([4, 1, 0]) == [0, 1, 2]


def test_words_spelt_like_special_symbols_are_ordinary() -> None:
    vocabulary = WordVocabulary(rank_words(SENTENCES)[:4])
    assert vocabulary.encode(["<unk>", "</s>", "</S>"]) == [2, 5, UNKNOWN, END]


@settings(max_examples=15, deadline=None)
@given(WORDS)
@pytest.mark.slow
def test_decode_restores_known_words(tokens: list[str]) -> None:
    vocabulary = WordVocabulary(rank_words([" ".join(tokens)]))
    assert len(vocabulary) == 2 + len(set(tokens))
    assert vocabulary.decode(vocabulary.encode(tokens)) == tokens
    again = load_vocabulary(json.loads(json.dumps(vocabulary.state())))
    assert again.encode(tokens) == vocabulary.encode(tokens)


@pytest.fixture(scope="module")
def subwords() -> BpeVocabulary:
    return BpeVocabulary.learn(["lower lowest low new newer newest wider"] * 9, 270)


def test_subwords_are_mapped_to_their_words(subwords: BpeVocabulary) -> None:
    assert len(subwords) == 272
    ids = subwords.encode(["low", "zébu", "newest"])
    assert ids[-1] == END
    assert min(ids[:-1]) >= 2
    assert subwords.decode(ids) == ["low", "zébu", "newest"]
    index = subwords.word_index(ids)
    assert len(index) == len(ids)
    assert index[0] == 0
    assert index[-1] == 3
    assert index.count(1) == 6  # zébu: start mark, z, two bytes of é, b, u
    symbols = zip(subwords.symbols(ids), index, strict=True)
    assert "".join(symbol for symbol, word in symbols if word == 2) == "newest"
    again = load_vocabulary(json.loads(json.dumps(subwords.state())))
    assert again.encode(["newer", "ok"]) == subwords.encode(["newer", "ok"])


@settings(max_examples=60, deadline=None)
@given(tokens=WORDS)
def test_decode_restores_words_from_subwords(subwords: BpeVocabulary, tokens: list[str]) -> None:
    ids = subwords.encode(tokens)
    assert UNKNOWN not in ids
    assert subwords.decode(ids) == tokens
    index = subwords.word_index(ids)
    assert index == sorted(index)
    assert sorted(set(index)) == list(range(len(tokens) + 1))


@settings(max_examples=60, deadline=None)
@given(ids=st.lists(st.integers(0, 271)))
def test_any_ids_decode_to_as_many_words_as_word_index_says(
    subwords: BpeVocabulary, ids: list[int]
) -> None:
    words = subwords.decode(ids)
    before_end = ids[: ids.index(END)] if END in ids else ids
    assert len(set(subwords.word_index(before_end))) == len(words)
    assert " ".join(words).split() == words
    assert len(subwords.symbols(ids)) == len(subwords.word_index(ids)) == len(ids)
