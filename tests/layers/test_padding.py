"""Padding changes nothing: a sentence alone gives what it gives in a batch of longer ones."""

import pytest
import torch

from tests.layers.nets import KINDS, batch, gradients, make


@pytest.mark.parametrize("recurrence", ["plain", "fused"])
@pytest.mark.parametrize(("scoring", "state_input"), KINDS)
def test_alone_and_in_a_batch(scoring, state_input, recurrence):
    net = make(scoring, state_input, recurrence)
    whole = batch()
    found = net(*whole)
    nll = found.nll
    nll.sum().backward()
    together = gradients(net)
    summed = {name: torch.zeros_like(gradient) for name, gradient in together.items()}
    for b in range(3):
        source, source_mask, target, target_mask = (part[b : b + 1] for part in whole)
        s, t = int(source_mask.sum()), int(target_mask.sum())
        net.zero_grad()
        alone = net(source[:, :s], source_mask[:, :s], target[:, :t], target_mask[:, :t])
        torch.testing.assert_close(alone.nll[0], nll[b, :t], rtol=1e-12, atol=1e-12)
        if scoring != "none":
            torch.testing.assert_close(alone.weights[0], found.weights[b, :t, :s])
        alone.nll.sum().backward()
        for name, gradient in gradients(net).items():
            summed[name] += gradient
    torch.testing.assert_close(summed, together, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("recurrence", ["plain", "fused"])
def test_what_the_padding_holds_does_not_matter(recurrence):
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
