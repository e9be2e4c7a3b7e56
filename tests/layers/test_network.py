"""Whole networks: compared with `reference.py`, with and without padding, and in the steps of a search."""

import numpy as np
import pytest
import torch

from nmt.layers import LocalAttention, LstmUnit, reorder, select
from nmt.layers.network import reversed_words
from tests.layers import reference
from tests.layers.nets import KINDS, batch, gradients, make, sentences

RECURRENCES = pytest.mark.parametrize("recurrence", ["plain", "fused"])
OTHERS = [{"unit": LstmUnit}, {"unit": LstmUnit, "scoring": "none"}, {"kind": LocalAttention}]


@RECURRENCES
@pytest.mark.parametrize(("scoring", "state_input"), KINDS)
def test_network_equals_the_equations_in_numpy(scoring, state_input, recurrence):
    net = make(scoring, state_input, recurrence)
    source, source_mask, target, target_mask = batch()
    annotations, summary = net.encoder(source, source_mask)
    likelihood = net(source, source_mask, target, target_mask)
    weights = reference.weights_of(net)
    encode = reference.forward_only if scoring == "none" else reference.bidirectional
    pairs = zip(sentences(source, source_mask), sentences(target, target_mask), strict=True)
    for b, (words, translation) in enumerate(pairs):
        expected, last = encode(weights, words)
        np.testing.assert_allclose(annotations[b, : len(words)].detach(), expected, atol=1e-12)
        np.testing.assert_allclose(summary[b].detach(), last, atol=1e-12)
        nll, attention, log_z = reference.decode(
            weights, scoring, state_input, expected, last, translation
        )
        length = len(translation)
        np.testing.assert_allclose(likelihood.nll[b, :length].detach(), nll, rtol=1e-10)
        assert not likelihood.nll[b, length:].any()
        if scoring == "none":
            assert likelihood.weights is likelihood.log_normaliser is None
            continue
        found = likelihood.weights[b].detach()
        np.testing.assert_allclose(found[:length, : len(words)], attention, rtol=1e-10)
        assert not found[:, len(words) :].any()
        assert not found[length:].any()
        found = likelihood.log_normaliser[b, :length].detach()
        np.testing.assert_allclose(found, log_z, atol=1e-10)


@RECURRENCES
@pytest.mark.parametrize("options", [{"scoring": kind} for kind in ("additive", "none")] + OTHERS)
def test_sentence_alone_equals_sentence_in_a_batch(options, recurrence):
    net = make(recurrence=recurrence, **options)
    whole = batch()
    likelihood = net(*whole)
    likelihood.nll.sum().backward()
    together = gradients(net)
    summed = {name: torch.zeros_like(gradient) for name, gradient in together.items()}
    for b in range(3):
        s, t = int(whole[1][b].sum()), int(whole[3][b].sum())
        net.zero_grad()
        alone = net(*(part[b : b + 1, :n] for part, n in zip(whole, (s, s, t, t), strict=True)))
        torch.testing.assert_close(alone.nll[0], likelihood.nll[b, :t], rtol=1e-12, atol=1e-12)
        if alone.weights is not None:
            torch.testing.assert_close(alone.weights[0], likelihood.weights[b, :t, :s])
        alone.nll.sum().backward()
        for name, gradient in gradients(net).items():
            summed[name] += 0 if gradient is None else gradient
    torch.testing.assert_close(summed, together, rtol=1e-10, atol=1e-12)


@RECURRENCES
def test_padding_symbols_have_no_effect(recurrence):
    net = make(recurrence=recurrence)
    source, source_mask, target, target_mask = batch()
    nll = net(source, source_mask, target, target_mask).nll
    source = source.masked_fill(~source_mask, 7)
    target = target.masked_fill(~target_mask, 9)
    other = net(source, source_mask, target, target_mask).nll
    assert torch.equal(nll, other)
    other.sum().backward()
    used = torch.zeros(net.encoder.embedding.num_embeddings, dtype=torch.bool)
    used[source[source_mask]] = True
    assert not net.encoder.embedding.weight.grad[~used].any()


@RECURRENCES
@pytest.mark.parametrize("options", [{"scoring": s, "state_input": i} for s, i in KINDS] + OTHERS)
def test_search_steps_equal_training(options, recurrence):
    """Steps of a search give the same logits as training, also after reordering hypotheses and dropping a sentence."""
    net = make(recurrence=recurrence, **options)
    source, mask, *_ = batch()
    words = torch.randint(2, 13, (3, 2, 4), generator=torch.Generator().manual_seed(2))  # B, T, K
    parents = torch.tensor([[3, 0, 0], [1, 1, 2], [0, 3, 2]])
    sentences = torch.arange(3).unsqueeze(1)
    rows = torch.tensor([2, 0])
    memory, state = net.begin(source, mask)
    assert not state.embedding.any()
    state = reorder(state, sentences.expand(3, 4))
    _, attended = net.step(state, memory)
    state = net.advance(state, attended, words[:, 0])
    _, attended = net.step(state, memory)
    state = net.advance(*reorder((state, attended), 4 * sentences + parents), words[:, 1, :3])
    memory, state = select((memory, state), rows)
    logits, attended = net.step(state, memory)
    assert logits.shape == (2, 3, 13)
    for place, b in enumerate(rows.tolist()):
        for k in range(3):
            prefix = torch.stack([words[b, 0, parents[b, k]], words[b, 1, k], torch.tensor(0)])
            pair = source[b : b + 1], mask[b : b + 1], prefix[None], torch.ones(1, 3).bool()
            alone = net(*pair)
            torch.testing.assert_close(logits[place, k], net.logits(alone.readout)[0, 2])
            if alone.weights is not None:
                torch.testing.assert_close(attended.weights[place, k], alone.weights[0, 2])


def test_bf16_products_are_summed_in_float32():
    """The rounding errors of bf16 must be about the same in a fused and a plain network."""
    options = {"dtype": torch.float32, "hidden": 64, "embedding": 32, "alignment": 48, "maxout": 24}
    nets = {name: make(recurrence=name, **options) for name in ("plain", "fused")}
    source, mask, target, target_mask = batch()

    def logits(net, bf16):
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            (memory, state), found = net.begin(source, mask), []
            for i in range(target.shape[1]):
                each, attended = net.step(state, memory)
                found.append(each.float())
                state = net.advance(state, attended, target[:, i : i + 1])
            return torch.cat(found, 1)[target_mask]

    exact = logits(nets["plain"], False)
    plain, fused = ((logits(net, True) - exact).norm() / exact.norm() for net in nets.values())
    assert fused < 1.25 * plain < 0.03


@RECURRENCES
def test_dropout_only_in_training(recurrence):
    net = make(recurrence=recurrence)
    for module in net.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.5
    net.eval()
    torch.testing.assert_close(net(*batch()).nll, make(recurrence=recurrence)(*batch()).nll)
    net.train()
    assert 0.25 < (net(*batch()).readout == 0).double().mean() < 0.75


@pytest.mark.parametrize("scoring", ["additive", "none"])
def test_reverse_source_equals_a_reversed_text(scoring):
    """`reverse_source` reverses the source before the encoder. Attention weights are in the original word order."""
    net = make(scoring)
    source, source_mask, *targets = batch()
    order = reversed_words(source_mask)
    assert order[2].tolist() == [2, 1, 0, 3, 4, 5]
    by_hand = net(source.gather(1, order), source_mask, *targets)
    net.reverse_source = True
    found = net(source, source_mask, *targets)
    torch.testing.assert_close(found.nll, by_hand.nll)
    if scoring != "none":
        expected = by_hand.weights.gather(2, order.unsqueeze(1).expand_as(by_hand.weights))
        torch.testing.assert_close(found.weights, expected)
