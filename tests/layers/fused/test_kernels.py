"""Triton's kernels against the steps in PyTorch operations, through Triton's interpreter or a GPU."""

import pytest
import torch
from torch import nn

from nmt.layers import Additive, Dot, ScaledDot
from nmt.layers.fused import backend, steps
from tests.helpers.triton import DEVICES  # isort: split

from nmt.layers.fused import kernels
from tests.layers.nets import batch, gradients, make

TYPES = [torch.float32, torch.bfloat16]
TOLERANCE = {torch.float32: 2e-6, torch.bfloat16: 1e-2}  # of the largest entry


def near(found, expected, dtype):
    """Within what the type of products can tell, relative to the largest entry."""
    scale = max(1.0, expected.abs().max().item())
    error = (found.double() - expected.double()).abs().max().item()
    assert error <= TOLERANCE[dtype] * scale, error


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("lead", "dtype", "masked"),  # each two of them together; (B) and (D, B)
    [
        ((3,), torch.float32, False),
        ((3,), torch.bfloat16, True),
        ((2, 3), torch.float32, True),
        ((2, 3), torch.bfloat16, False),
    ],
)
def test_gates(lead, dtype, device, masked, monkeypatch):
    """Both ways, with 5 units in blocks of 4, and rows that are parts of wider ones.

    What is not masked has something added to it.
    """
    monkeypatch.setattr(kernels.gates, "UNITS", 4)
    hidden = 5
    torch.manual_seed(1)

    def make_of(*shape, dtype=dtype):
        return torch.randn(*shape, device=device).to(dtype)

    accumulate = torch.float32
    projected, product = make_of(*lead, 3 * hidden), make_of(*lead, 4 * hidden)
    after_reset, upstream = make_of(*lead, hidden), make_of(*lead, hidden)
    state, carried = (
        make_of(*lead, hidden, dtype=accumulate),
        make_of(*lead, hidden, dtype=accumulate),
    )
    extra = None if masked else make_of(*lead, 3 * hidden)
    for_gates, for_candidate = (None, None)
    if extra is not None:
        for_gates, for_candidate = extra.split([2 * hidden, hidden], -1)
    real = (torch.arange(3, device=device) != 1).float().view(3, 1).expand(*lead, 1)
    results = []
    for module in (steps, kernels):
        gates = torch.zeros(*lead, 2 * hidden, device=device)
        candidate, after = torch.zeros_like(state), torch.zeros_like(state)
        reset, compute_copy = torch.zeros_like(upstream), torch.zeros_like(upstream)
        grad, grad_state = torch.zeros_like(projected), carried.clone()
        module.open_gates(
            projected[..., : 2 * hidden], product[..., hidden : 3 * hidden], state, gates, reset,
            real if masked else None, for_gates,
        )  # fmt: skip
        module.next_state(
            projected[..., 2 * hidden :], after_reset, state, gates, candidate, after,
            None if dtype == accumulate else compute_copy, for_candidate,
        )  # fmt: skip
        arguments = gates, candidate, state, grad
        module.candidate_backward(grad_state, product[..., :hidden], upstream, *arguments)
        module.reset_backward(grad_state, after_reset, gates, state, grad)
        results.append((gates, reset, candidate, after, compute_copy, grad, grad_state))
    if masked:
        assert torch.equal(results[1][3][..., 1, :], state[..., 1, :])
    for expected, found in zip(*results, strict=True):
        assert found.dtype == expected.dtype
        near(found, expected, dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("scorer", [Additive, Dot, ScaledDot])
def test_attention(scorer, dtype, device, monkeypatch):
    """Sizes that are no multiple of a block, over more than one block each, and padding."""
    monkeypatch.setattr(kernels.attention, "POSITIONS", 4)
    monkeypatch.setattr(kernels.attention, "ENTRIES", 8)
    length, alignment, size = 3, 11, 13
    torch.manual_seed(2)
    mask = torch.arange(7, device=device) < torch.tensor([[7], [1], [5]], device=device)
    b, s = mask.shape
    scoring = scorer(alignment, alignment).to(device)
    for parameter in scoring.parameters():
        nn.init.normal_(parameter)
    keys = torch.randn(b, s, alignment, device=device).to(dtype)
    annotations = torch.randn(b, s, size, device=device).to(dtype)
    queries = torch.randn(length, b, alignment + 2, device=device).to(dtype)[..., 1:-1]
    grad_contexts = torch.randn(length, b, size, device=device).to(dtype)
    scoring.requires_grad_(False)  # derivatives are these functions' own
    results = []
    for module in (steps, kernels):
        attention = module.attention_steps(scoring, keys, annotations, mask)
        weights = torch.zeros(length, b, s, device=device)
        log_normaliser = torch.zeros(length, b, device=device)
        contexts = torch.zeros_like(grad_contexts)
        grad_scores = torch.zeros_like(weights)
        grad_queries = torch.zeros(length, b, alignment + 3, device=device).to(dtype)[..., 3:]
        for i in range(length):
            attention.attend(queries[i], weights[i], log_normaliser[i], contexts[i])
        for i in range(length):
            attention.backward(
                grad_contexts[i], queries[i], weights[i], grad_scores[i], grad_queries[i]
            )
        sums = attention.gradients(grad_scores, queries)
        assert len(sums) == (2 if scorer is Additive else 1)
        results.append((weights, log_normaliser, contexts, grad_scores, grad_queries, *sums))
    assert not results[1][0][:, ~mask].any()
    for expected, found in zip(*results, strict=True):
        near(found, expected, dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("device", DEVICES)
def test_scores_of_a_search(dtype, device, monkeypatch):
    """Three queries a sentence, by the way that the search takes, on keys in their own type."""
    monkeypatch.setattr(kernels.attention, "POSITIONS", 4)
    monkeypatch.setattr(kernels.attention, "ENTRIES", 8)
    torch.manual_seed(4)
    query = torch.randn(2, 3, 11, device=device).to(dtype)
    keys = torch.randn(2, 7, 11, device=device).to(dtype)
    scoring = Additive(11, 11).to(device)
    nn.init.normal_(scoring.v)
    results = []
    for module in (steps, kernels):
        monkeypatch.setattr(backend, "steps_for", lambda example, module=module: module)
        with torch.no_grad():
            results.append(scoring(query, keys))
    expected, found = results
    assert found.dtype == torch.float32
    near(found, expected, torch.float32)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("scoring", "autocast"),
    [
        *((name, False) for name in ("additive", "dot", "scaled_dot", "none")),
        *(("additive", True), ("none", True)),
    ],
)
def test_whole_model(scoring, device, autocast, monkeypatch):
    """NLL and every gradient of fused recurrences on kernels and on PyTorch operations."""
    results = []
    for module in (steps, kernels):
        monkeypatch.setattr(backend, "steps_for", lambda example, module=module: module)
        net = make(scoring, recurrence="fused", dtype=torch.float32).to(device)
        if autocast:
            net.decoder.readout.bias.data[0::2] += 3  # or rounding swaps maxout units
        with torch.autocast(device, torch.bfloat16, enabled=autocast):
            nll, teacher_forced = net(*(part.to(device) for part in batch()))
        nll.sum().backward()
        results.append((nll, teacher_forced, gradients(net)))
    (nll, teacher_forced, grads), (found_nll, found, found_grads) = results
    share = 0.06 if autocast else 1e-5
    assert ((found_nll - nll).abs() <= share * (1 + nll)).all()
    for name, gradient in grads.items():
        assert (found_grads[name] - gradient).norm() <= share * gradient.norm(), name
    if scoring != "none":
        assert (found.weights - teacher_forced.weights).abs().max() < share


def test_a_scoring_function_of_ones_own_keeps_its_operations():
    class Own(Dot):
        scan = None

        def backward(self, grad_scores, query, keys):
            return grad_scores @ keys, grad_scores.transpose(1, 2) @ query

    keys, annotations = torch.randn(2, 3, 4), torch.randn(2, 3, 5)
    mask = torch.ones(2, 3, dtype=torch.bool)
    own = kernels.attention_steps(Own(4, 4), keys, annotations, mask)
    assert isinstance(own, steps.AttentionSteps)
    assert not isinstance(
        kernels.attention_steps(Dot(4, 4), keys, annotations, mask), steps.AttentionSteps
    )
