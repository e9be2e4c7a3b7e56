"""Hypotheses, likelihoods and attention as words, against the network's own numbers."""

import dataclasses

import numpy as np
import pytest
import torch

from nmt.config import SearchConfig
from nmt.data.vocabulary import UNKNOWN, BpeVocabulary, WordVocabulary
from nmt.inference import model
from nmt.inference.force_decoding import force_decode
from nmt.search import Hypothesis
from tests.inference.small import SEARCH, SOURCE, make_codec, make_network, make_trained


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


def test_force_decoding_repeats_the_probabilities_of_the_search():
    network, source = make_network(), SOURCE.encode(["the", "red", "cat"])
    trained = make_trained(network, search=dataclasses.replace(SEARCH, nbest=3))
    [found] = trained.search([source])
    tokens = [hypothesis.tokens for hypothesis in found]
    decodings = force_decode(network, [source] * 3, tokens, runners_up=5)
    for hypothesis, forced in zip(found, decodings, strict=True):
        read = forced.log_probabilities[: len(hypothesis.tokens)]
        assert sum(read) == pytest.approx(hypothesis.score)
        assert forced.weights.shape == (len(forced.ids), 4)
        for written, own, others in zip(
            forced.ids, forced.log_probabilities, forced.runners_up, strict=True
        ):
            assert written not in [index for index, _ in others]
            values = [value for _, value in others]
            assert values == sorted(values, reverse=True)
            assert len(values) == 5
            assert np.exp([own, *values]).sum() <= 1 + 1e-6


def test_subwords_are_read_as_words():
    learn = ["the cat sees the dog", "catamaran", "dogged cats see"]
    source, target = BpeVocabulary.learn(learn, 262), BpeVocabulary.learn(learn, 270)
    codec, network = make_codec(source, target), make_network("Dot", source, target)
    words, written = ["the", "catamaran", "sees"], ["dogged", "cat"]
    ids, symbols = source.encode(words), target.encode(written)
    assert len(ids) > 4  # some word has more than one subword
    [forced] = force_decode(network, [ids], [symbols])
    groups, rows = np.array(source.word_index(ids)), np.array(target.word_index(symbols))
    summed = np.stack([forced.weights[:, groups == word].sum(1) for word in range(4)], 1)
    # a word of the translation has the mean weights of its subwords
    mean = np.stack([summed[rows == word].mean(0) for word in range(3)])
    trained = make_trained(network, codec)
    [scored] = trained.score([(" ".join(words), " ".join(written))])
    np.testing.assert_allclose(scored.weights, mean, rtol=1e-6)
    assert scored.row["source"] == [*words, "</s>"]
    assert scored.row["target"] == [*written, "</s>"]
    assert len(scored.row["attention_entropy"]) == len(scored.log_probabilities) == 3
    assert scored.log_probabilities.sum() == pytest.approx(sum(forced.log_probabilities))


@pytest.mark.parametrize("mode", ["none", "copy", "dictionary"])
def test_unknown_words_are_told_from_words_spelt_like_them(monkeypatch, mode):
    """The text has words spelt `<unk>`: in the target's shortlist, and copied from the source."""
    target = WordVocabulary(["<unk>", "le"])
    word = target.encode(["<unk>"])[0]
    dictionary = {"Smith": "Dupont"} if mode == "dictionary" else None
    trained = make_trained(
        make_network(target=target), make_codec(target=target),
        SearchConfig(replace_unk=mode), dictionary=dictionary,
    )  # fmt: skip

    def one_to_one(*arguments, **options):
        found = force_decode(*arguments, **options)
        return [dataclasses.replace(each, weights=np.eye(4)) for each in found]

    monkeypatch.setattr(model, "force_decode", one_to_one)
    hypothesis = Hypothesis([word, UNKNOWN, UNKNOWN, 0], -4.0, True)
    [found] = trained.describe([(["the", "<unk>", "Smith"], hypothesis)], ())
    expected = {
        "none": (["<unk>", "<unk>", "<unk>"], (1, 2)),
        "copy": (["<unk>", "<unk>", "Smith"], ()),
        "dictionary": (["<unk>", "<unk>", "Dupont"], ()),
    }
    assert (found.tokens, found.unknown) == expected[mode]


@pytest.mark.parametrize("world", [1, 2, 3, 5])
def test_ranks_share_the_sentences(world):
    trained = make_trained(make_network())
    found = [
        place
        for rank in range(world)
        for place, _ in trained.in_batches([7, 3, 4, 2, 6], lambda places: places, rank, world)
    ]
    assert sorted(found) == [0, 1, 2, 3, 4]
