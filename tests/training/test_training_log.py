"""What the log shows of a training run."""

from __future__ import annotations

from nmt.training.callbacks import choose_short
from tests.inference.small import make_pairs


def test_the_sentence_to_show_is_short_and_has_known_words():
    known = ["the cat", "the red cat sees the dog the cat", "the cat sees the dog"]
    unknown = ["the big cat sees the dog the cat", "the cat sees the dog the cat"]
    pairs = make_pairs([(unknown[0], "le"), (known[0], "le"), (unknown[1], "la"), (known[2], "le")])
    assert choose_short(pairs) == 3
    pairs = make_pairs([(known[2], "le"), (known[1], "le")])
    assert choose_short(pairs) == 1
    assert choose_short(make_pairs([("a b", "c")])) == 0
