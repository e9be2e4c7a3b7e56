"""Links of two models, one a direction."""

from __future__ import annotations

import pytest

from nmt.config.validation import load
from nmt.evaluation.alignment import hard_links
from nmt.inference.force_decoding import force_decode, weights_between_words
from nmt.inference.trained import from_checkpoints, read_members
from nmt.run.reverse import model_links
from tests.helpers.models import ENGLISH, FRENCH, small_checkpoint


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    members = read_members(small_checkpoint(tmp_path_factory.mktemp("reverse") / "a.ckpt"))
    config = load(members[0].config.copy(), training=False)
    return from_checkpoints(members, config)


def test_each_pair_has_the_links_it_has_alone(trained):
    pairs = [(ENGLISH[:4], FRENCH[:3]), (ENGLISH[2:3], FRENCH[4:6]), (ENGLISH, FRENCH)]
    found = model_links(trained, pairs, 1.0)
    codec = trained.codec
    for (source, target), links in zip(pairs, found, strict=True):
        ids = codec.source.encode(source), codec.target.encode(target)
        [decoding] = force_decode(trained.model, [ids[0]], [ids[1]])
        between = weights_between_words(decoding.weights, codec, source, decoding.ids)
        assert links == set(hard_links(between, 1.0))
        assert {i for _, i in links} == set(range(len(target)))  # each word has its link
    assert not any(model_links(trained, pairs, 0.0))  # whatever the model was trained with
