"""The step interface of a search against the whole sentence of training."""

import pytest
import torch

from tests.layers.nets import KINDS, batch, make


@pytest.mark.parametrize("recurrence", ["plain", "fused"])
@pytest.mark.parametrize(("scoring", "state_input"), KINDS)
def test_steps_make_a_sentence(scoring, state_input, recurrence):
    net = make(scoring, state_input, recurrence)
    source, source_mask, target, target_mask = batch()
    memory = net.memory(source, source_mask)
    forced = net.decoder(target, target_mask, memory)
    state = net.decoder.initial(memory)
    assert not state.word.any()
    for i in range(target.shape[1]):
        readout, reading = net.decoder.step(state, memory)
        torch.testing.assert_close(readout[:, 0], forced.readout[:, i], rtol=1e-11, atol=1e-11)
        real = target_mask[:, i]
        if scoring != "none":
            torch.testing.assert_close(reading.weights[real, 0], forced.weights[real, i])
            torch.testing.assert_close(
                reading.log_normaliser[real, 0], forced.log_normaliser[real, i]
            )
        state = net.decoder.advance(state, reading, target[:, i : i + 1])


@pytest.mark.parametrize(("scoring", "state_input"), KINDS)
def test_beams_are_separate_hypotheses(scoring, state_input):
    """K prefixes against one copy of the memory give what each gives alone, also once reordered."""
    net = make(scoring, state_input)
    source, source_mask, *_ = batch()
    memory = net.memory(source, source_mask)
    words = torch.randint(2, 13, (3, 2, 4), generator=torch.Generator().manual_seed(2))  # B, T, K
    parents = torch.tensor([[3, 0, 0], [1, 1, 2], [0, 3, 2]])

    state = net.decoder.initial(memory)
    state = state.reorder(torch.zeros(3, 4, dtype=torch.long))
    _, reading = net.decoder.step(state, memory)
    state = net.decoder.advance(state, reading, words[:, 0])
    _, reading = net.decoder.step(state, memory)
    state, reading = state.reorder(parents), reading.reorder(parents)
    state = net.decoder.advance(state, reading, words[:, 1, :3])
    readout, reading = net.decoder.step(state, memory)
    assert readout.shape == (3, 3, 3)

    for b in range(3):
        for k in range(3):
            prefix = torch.stack([words[b, 0, parents[b, k]], words[b, 1, k], torch.tensor(0)])
            one = memory.select(torch.tensor([b]))
            alone = net.decoder(prefix.unsqueeze(0), torch.ones(1, 3, dtype=torch.bool), one)
            torch.testing.assert_close(readout[b, k], alone.readout[0, 2])
            if scoring != "none":
                torch.testing.assert_close(reading.weights[b, k], alone.weights[0, 2])


@pytest.mark.parametrize("scoring", ["additive", "none"])
def test_sentences_leave_the_batch(scoring):
    net = make(scoring)
    source, source_mask, *_ = batch()
    memory = net.memory(source, source_mask)
    state = net.decoder.initial(memory)
    readout, reading = net.decoder.step(state, memory)
    for rows in (torch.tensor([2, 0]), torch.tensor([True, False, True])):
        kept = net.decoder.step(state.select(rows), memory.select(rows))
        torch.testing.assert_close(kept[0], readout[rows])
        torch.testing.assert_close(kept[1].context, reading.select(rows).context)


def test_energy_is_log_weight_plus_log_normaliser():
    net = make()
    source, source_mask, *_ = batch()
    memory = net.memory(source, source_mask)
    state = net.decoder.initial(memory)
    _, reading = net.decoder.step(state, memory)
    attention = net.decoder.context
    energy = attention.scoring(state.hidden @ attention.W_a.t(), memory.keys)
    found = reading.weights.log() + reading.log_normaliser.unsqueeze(2)
    torch.testing.assert_close(found[:, 0][source_mask], energy[:, 0][source_mask])


@pytest.mark.parametrize("recurrence", ["plain", "fused"])
def test_orders_of_state_input_differ_by_one_shift(recurrence):
    """The first readout is the same, the second is not."""
    words = batch()
    previous, current = (
        make("dot", kind, recurrence)(*words)[1].readout for kind in ("previous", "current")
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
    torch.testing.assert_close(net(*words)[0], make(recurrence=recurrence)(*words)[0])
    net.train()
    readout = net(*words)[1].readout
    assert 0.25 < (readout == 0).double().mean() < 0.75
