"""Replacement of `<unk>`, and the dictionary that is learnt from attention."""

import numpy as np
import pytest
import torch

from nmt.data.vocabulary import WordVocabulary
from nmt.inference.model import replace_unknown_words
from nmt.inference.training_pairs import count_links, learn_dictionary, pairs_of_rare_words
from nmt.utils.errors import InputError
from tests.inference.small import make_network, make_pairs, make_trained

PAIRS = [
    (["the", "red", "cat"], ["le", "chat", "rouge"], [(0, 0), (1, 2), (2, 1)]),
    (["the", "cats"], ["les", "chats"], [(0, 0), (1, 1)]),
    (["the", "dog"], ["le", "chien"], [(0, 0), (1, 1)]),
    (["red", "dog"], ["chienne", "rousse"], [(0, 1), (1, 0)]),
]


def test_dictionary_takes_the_most_frequent_link():
    dictionary = count_links(PAIRS)
    assert dictionary["the"] == "le"  # two links to "le", one to "les"
    assert dictionary["red"] == "rouge"  # one link to each of rouge and rousse
    assert dictionary["dog"] == "chien"
    assert dictionary == count_links(reversed(PAIRS))


def test_dictionary_replaces_unknown_words():
    source = ["Smith", "saw", "the", "dog"]
    words = [None, "vit", "le", None, "<unk>", None]  # this `<unk>` is literal text
    weights = np.zeros((7, 5))
    for i, j in enumerate([0, 1, 2, 3, 3, 3, 4]):
        weights[i, j] = 0.4
    weights[5, 4] = 0.6  # </s> has the largest weight and is skipped: "dog" is next
    copied = ["Smith", "vit", "le", "dog", "<unk>", "dog"]
    assert replace_unknown_words(words, weights, source) == copied
    found = replace_unknown_words(words, weights, source, count_links(PAIRS))
    assert found == ["Smith", "vit", "le", "chien", "<unk>", "chien"]
    assert replace_unknown_words(words, None, source) == words


SOURCE, TARGET = WordVocabulary(["the", "red", "cat"]), WordVocabulary(["le", "chat", "rouge"])
TEXTS = [("the red cat", "le chat rouge"), ("red Smith", "Smith rousse"), ("red", "rouge")]
LINKS = [[0, 2, 1], [1, 0], [0]]  # index of the source word that each target word is linked to


@pytest.fixture
def model():
    return make_network(source=SOURCE, target=TARGET)


def attend(monkeypatch, model, links):
    """Replaces the model's attention: weight 1 on each given link."""

    def forward(target, target_mask, memory):
        weights = torch.zeros(*target.shape, memory.mask.shape[1])
        for place, length in enumerate(memory.mask.sum(1).tolist()):
            row = next(n for n, (text, _) in enumerate(TEXTS) if len(text.split()) + 1 == length)
            for i, j in enumerate(links[row]):
                weights[place, i, j] = 1.0
        return torch.zeros(*target.shape, 2), weights, torch.zeros(target.shape)

    monkeypatch.setattr(model.decoder, "forward", forward)


def learn(model):
    pairs = make_pairs(TEXTS, SOURCE, TARGET)
    trained = make_trained(model, SOURCE, TARGET)
    with torch.no_grad():
        return learn_dictionary(trained, pairs)


def test_dictionary_learns_words_outside_the_shortlist(monkeypatch, model):
    attend(monkeypatch, model, LINKS)
    assert learn(model) == {"the": "le", "cat": "chat", "red": "rouge", "Smith": "Smith"}


def test_dictionary_ignores_links_to_the_end_symbol(monkeypatch, model):
    attend(monkeypatch, model, [[3, 2, 1], [2, 2], [1]])  # the index after the last word is </s>
    assert learn(model) == {"cat": "chat", "red": "rouge"}


def test_dictionary_needs_attention():
    trained = make_trained(make_network(None, SOURCE, TARGET), SOURCE, TARGET)
    with pytest.raises(InputError, match="needs one model with attention"):
        learn_dictionary(trained, make_pairs(TEXTS, SOURCE, TARGET))


def test_dictionary_skips_pairs_of_frequent_words():
    texts = ["the cat", "the the dog", "cat the", "dog Smith", "the", "dog", "cat dog"]
    pairs = make_pairs([(text, "le") for text in texts])
    everything = np.arange(len(texts))
    # A word counts once per pair: pairs 0 and 1 have "the" twice, pairs 0 and 2 have "cat" twice.
    assert pairs_of_rare_words(pairs, everything, 2).tolist() == [0, 1, 2, 3]
    assert pairs_of_rare_words(pairs, everything, 1).tolist() == [0, 1, 3]
    assert pairs_of_rare_words(pairs, everything[::-1], 1).tolist() == [6, 4, 3]
    assert pairs_of_rare_words(pairs, everything[:0], 1).tolist() == []
