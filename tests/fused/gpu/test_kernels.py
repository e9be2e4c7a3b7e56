"""Triton's kernels against the steps in PyTorch operations, through Triton's interpreter or a GPU."""

import pytest
import torch
from torch import nn

from nmt.fused import steps
from nmt.fused.gpu import backend
from nmt.fused.scoring import FusedAdditive
from nmt.layers import Additive, Dot, ScaledDot
from tests.helpers.triton import DEVICES  # isort: split

from nmt.fused.gpu import kernels
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
    ("lead", "dtype", "masked"),  # (B) and (D, B); in bf16 more sentences than a program handles
    [
        ((3,), torch.float32, False),
        ((2, 3), torch.float32, True),
        ((3,), torch.bfloat16, True),
        ((2, 3), torch.bfloat16, False),
        ((2, 70), torch.bfloat16, True),
        ((70,), torch.bfloat16, False),
    ],
)
def test_gates(lead, dtype, device, masked, monkeypatch):
    """Both ways, with units, sentences and sums in several blocks, and rows that are parts of others.

    Where nothing is masked a batch attends: the terms of z and r begin with a tensor, and those of
    s̃ are two products.
    """
    monkeypatch.setattr(kernels.gates, "UNITS", 16)
    monkeypatch.setattr(kernels.gates, "DEPTH", 16)
    hidden, attending = 21, not masked and len(lead) == 1
    torch.manual_seed(1)

    def make_of(*shape, dtype=dtype):
        return torch.randn(*shape, device=device).to(dtype)

    def product(*, size, columns, transposed):
        left = make_of(*lead, size + 8)[..., 4 : size + 4]
        right = make_of(*lead[:-1], *((columns, size) if transposed else (size, columns)))
        right /= size**0.5
        return steps.Product(left, right.transpose(-1, -2) if transposed else right)

    projected, upstream = make_of(*lead, 3 * hidden), make_of(*lead, hidden)
    state, carried = (make_of(*lead, hidden, dtype=torch.float32) for _ in range(2))
    for_gates = [product(size=hidden, columns=2 * hidden, transposed=True)]
    for_candidate = [product(size=hidden, columns=hidden, transposed=True)]
    if attending:
        for_gates = [make_of(*lead, 3 * hidden)[..., hidden:], *for_gates]
        for_candidate.append(product(size=35, columns=hidden, transposed=True))
    later = product(size=3 * hidden, columns=hidden, transposed=False)
    from_reset = product(size=hidden, columns=hidden, transposed=False)
    real = (torch.arange(lead[-1], device=device) != 1).float().unsqueeze(1).expand(*lead, 1)
    results = []
    for module in (steps, kernels):
        gates = torch.zeros(*lead, 2 * hidden, device=device)
        candidate, after = torch.zeros_like(state), torch.zeros_like(state)
        reset, compute_copy = torch.zeros_like(upstream), torch.zeros_like(upstream)
        grad, grad_state = torch.zeros_like(projected), carried.clone()
        module.open_gates(
            projected[..., : 2 * hidden], for_gates, state, gates, reset, real if masked else None
        )
        module.next_state(
            projected[..., 2 * hidden :], for_candidate, state, gates, candidate, after,
            None if dtype == torch.float32 else compute_copy,
        )  # fmt: skip
        arguments = gates, candidate, state, grad
        module.candidate_backward(grad_state, upstream if masked else later, upstream, *arguments)
        module.reset_backward(grad_state, from_reset, gates, state, grad)
        results.append((gates, reset, candidate, after, compute_copy, grad, grad_state))
    if masked:
        assert torch.equal(results[1][3][..., 1, :], state[..., 1, :])
    for expected, found in zip(*results, strict=True):
        assert found.dtype == expected.dtype
        near(found, expected, dtype)


def test_who_makes_a_product(monkeypatch):
    """Kernels do in 16 bits, up to a number of sentences; what they make is added up in float32."""
    made = []
    monkeypatch.setattr(
        kernels.gates, "total", lambda terms: made.append(terms) or steps.total(terms)
    )
    for rows, dtype, by_kernel in (
        (kernels.gates.SENTENCES, torch.bfloat16, True),
        (kernels.gates.SENTENCES + 1, torch.bfloat16, False),
        (3, torch.float32, False),
    ):
        made.clear()
        left, right = torch.ones(rows, 5, dtype=dtype), torch.ones(5, 4, dtype=dtype)
        terms = [torch.ones(rows, 4, dtype=dtype), steps.Product(left, right)]
        addend, products = kernels.gates.split_terms(terms)
        assert len(products) == by_kernel, (rows, dtype)
        assert len(made) == 1 - by_kernel
        assert (addend == (1 if by_kernel else 6)).all()


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
    scoring = FusedAdditive(11, 11).to(device)
    nn.init.normal_(scoring.v)
    results = []
    for module in (steps, kernels):
        monkeypatch.setattr(backend, "steps_for", lambda *tensors, module=module: module)
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
        # the keys of `general` are the annotations, which autocast leaves in float32
        *((name, True) for name in ("additive", "general", "none")),
    ],
)
def test_whole_model(scoring, device, autocast, monkeypatch):
    """NLL and every gradient of fused recurrences on kernels and on PyTorch operations."""
    results = []
    for module in (steps, kernels):
        monkeypatch.setattr(backend, "steps_for", lambda *tensors, module=module: module)
        net = make(scoring, recurrence="fused", dtype=torch.float32).to(device)
        if autocast:
            net.decoder.readout.bias.data[0::2] += 3  # or rounding swaps maxout units
        with torch.autocast(device, torch.bfloat16, enabled=autocast):
            words = [part.to(device) for part in batch()]
            net.loss(*words).backward()
            with torch.no_grad():
                results.append((net(*words), gradients(net)))
    (expected, grads), (found, found_grads) = results
    share = 0.06 if autocast else 1e-5
    assert ((found.nll - expected.nll).abs() <= share * (1 + expected.nll)).all()
    for name, gradient in grads.items():
        assert (found_grads[name] - gradient).norm() <= share * gradient.norm(), name
    if scoring != "none":
        assert (found.weights - expected.weights).abs().max() < share
