"""Hypotheses, likelihoods and attention per word, compared with the network's output."""

import dataclasses

import numpy as np
import pytest
import torch

from nmt.config.schema import SearchConfig
from nmt.data.batch import collate
from nmt.data.vocabulary import BpeVocabulary, WordVocabulary
from nmt.inference.model import Model
from nmt.search import Hypothesis
from nmt.text.symbols import END, UNKNOWN
from tests.inference.small import SEARCH, SOURCE, TARGET, make_network, make_trained


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


def forced(network, source, target):
    batch = collate([source], [target])
    return network(batch.source, batch.source_mask, batch.target, batch.target_mask)


def test_force_decode_equals_the_search():
    network = make_network()
    source = ["the", "red", "cat"]
    trained = make_trained(network, search=dataclasses.replace(SEARCH, nbest=3))
    [found] = trained.search([source])
    finished = [hypothesis for hypothesis in found if hypothesis.finished]
    assert finished
    decodings = trained.force_decode(
        [source] * len(finished), [each.tokens for each in finished], runners_up=True
    )
    for hypothesis, decoded in zip(finished, decodings, strict=True):
        assert decoded.log_probability == pytest.approx(hypothesis.log_probability)
        assert decoded.weights.shape == (len(hypothesis.tokens), 4)
        likelihood = forced(network, SOURCE.encode(source), hypothesis.tokens)
        log_p = network.logits(likelihood.readout)[0].log_softmax(1).numpy()
        for step, word in enumerate(hypothesis.tokens):
            others = sorted(set(range(len(TARGET))) - {word}, key=lambda i: -log_p[step, i])[:5]
            names, values = zip(*decoded.runners_up[step], strict=True)
            assert list(names) == TARGET.symbols(others)
            np.testing.assert_allclose(values, log_p[step, others], rtol=1e-5)
            assert decoded.word_log_probabilities[step] == pytest.approx(log_p[step, word])


def test_force_decode_merges_subwords_into_words():
    learn = ["the cat sees the dog", "catamaran", "dogged cats see"]
    source, target = BpeVocabulary.learn(learn, 262), BpeVocabulary.learn(learn, 270)
    network = make_network("Dot", source, target)
    words, written = ["the", "catamaran", "sees"], ["dogged", "cat"]
    ids = source.encode(words)
    symbols = target.encode(written)
    assert len(ids) > 4  # some word has more than one subword
    likelihood = forced(network, ids, symbols)
    groups, rows = np.array(source.word_index(ids)), np.array(target.word_index(symbols))
    weights = likelihood.weights[0].numpy()
    summed = np.stack([weights[:, groups == word].sum(1) for word in range(4)], 1)
    # A target word has the mean of its subwords' attention weights, and the sum of their NLLs.
    mean = np.stack([summed[rows == word].mean(0) for word in range(3)])
    nll = np.array([likelihood.nll[0].numpy()[rows == word].sum() for word in range(3)])
    [scored] = make_trained(network, source, target).score([(" ".join(words), " ".join(written))])
    np.testing.assert_allclose(scored.weights, mean, rtol=1e-6)
    np.testing.assert_allclose(scored.word_log_probabilities, -nll, rtol=1e-6)
    row = scored.row(7)
    assert (row["source"], row["target"]) == ([*words, "</s>"], [*written, "</s>"])
    entropy = -(mean * np.log(mean)).sum(1)
    np.testing.assert_allclose(row["attention_entropy"], entropy, rtol=1e-5)


@pytest.mark.parametrize(
    ("mode", "words", "unknown"),
    [
        ("none", ["<unk>", "<unk>", "<unk>"], (1, 2)),
        ("copy", ["<unk>", "<unk>", "Smith"], ()),
        ("dictionary", ["<unk>", "<unk>", "Dupont"], ()),
    ],
)
def test_unk_symbol_differs_from_the_word_unk(monkeypatch, mode, words, unknown):
    """The string `<unk>` is also an ordinary word of the target shortlist and of the source sentence."""
    target = WordVocabulary(["<unk>", "le"])
    trained = make_trained(
        make_network(target=target), target=target, search=SearchConfig(replace_unk=mode),
        dictionary={"Smith": "Dupont"},
    )  # fmt: skip
    decode = Model.force_decode

    def one_to_one(*arguments):
        return [dataclasses.replace(each, weights=np.eye(4)) for each in decode(*arguments)]

    monkeypatch.setattr(Model, "force_decode", one_to_one)
    hypothesis = Hypothesis([*target.encode(["<unk>"])[:1], UNKNOWN, UNKNOWN, END], -4.0, True)
    [found] = trained.describe([["the", "<unk>", "Smith"]], [hypothesis])
    assert (found.tokens, found.unknown, found.log_probability) == (words, unknown, -4.0)
