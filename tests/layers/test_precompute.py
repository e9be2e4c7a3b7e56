"""A search sums the products of the annotations: the steps are those that form c_i first."""

import pytest
import torch

from nmt.layers import Attention, AttentionOutput, GatedUnit
from nmt.layers.intervention import Intervention
from nmt.layers.local_attention import LocalAttention
from nmt.layers.lstm_unit import LstmUnit
from tests.layers.nets import KINDS, SIZES, batch, make


def compare(net):
    """Two hypotheses a sentence, which change places, and a sentence that leaves."""
    source, mask, *_ = batch()
    memory = net.encode(source, mask)
    products = net.decoder.precompute(memory)
    words = torch.randint(2, 13, (3, 3, 2), generator=torch.Generator().manual_seed(2))  # B, T, K
    parents = torch.tensor([[1, 0], [0, 0], [1, 1]])
    rows = torch.tensor([2, 0])
    found = []
    for each in (memory, products):
        state = net.decoder.initial(each)
        state = state.reorder(torch.zeros(3, 2, dtype=torch.long))
        for i in range(2):
            _, attended = net.decoder.step(state, each)
            state = net.decoder.advance(
                state.reorder(parents), attended.reorder(parents), words[:, i]
            )
        _, attended = net.decoder.step(state, each)
        each, state, attended = (part.select(rows) for part in (each, state, attended))
        state = net.decoder.advance(state, attended, words[rows, 2])
        found.append((net.decoder.step(state, each)[0], state.hidden))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-11)
    return products.products


@pytest.mark.parametrize("unit", [GatedUnit, LstmUnit])
@pytest.mark.parametrize(("scoring", "state_input"), KINDS)
def test_steps_are_the_same(scoring, state_input, unit):
    products = compare(make(scoring, state_input, unit=unit))
    rows = (3 if unit is GatedUnit else 4) * SIZES["hidden"] + 2 * SIZES["maxout"]
    assert products.shape == (3, 1 if scoring == "none" else 6, rows)


@pytest.mark.parametrize("kind", ["argmax", "uniform"])
def test_with_other_weights(kind):
    net = make()
    net.decoder.context = Intervention(net.decoder.context, kind)
    assert compare(net) is not None


def test_with_a_window():
    net = make()
    hidden, annotation = SIZES["hidden"], 2 * SIZES["hidden"]
    torch.manual_seed(4)
    context = LocalAttention(
        hidden, annotation, SIZES["alignment"], net.decoder.context.scoring, window=2
    )
    net.decoder.context = context.double()
    assert compare(net) is not None


class Halved(Attention):
    def forward(self, state, memory):
        attended = super().forward(state, memory)
        return attended._replace(context=attended.context / 2)


class Forgetful(GatedUnit):
    def forward(self, state, projected, context=None, real=None):
        return super().forward(state / 2, projected, context * 2, real)


def test_a_forward_of_ones_own_is_given_its_context():
    net = make()
    net.decoder.context.__class__ = Halved
    assert compare(net) is None
    net.decoder.context = Intervention(net.decoder.context, "shifted")
    assert compare(net) is not None
    net = make()
    net.decoder.unit.__class__ = Forgetful
    assert compare(net) is None


def test_a_product_is_made_once_a_position():
    """The contexts of a search are not formed: their products are all that is read of them."""
    net = make()
    memory = net.decoder.precompute(net.encode(*batch()[:2]))
    _, attended = net.decoder.step(net.decoder.initial(memory), memory)
    assert isinstance(attended, AttentionOutput)
    assert attended.context is None
    assert attended.products.shape == (3, 1, memory.products.shape[2])
