"""Weights of attention that are replaced: what comes out, and that it belongs to a sentence alone."""

import pytest
import torch

from nmt.config.evaluation import INTERVENTIONS as CONFIGURED
from nmt.layers import Intervention
from nmt.layers.intervention import INTERVENTIONS, permuted, shifted
from tests.layers.nets import batch, make, make_local, sentences


def attended(kind, top_k=2, words=None, net=None):
    """(memory, output as trained, output with the intervention) of a step for two states."""
    net = net or make()
    source, mask, *_ = words or batch()
    memory = net.encode(source, mask)
    states = net.decoder.initial(memory).hidden
    states = torch.cat([states, -states], 1)
    context = net.decoder.context
    return memory, context(states, memory), Intervention(context, kind, top_k)(states, memory)


def test_uniform_is_the_mean_of_the_annotations():
    memory, trained, found = attended("uniform")
    for b, real in enumerate(memory.mask):
        mean = memory.annotations[b, real].mean(0)
        torch.testing.assert_close(found.context[b], mean.expand(2, -1))
    assert (trained.context - found.context).abs().max() > 1e-3
    assert torch.equal(found.log_normaliser, trained.log_normaliser)


@pytest.mark.parametrize(("kind", "kept"), [("argmax", 1), ("top_k", 2)])
def test_the_largest_weights_alone(kind, kept):
    memory, trained, found = attended(kind)
    for b, length in enumerate(memory.mask.sum(1).tolist()):
        for before, after in zip(trained.weights[b], found.weights[b], strict=True):
            largest = before.topk(min(kept, length)).indices
            expected = torch.zeros_like(before)
            expected[largest] = before[largest] / before[largest].sum()
            torch.testing.assert_close(after, expected)


def test_as_many_as_there_are_change_nothing():
    _, trained, found = attended("top_k", top_k=50)
    torch.testing.assert_close(found.weights, trained.weights)


@pytest.mark.parametrize("kind", INTERVENTIONS)
def test_contexts_keep_the_scale_that_the_model_was_trained_with(kind):
    """In a window the weights of a step sum to less than 1, and the weights in their place to as much."""
    memory, trained, found = attended(kind, net=make_local())
    total = trained.weights.sum(2)
    assert ((total > 0.1) & (total < 0.99)).all()
    torch.testing.assert_close(found.weights.sum(2), total)
    torch.testing.assert_close(found.context, found.weights @ memory.annotations)
    if kind == "uniform":
        for b, real in enumerate(memory.mask):
            shares = found.weights[b] * real.sum() / total[b, :, None]
            torch.testing.assert_close(shares, real.double().expand(2, -1))


@pytest.mark.parametrize("kind", INTERVENTIONS)
def test_a_step_that_attends_to_nothing_goes_on_doing_so(kind):
    net = make()
    memory = net.encode(*batch()[:2])
    weights = torch.zeros(3, 2, memory.mask.shape[1]).double()
    assert not Intervention(net.decoder.context, kind, 2).changed(weights, memory.mask).any()


@pytest.mark.parametrize("kind", ["permuted", "shifted"])
def test_weights_in_another_order(kind):
    memory, trained, found = attended(kind)
    for b, length in enumerate(memory.mask.sum(1).tolist()):
        before, after = trained.weights[b], found.weights[b]
        torch.testing.assert_close(after.sort(1).values, before.sort(1).values)
        assert not after[:, length:].any()
        if kind == "shifted":
            torch.testing.assert_close(after[:, :length], before[:, :length].roll(1, 1))
        elif length > 3:
            assert (after - before).abs().max() > 1e-3
        torch.testing.assert_close(
            found.context[b], after[:, :length] @ memory.annotations[b, :length]
        )


def test_the_order_depends_on_the_length_alone():
    alone, padded = (torch.arange(size) < 5 for size in (5, 40))
    assert permuted(padded[None])[0, :5].tolist() == permuted(alone[None])[0].tolist()
    assert sorted(permuted(alone[None])[0].tolist()) == [0, 1, 2, 3, 4]
    assert permuted(padded[None])[0, 5:].tolist() == list(range(5, 40))
    assert shifted(padded[None])[0, :7].tolist() == [4, 0, 1, 2, 3, 5, 6]


@pytest.mark.parametrize("kind", INTERVENTIONS)
def test_a_sentence_is_read_as_it_is_alone(kind):
    """A whole target sentence, in a batch and by itself."""
    net = make()
    net.decoder.context = Intervention(net.decoder.context, kind, 2)
    source, source_mask, target, target_mask = batch()
    together = net(source, source_mask, target, target_mask).nll
    pairs = zip(sentences(source, source_mask), sentences(target, target_mask), strict=True)
    for b, (words, translation) in enumerate(pairs):
        parts = [torch.tensor([words]), torch.tensor([translation])]
        masks = [torch.ones_like(part, dtype=torch.bool) for part in parts]
        alone = net(parts[0], masks[0], parts[1], masks[1]).nll
        torch.testing.assert_close(together[b, : len(translation)], alone[0])


def test_what_is_no_intervention():
    context = make().decoder.context
    with pytest.raises(ValueError, match="'random'; it must be one of uniform, argmax"):
        Intervention(context, "random")
    with pytest.raises(ValueError, match="top_k is 0"):
        Intervention(context, "top_k", 0)
    assert ("as_trained", *INTERVENTIONS) == CONFIGURED
