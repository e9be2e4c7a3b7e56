import pytest

from nmt.inference.unknown_words import learn_dictionary, replace_unknown

PAIRS = [
    (["the", "red", "cat"], ["le", "chat", "rouge"], [(0, 0), (1, 2), (2, 1)]),
    (["the", "cats"], ["les", "chats"], [(0, 0), (1, 1)]),
    (["the", "dog"], ["le", "chien"], [(0, 0), (1, 1)]),
    (["red", "dog"], ["chienne", "rousse"], [(0, 1), (1, 0)]),
]


def test_most_frequent_link_wins_and_ties_go_to_the_first_in_order():
    dictionary = learn_dictionary(PAIRS)
    assert dictionary["the"] == "le"  # twice, against once
    assert dictionary["red"] == "rouge"  # rouge and rousse once each
    assert dictionary["dog"] == "chien"
    assert dictionary == learn_dictionary(reversed(PAIRS))


def test_replacement():
    source = ["Smith", "saw", "the", "dog"]
    hypothesis = ["<unk>", "vit", "le", "<unk>", "<unk>"]
    unknown = [True, False, False, True, False]  # the last is a word of the text
    attended = [0, 1, 2, 3, 3]
    assert replace_unknown(hypothesis, unknown, attended, source, "none") == hypothesis
    assert replace_unknown(hypothesis, unknown, attended, source, "copy") == [
        *("Smith", "vit", "le", "dog", "<unk>")
    ]
    dictionary = learn_dictionary(PAIRS)
    assert replace_unknown(hypothesis, unknown, attended, source, "dictionary", dictionary) == [
        *("Smith", "vit", "le", "chien", "<unk>")
    ]
    assert replace_unknown(["<unk>"], [True], [-1], [], "copy") == ["<unk>"]


def test_mode_must_be_known():
    for mode in ("dictionary", "translate"):
        with pytest.raises(ValueError, match=f"mode={mode}"):
            replace_unknown(["a"], [True], [0], ["b"], mode)
