"""How many operations a GPU is given for a step and for the loss, so that one more is seen.

Counted on tensors without memory: a kernel's launch, or an operation of PyTorch that is not a view.
"""

import os
from collections import Counter
from importlib.util import find_spec

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from nmt.fused import decoder_loop, unit_loop
from nmt.fused.cross_entropy import chunked_nll
from nmt.fused.gpu import backend
from nmt.layers import Additive, Dot

if find_spec("triton") is None:
    pytest.skip("Triton is not installed", allow_module_level=True)
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is first imported
from nmt.fused.gpu import kernels

GATES = ["open_gates", "next_state", "candidate_backward", "reset_backward"]
ATTENTION = ["score", "context", "weights_backward", "query_backward", "additive_gradients"]
B, S, H, A, N = 3, 4, 5, 10, 7


class Counting(TorchDispatchMode):
    """Counts operations with a tensor of at least `least` entries."""

    def __init__(self, counts, least):
        super().__init__()
        self.counts = counts
        self.least = least

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        name = operation.overloadpacket.__name__
        leaves = tree_leaves((args, kwargs, result))
        sizes = [leaf.numel() for leaf in leaves if isinstance(leaf, torch.Tensor)]
        free = operation.is_view or "empty" in name or name == "_unsafe_view"
        if not free and max(sizes, default=0) >= self.least:
            self.counts[name] += 1
        return result


@pytest.fixture
def count(monkeypatch):
    """Counts what a function launches."""
    counts = Counter()

    class Launch:
        def __init__(self, name):
            self.name = name

        def __getitem__(self, grid):
            return lambda *args, **options: counts.update([self.name])

    for module, names in (
        (kernels.gates, GATES),
        (kernels.attention, ATTENTION),
        (kernels.likelihood, ["word_nll"]),
    ):
        for name in names:
            monkeypatch.setattr(module, f"{name}_kernel", Launch(name))
    monkeypatch.setattr(backend, "steps_for", lambda *tensors: kernels)

    def of(run, least=0):
        counts.clear()
        with torch.no_grad(), Counting(counts, least):
            run()
        return Counter(counts)

    return of


def new(*shape, dtype=torch.bfloat16):
    return torch.empty(shape, dtype=dtype, device="meta")


def test_a_step_of_the_encoder(count):
    def run(length):
        states, saved = unit_loop.run_forward(
            new(2, length, B, 3 * H), new(2, B, H), new(2, 2 * H, H), new(2, H, H),
            new(2, length, B, 1),
        )  # fmt: skip
        unit_loop.run_backward(saved, states)

    step = count(lambda: run(5)) - count(lambda: run(4))
    assert step == Counter(dict.fromkeys(GATES, 1))
    assert step.total() == 4


@pytest.mark.parametrize("scorer", [Additive, Dot])
def test_a_step_of_the_decoder(scorer, count):
    scoring = scorer(N, N).to("meta")

    def run(length):
        outputs, saved = decoder_loop.run_forward(
            scoring, new(length - 1, B, 3 * H), new(B, H), new(B, S, A), new(B, S, N),
            new(N + 2 * H, H), new(H, H), new(3 * H, A), new(B, S, dtype=torch.bool),
        )  # fmt: skip
        decoder_loop.run_backward(scoring, saved, outputs[:2])

    step = count(lambda: run(5)) - count(lambda: run(4))
    assert step == Counter(mm=1, addmm_=1, **dict.fromkeys([*GATES, *ATTENTION[:4]], 1))
    assert step.total() == 10


def test_the_loss_reads_and_writes_its_logits_once(count):
    """Product, kernel, and the products and the sum of the gradient: nothing else of their size."""
    rows, maxout, vocabulary = 6, 4, 24

    def run():
        chunked_nll(
            new(rows, maxout), new(vocabulary, maxout), new(vocabulary), new(rows, dtype=torch.int64),
            torch.float32, with_gradients=True, weight=new(rows),
        )  # fmt: skip

    assert count(run, rows * vocabulary) == Counter(mm=3, sum=1, word_nll=1)
