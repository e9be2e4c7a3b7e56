"""The decoder: against NumPy (`reference.py`), and the steps of a search against a whole sentence."""

import numpy as np
import pytest
import torch

from nmt.layers import reorder, select
from tests.layers import reference
from tests.layers.nets import KINDS, batch, make, sentences


@pytest.mark.parametrize("recurrence", ["plain", "fused"])
@pytest.mark.parametrize(("scoring", "state_input"), KINDS)
def test_whole_model_is_the_papers(scoring, state_input, recurrence):
    net = make(scoring, state_input, recurrence)
    source, source_mask, target, target_mask = batch()
    teacher_forced = net(source, source_mask, target, target_mask)
    nll = teacher_forced.nll
    weights = reference.weights_of(net)
    encode = reference.forward_only if scoring == "none" else reference.bidirectional
    pairs = zip(sentences(source, source_mask), sentences(target, target_mask), strict=True)
    for b, (words, translation) in enumerate(pairs):
        annotations, summary = encode(weights, words)
        expected, attention, log_z = reference.decode(
            weights, scoring, state_input, annotations, summary, translation
        )
        length = len(translation)
        np.testing.assert_allclose(nll[b, :length].detach(), expected, rtol=1e-10)
        assert not nll[b, length:].any()
        if scoring == "none":
            assert teacher_forced.weights is None
            assert teacher_forced.log_normaliser is None
            continue
        found = teacher_forced.weights[b].detach()
        np.testing.assert_allclose(found[:length, : len(words)], attention, rtol=1e-10)
        assert not found[:, len(words) :].any()
        assert not found[length:].any()
        np.testing.assert_allclose(
            teacher_forced.log_normaliser[b, :length].detach(), log_z, atol=1e-10
        )


@pytest.mark.parametrize("recurrence", ["plain", "fused"])
@pytest.mark.parametrize(("scoring", "state_input"), KINDS)
def test_steps_make_a_sentence(scoring, state_input, recurrence):
    net = make(scoring, state_input, recurrence)
    source, source_mask, target, target_mask = batch()
    memory = net.encode(source, source_mask)
    teacher_forced = net.decoder(target, target_mask, memory)
    state = net.decoder.initial(memory)
    assert not state.word.any()
    for i in range(target.shape[1]):
        readout, attended = net.decoder.step(state, memory)
        torch.testing.assert_close(
            readout[:, 0], teacher_forced.readout[:, i], rtol=1e-11, atol=1e-11
        )
        real = target_mask[:, i]
        if scoring != "none":
            torch.testing.assert_close(attended.weights[real, 0], teacher_forced.weights[real, i])
            torch.testing.assert_close(
                attended.log_normaliser[real, 0], teacher_forced.log_normaliser[real, i]
            )
        state = net.decoder.advance(state, attended, target[:, i : i + 1])


@pytest.mark.parametrize(("scoring", "state_input"), KINDS)
def test_beams_are_separate_hypotheses(scoring, state_input):
    """K prefixes against one copy of the memory give what each gives alone, also once reordered."""
    net = make(scoring, state_input)
    source, source_mask, *_ = batch()
    memory = net.encode(source, source_mask)
    words = torch.randint(2, 13, (3, 2, 4), generator=torch.Generator().manual_seed(2))  # B, T, K
    parents = torch.tensor([[3, 0, 0], [1, 1, 2], [0, 3, 2]])

    state = net.decoder.initial(memory)
    state = reorder(state, torch.zeros(3, 4, dtype=torch.long))
    _, attended = net.decoder.step(state, memory)
    state = net.decoder.advance(state, attended, words[:, 0])
    _, attended = net.decoder.step(state, memory)
    state, attended = reorder(state, parents), reorder(attended, parents)
    state = net.decoder.advance(state, attended, words[:, 1, :3])
    readout, attended = net.decoder.step(state, memory)
    assert readout.shape == (3, 3, 3)

    for b in range(3):
        for k in range(3):
            prefix = torch.stack([words[b, 0, parents[b, k]], words[b, 1, k], torch.tensor(0)])
            one = select(memory, torch.tensor([b]))
            alone = net.decoder(prefix.unsqueeze(0), torch.ones(1, 3, dtype=torch.bool), one)
            torch.testing.assert_close(readout[b, k], alone.readout[0, 2])
            if scoring != "none":
                torch.testing.assert_close(attended.weights[b, k], alone.weights[0, 2])


@pytest.mark.parametrize("scoring", ["additive", "none"])
def test_sentences_leave_the_batch(scoring):
    net = make(scoring)
    source, source_mask, *_ = batch()
    memory = net.encode(source, source_mask)
    state = net.decoder.initial(memory)
    readout, attended = net.decoder.step(state, memory)
    for rows in (torch.tensor([2, 0]), torch.tensor([1])):
        kept = net.decoder.step(select(state, rows), select(memory, rows))
        torch.testing.assert_close(kept[0], readout[rows])
        torch.testing.assert_close(kept[1].context, select(attended, rows).context)


@pytest.mark.parametrize("recurrence", ["plain", "fused"])
def test_orders_of_state_input_differ_by_one_shift(recurrence):
    """The first readout is the same, the second is not."""
    words = batch()
    previous, current = (
        make("dot", order, recurrence)(*words).readout for order in ("previous", "current")
    )
    torch.testing.assert_close(previous[:, 0], current[:, 0])
    assert (previous[:, 1] - current[:, 1]).abs().max() > 1e-3


@pytest.mark.parametrize("recurrence", ["plain", "fused"])
def test_dropout_only_in_training(recurrence):
    net = make(recurrence=recurrence)
    for module in net.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.5
    words = batch()
    net.eval()
    torch.testing.assert_close(net(*words).nll, make(recurrence=recurrence)(*words).nll)
    net.train()
    readout = net(*words).readout
    assert 0.25 < (readout == 0).double().mean() < 0.75
