"""A search sums products of the annotations: its steps are those that form c_i first."""

import pytest
import torch

from nmt.layers import GatedUnit, LstmUnit, reorder, select
from nmt.layers.decoder import LONGEST
from tests.layers.nets import KINDS, batch, make


@pytest.mark.parametrize("unit", [GatedUnit, LstmUnit])
@pytest.mark.parametrize(("scoring", "state_input"), KINDS)
def test_steps_are_those_of_training(scoring, state_input, unit):
    """Two hypotheses a sentence, which change places, and a sentence that leaves."""
    net = make(scoring, state_input, unit=unit)
    source, mask, *_ = batch()
    memory = net.encode(source, mask)
    starts = [(memory, net.decoder.initial(memory)), net.begin(source, mask)]
    words = torch.randint(2, 13, (3, 3, 2), generator=torch.Generator().manual_seed(2))  # B, T, K
    parents = torch.tensor([[1, 0], [0, 0], [1, 1]])
    rows = torch.tensor([2, 0])
    found = []
    for memory, state in starts:
        state = reorder(state, torch.zeros(3, 2, dtype=torch.long))
        for i in range(2):
            _, attended = net.step(state, memory)
            state = net.advance(*reorder((state, attended), parents), words[:, i])
        _, attended = net.step(state, memory)
        memory, state, attended = select((memory, state, attended), rows)
        state = net.advance(state, attended, words[rows, 2])
        found.append((net.step(state, memory)[0], state.hidden))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-11)


def test_long_sentences_keep_to_contexts():
    net = make()
    for symbols, kept in ((LONGEST, True), (LONGEST + 1, False)):
        words = torch.ones(1, symbols, dtype=torch.long)
        assert (net.begin(words, words.bool())[0].products is not None) == kept
