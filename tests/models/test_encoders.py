"""Which way the source is read: the encoders that can be chosen, and sentences read backwards."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from nmt.config import Config, ModelConfig
from nmt.data.batch import collate
from nmt.layers.network import reversed_words
from nmt.models import build_model
from nmt.utils.errors import InputError
from tests.layers import reference

SIZES = {"hidden": 5, "embedding": 4, "alignment": 7, "maxout": 3}
ADDITIVE = {"_target_": "nmt.layers.scoring.Additive"}
FORWARD = {"_target_": "nmt.layers.encoder.ForwardEncoder"}
SOURCES = [[4, 5, 9, 2, 0], [6, 0], [7, 8, 3, 0]]
TARGETS = [[3, 0], [7, 8, 9, 0], [2, 5, 0]]


def make(*, reverse=False, attends=True, **model):
    torch.manual_seed(4)
    chosen = {"scoring": ADDITIVE, **SIZES, **model}
    if not attends:
        chosen |= {"_target_": "nmt.models.RNNencdec", "scoring": None, "alignment": None}
    config = Config(model=ModelConfig(init="glorot", **chosen))
    config.data.reverse_source = reverse
    return build_model(config, 11, 13).double()


def test_rnnsearch_over_forward_states():
    """Against NumPy: annotations →h_j of size n, s_0 from →h_Tx."""
    model = make(encoder=FORWARD)
    network = model.network
    assert network.encoder.size == 5
    assert network.decoder.context.U_a.shape == (7, 5)
    parts = {"encoder": network.encoder, "decoder": network.decoder, "output": network.output}
    weights = reference.weights_of(SimpleNamespace(scoring="additive", **parts))
    decoded = model(collate(SOURCES, TARGETS, [0, 1, 2]))
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        annotations, summary = reference.forward_only(weights, source)
        nll, attention, _ = reference.decode(
            weights, "additive", "previous", annotations, summary, target
        )
        np.testing.assert_allclose(decoded.nll[row, : len(target)].detach(), nll, rtol=1e-9)
        found = decoded.weights[row, : len(target), : len(source)]
        np.testing.assert_allclose(found.detach(), attention, rtol=1e-9)


def test_without_the_key_the_encoders_are_those_of_the_paper():
    assert make().network.encoder.directions == 2
    assert make(attends=False).network.encoder.directions == 1


@pytest.mark.parametrize(
    ("attends", "encoder", "said"),
    [
        (
            False,
            "nmt.layers.BidirectionalEncoder",
            "encoder=BidirectionalEncoder: the fixed vector",
        ),
        (
            True,
            "nmt.layers.Readout",
            "model.encoder._target_=nmt.layers.Readout: not a subclass of",
        ),
        (True, "nmt.layers.Encoderr", "model.encoder._target_=nmt.layers.Encoderr: "),
    ],
)
def test_an_encoder_that_does_not_fit_is_refused(attends, encoder, said):
    with pytest.raises(InputError) as refused:
        make(attends=attends, encoder={"_target_": encoder})
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize("attends", [True, False])
@pytest.mark.parametrize("encoder", [None, FORWARD])
def test_a_reversed_source_is_the_text_reversed(encoder, attends):
    """The same likelihood as with the words turned round by hand; the weights in reading order."""
    backwards = [[*reversed(source[:-1]), 0] for source in SOURCES]
    by_hand = make(encoder=encoder, attends=attends)(collate(backwards, TARGETS, [0, 1, 2]))
    found = make(encoder=encoder, attends=attends, reverse=True)(
        collate(SOURCES, TARGETS, [0, 1, 2])
    )
    torch.testing.assert_close(found.nll, by_hand.nll)
    as_read = make(encoder=encoder, attends=attends)(collate(SOURCES, TARGETS, [0, 1, 2]))
    assert (as_read.nll - found.nll).abs().max() > 1e-3
    if not attends:
        return
    for row, source in enumerate(SOURCES):
        words = len(source) - 1
        weights = found.weights[row]
        expected = by_hand.weights[row]
        torch.testing.assert_close(weights[:, :words], expected[:, :words].flip(1))
        torch.testing.assert_close(weights[:, words:], expected[:, words:])


def test_a_reversed_order_is_its_own_inverse():
    mask = torch.arange(6) < torch.tensor([[6], [1], [4]])
    order = reversed_words(mask)
    assert order.tolist() == [[4, 3, 2, 1, 0, 5], [0, 1, 2, 3, 4, 5], [2, 1, 0, 3, 4, 5]]
    assert torch.equal(order.gather(1, order), torch.arange(6).expand(3, 6))
