"""Fused networks compared with plain networks in every precision, and the modules that `fuse` replaces."""

import copy
import logging
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.autograd import gradcheck

from nmt.fused import decoder, fuse, plain_class, steps
from nmt.fused.backend import Backend
from nmt.fused.decoder import FusedDecoder, ProductMemory
from nmt.fused.encoder import FusedBidirectionalEncoder
from nmt.fused.loop import run_units, run_with_attention
from nmt.fused.output import FusedOutput
from nmt.layers import (
    BidirectionalEncoder,
    Decoder,
    LocalAttention,
    LstmUnit,
    Memory,
    Output,
    select,
)
from tests.layers.nets import KINDS, SCORINGS, SIZES, batch, gradients, leaf, make

LENGTHS = [((6, 1, 4), (2, 5, 3)), ((1,), (1,)), ((3, 3), (1, 2)), ((2, 9), (7, 4))]
LARGER = {"hidden": 48, "embedding": 24, "alignment": 40, "maxout": 16, "source": 60, "target": 70}


def both(scoring, state_input="previous", lengths=LENGTHS[0], *, autocast=None, **options):
    """Returns (likelihood, gradients) of the plain and of the fused network.

    Each sentence has a different weight in the loss. If `autocast` is given, a bias makes the first unit of
    each maxout pair much larger, so that rounding does not swap the two.
    """
    results = []
    for recurrence in ("plain", "fused"):
        net = make(scoring, state_input, recurrence, **options)
        if autocast is not None:
            net.decoder.readout.bias.data[0::2] += 3
        with torch.autocast("cpu", torch.bfloat16, enabled=bool(autocast)):
            found = net(*batch(*lengths, sizes=options))
        weight = torch.arange(1, len(found.nll) + 1).unsqueeze(1) / len(found.nll)
        (found.nll * weight).sum().backward()
        grads = {  # an unused weight has gradient None (plain) or 0 (fused)
            name: torch.zeros_like(p) if p.grad is None else p.grad
            for name, p in net.named_parameters()
        }
        results.append((found, grads))
    return results


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("scoring", ["additive", "none"])
def test_padded_sizes_give_the_same_numbers(scoring, autocast, monkeypatch):
    """Sizes are padded to multiples of 11. No size in `LARGER` is a multiple of 11."""
    options = {
        "autocast": autocast,
        "dtype": torch.float32 if autocast else torch.float64,
        **LARGER,
    }
    _, expected = both(scoring, **options)
    padded = []
    monkeypatch.setattr(steps, "size_multiple", lambda device: padded.append(device) or 11)
    _, found = both(scoring, **options)
    assert padded
    tolerance = {"rtol": 0.05, "atol": 0.01} if autocast else {"rtol": 1e-10, "atol": 1e-11}
    torch.testing.assert_close(found[0].nll, expected[0].nll, **tolerance)
    torch.testing.assert_close(found[1], expected[1], **tolerance)


@pytest.mark.parametrize("multiple", [1, 11])
def test_padded_vocabulary_adds_no_probability(multiple, monkeypatch):
    plain, fused = (make("additive", recurrence=each, **LARGER) for each in ("plain", "fused"))
    words = batch(*LENGTHS[0], sizes=LARGER)
    monkeypatch.setattr(steps, "size_multiple", lambda device: multiple)
    losses = [net.loss(*words) for net in (plain, fused)]
    for loss in losses:
        loss.backward()
    torch.testing.assert_close(losses[1], losses[0])
    torch.testing.assert_close(gradients(fused), gradients(plain))
    with torch.no_grad():
        torch.testing.assert_close(fused(*words).nll, plain(*words).nll)


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize(("scoring", "state_input"), KINDS)
def test_fused_equals_plain_in_float64(scoring, state_input, lengths):
    (plain, grads), (fused, fused_grads) = both(scoring, state_input, lengths)
    torch.testing.assert_close(fused.nll, plain.nll, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(fused_grads, grads, rtol=1e-10, atol=1e-11)
    torch.testing.assert_close(fused.weights, plain.weights, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(fused.log_normaliser, plain.log_normaliser)


@pytest.mark.parametrize("scoring", ["additive", "scaled_dot", "none"])
def test_fused_is_close_to_plain_in_float32_and_bf16(scoring):
    """In float32, fused gradients differ from plain ones by at most 1e-4 of their norm.

    The bf16 NLLs of both networks differ from float32 by at most 0.1 nats, and the gradients by 6 % of their norm.
    """
    lengths = ((9, 12, 3), (8, 5, 11))
    options = {"dtype": torch.float32, **LARGER}
    exact, fused = both(scoring, "previous", lengths, autocast=False, **options)
    mixed = both(scoring, "previous", lengths, autocast=True, **options)
    for (likelihood, grads), nll_limit, share in (
        (fused, 1e-4, 1e-4), *((found, 0.1, 0.06) for found in mixed)
    ):  # fmt: skip
        assert (likelihood.nll - exact[0].nll).abs().max() < nll_limit
        for name, gradient in exact[1].items():
            assert grads[name].dtype == torch.float32
            assert (grads[name] - gradient).norm() <= share * gradient.norm(), name


def test_gradcheck_of_the_units():
    torch.manual_seed(0)
    real = torch.ones(2, 3, 2, 1, dtype=torch.float64)
    real[0, 2, 1], real[1, 0, 1] = 0, 0
    inputs = (leaf(2, 3, 2, 9), leaf(2, 2, 3), leaf(2, 6, 3), leaf(2, 3, 3))
    assert gradcheck(lambda *x: run_units(Backend(), *x, real), inputs)


@pytest.mark.parametrize("scoring", ["additive", "dot", "scaled_dot"])
def test_gradcheck_of_the_decoder(scoring):
    torch.manual_seed(0)
    h, a, n = 2, 3, 4
    module = SCORINGS[scoring](n, n).double()
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    mask = torch.tensor([[True, True, True], [True, True, False]])

    def run(words, initial, annotations, keys, W_a, U_gates, U, C, *_):
        memory = Memory(annotations, keys, mask, initial)
        unit = SimpleNamespace(U_gates=U_gates, U=U, C=C)
        return run_with_attention(Backend(), words, initial, memory, W_a, module, unit)[:2]

    inputs = (
        leaf(2, 2, 3 * h), leaf(2, h), leaf(2, 3, a), leaf(2, 3, n),
        leaf(n, h), leaf(2 * h, h), leaf(h, h), leaf(3 * h, a),
    )  # fmt: skip
    # `run` ignores the last arguments, because it reads these parameters from the module.
    assert gradcheck(run, (*inputs, *module.parameters()))


@pytest.mark.parametrize("frozen", ["encoder", "decoder.context", "decoder.unit", "decoder"])
def test_frozen_parts_do_not_change_other_gradients(frozen):
    free = both("additive")[1][1]
    net = make("additive", recurrence="fused")
    net.get_submodule(frozen).requires_grad_(False)
    nll = net(*batch()).nll
    (nll * torch.tensor([[1], [2], [3]]) / 3).sum().backward()
    for name, gradient in gradients(net).items():
        if name.startswith(frozen + "."):
            assert gradient is None
        else:
            torch.testing.assert_close(gradient, free[name])


def test_saved_memory_per_step_is_below_source_times_alignment():
    """The tensors saved per target word have less than a quarter of batch x source x alignment entries."""
    b = 4
    s = 40
    n = SIZES["alignment"] * 30
    kept = []
    for t in (10, 20):
        net = make(recurrence="fused", alignment=n)
        saved = {}

        def pack(tensor, saved=saved):
            saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            net(*batch((s,) * b, (t,) * b))
        kept.append(sum(saved.values()))
    assert (kept[1] - kept[0]) / 10 < b * s * n * 8 / 4


def test_fuse_replaces_known_layers_and_logs_others(caplog):
    """`fuse` keeps parameters and their names. It logs the modules that it cannot replace."""
    caplog.set_level(logging.INFO, "nmt")
    plain, fused = make(), make(recurrence="fused")
    assert type(fused.encoder) is FusedBidirectionalEncoder
    assert (type(fused.decoder), type(fused.output)) == (FusedDecoder, FusedOutput)
    assert plain_class(fused.decoder) is plain_class(plain.decoder) is Decoder
    torch.testing.assert_close(fused.state_dict(), plain.state_dict())
    assert not caplog.messages
    lstm = make(recurrence="fused", unit=LstmUnit)
    assert (type(lstm.encoder), type(lstm.decoder)) == (BidirectionalEncoder, Decoder)
    assert type(lstm.output) is FusedOutput
    for other in ({"scoring": "cosine"}, {"kind": LocalAttention}):
        net = make(recurrence="fused", **other)
        assert (type(net.encoder), type(net.decoder)) == (FusedBidirectionalEncoder, Decoder)
    assert ["encoder and" in line for line in caplog.messages] == [True, False, False]
    assert all("the decoder" in line for line in caplog.messages)
    assert type(copy.deepcopy(fused).decoder) is FusedDecoder

    class Own(Output):
        """A subclass, which `fuse` does not replace."""

    plain.output.__class__ = Own
    assert type(fuse(plain).output) is Own


@pytest.mark.parametrize("scoring", ["additive", "none"])
def test_search_stores_products_instead_of_annotations(scoring, monkeypatch):
    """Products have 3H + 2M = 21 entries per position (H hidden, M maxout). A long source uses annotations."""
    monkeypatch.setattr(decoder, "MAX_PRODUCT_SYMBOLS", 6)
    net = make(scoring, recurrence="fused")
    readouts = []
    source, mask, *_ = batch((3, 7))
    for length in (6, 7):
        memory, state = net.begin(source[:1, :length], mask[:1, :length])
        readouts.append(net.step(state, memory)[0])
        products = length == 6 or scoring == "none"
        assert type(memory) is (ProductMemory if products else Memory)
        assert not products or memory.products.shape[-1] == 21
        assert type(select(memory, torch.tensor([0]))) is type(memory)
    torch.testing.assert_close(*readouts)


def test_attention_scores_without_gradients_are_the_same():
    net = make(recurrence="fused", dtype=torch.float32)
    memory = net.encode(*batch()[:2])
    states = torch.randn(3, 4, 5)
    expected = net.decoder.context.scores(states, memory.keys)
    with torch.no_grad():
        torch.testing.assert_close(net.decoder.context.scores(states, memory.keys), expected)
