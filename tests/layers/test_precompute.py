"""A search sums the products of the annotations: the steps are those that form c_i first."""

from types import SimpleNamespace

import pytest
import torch

from nmt.config import SearchConfig
from nmt.layers import Attention, AttentionOutput, Decoder, DecoderState, GatedUnit
from nmt.layers.decoder import LONGEST
from nmt.layers.intervention import Intervention
from nmt.layers.local_attention import LocalAttention
from nmt.layers.lstm_unit import LstmUnit
from nmt.layers.readout import Readout
from nmt.models.ensemble import _Decoders, _Parts
from nmt.search import beam_search
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
        kept = {part.products is None for part in (each, attended)}
        assert kept == {attended.context is not None}
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


def test_long_sentences_keep_to_contexts():
    net = make()
    for symbols, kept in ((LONGEST, True), (LONGEST + 1, False)):
        words = torch.ones(1, symbols, dtype=torch.long)
        memory = net.encode(words, words.bool())
        assert (net.decoder.precompute(memory).products is not None) == kept


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


class Louder(Readout):
    def forward(self, state, word, context):
        return super().forward(state, word, context * 2)


class OwnStep(Decoder):
    def step(self, state, memory):
        attended = self.context(state.hidden, memory)
        return self.readout(state.hidden, state.word, attended.context / 3), attended


class OwnAdvance(Decoder):
    def advance(self, state, attended, word):
        hidden = self.unit(state.hidden, self.unit.project(state.word), attended.context / 3)
        return DecoderState(hidden, self.embedding(word))


@pytest.mark.parametrize(
    ("part", "own"),
    [
        ("context", Halved),
        ("unit", Forgetful),
        ("readout", Louder),
        ("", OwnStep),
        ("", OwnAdvance),
    ],
)
def test_what_is_defined_otherwise_is_given_the_context(part, own):
    net = make()
    net.decoder.get_submodule(part).__class__ = own
    assert compare(net) is None


def test_only_the_weights_are_read_of_an_attention_whose_weights_are_replaced():
    net = make()
    net.decoder.context.__class__ = Halved
    net.decoder.context = Intervention(net.decoder.context, "shifted")
    assert compare(net) is not None


class Doubled(Attention):
    def values(self, memory):
        return 2 * super().values(memory)


def test_values_of_ones_own_are_those_of_training_too():
    net = make()
    before, _ = net(*batch())
    net.decoder.context.__class__ = Doubled
    after, _ = net(*batch())
    assert not torch.allclose(before, after)
    assert compare(net) is not None


@pytest.mark.parametrize("together", [False, True])
def test_a_search_uses_them(monkeypatch, together):
    net = make(target=13).eval()
    model = net
    if together:
        model = SimpleNamespace(
            decoder=_Decoders([net, net]),
            output=SimpleNamespace(logits=lambda readouts: net.output.logits(readouts[0])),
            encode=lambda *words: _Parts(net.encode(*words) for _ in range(2)),
        )
    seen = []
    step = net.decoder.step
    monkeypatch.setattr(
        net.decoder, "step", lambda *given: seen.append(given[1].products) or step(*given)
    )
    beam_search(model, *batch()[:2], SearchConfig(beam_size=3))
    assert seen
    assert all(products is not None for products in seen)


def test_a_member_without_products_is_given_contexts():
    """A decoder of one's own need not have `precompute`, in an ensemble as alone."""
    net = make(target=13).eval()
    names = ("initial", "step", "advance")
    own = SimpleNamespace(**{name: getattr(net.decoder, name) for name in names})
    memory = net.encode(*batch()[:2])
    one, other = _Decoders([SimpleNamespace(decoder=own), net]).precompute(_Parts([memory, memory]))
    assert one is memory
    assert other.products is not None


def test_sums_of_products_are_in_32_bits():
    """With products in bf16 a search is no further from float32 than with contexts in bf16."""
    net = make(dtype=torch.float32, hidden=64, embedding=32, alignment=48, maxout=24)
    source, mask, target, target_mask = batch()

    def readouts(bf16, products):
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            memory = net.encode(source, mask)
            memory = net.decoder.precompute(memory) if products else memory
            state, found = net.decoder.initial(memory), []
            for i in range(target.shape[1]):
                readout, attended = net.decoder.step(state, memory)
                found.append(readout.float())
                state = net.decoder.advance(state, attended, target[:, i : i + 1])
            return torch.cat(found, 1)[target_mask]

    exact = readouts(False, False)
    errors = []
    for products in (False, True):
        found = readouts(True, products)
        errors.append((found - exact).norm() / exact.norm())
    types = []
    net.decoder.unit.register_forward_pre_hook(lambda _, given: types.append(given[1].dtype))
    readouts(True, True)
    assert set(types) == {torch.float32}
    assert errors[1] < 1.25 * errors[0] < 0.02


def test_a_product_is_made_once_a_position():
    """The contexts of a search are not formed: their products are all that is read of them."""
    net = make()
    memory = net.decoder.precompute(net.encode(*batch()[:2]))
    _, attended = net.decoder.step(net.decoder.initial(memory), memory)
    assert isinstance(attended, AttentionOutput)
    assert attended.context is None
    assert attended.products.shape == (3, 1, memory.products.shape[2])
