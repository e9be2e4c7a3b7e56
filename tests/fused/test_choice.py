"""The choice of kernels and graphs at the start of training, by configuration keys and measured times."""

from __future__ import annotations

import logging
import math

import pytest
import torch

from nmt.fused import backend, backend_of
from nmt.fused.choice import Way, fastest_way, possible_ways, preferred
from nmt.fused.gpu import graphs
from tests.layers.nets import batch, make

ALL = [Way(True, True), Way(True, False), Way(False, True), Way(False, False)]


@pytest.mark.parametrize(
    ("kernels", "use_graphs", "usable", "fused", "expected"),
    [
        ("auto", "auto", True, True, ALL),
        ("auto", "auto", False, True, ALL[2:]),
        ("auto", "auto", True, False, [ALL[1], ALL[3]]),
        ("auto", False, True, True, [ALL[1], ALL[3]]),
        (True, True, True, True, ALL[:1]),
        (True, True, False, False, ALL[3:]),
        (False, "auto", True, True, ALL[2:]),
    ],
)
def test_possible_ways_by_keys_and_hardware(kernels, use_graphs, usable, fused, expected):
    assert possible_ways(kernels, use_graphs, usable, fused) == expected


@pytest.fixture
def net(monkeypatch):
    """A network on the CPU, which is treated as a GPU. PyTorch operations replace the kernels."""
    pytest.importorskip("triton", reason="Triton is not installed")
    from nmt.fused import steps
    from nmt.fused.gpu import kernels

    monkeypatch.setattr(backend, "launches_on", lambda device: True)
    for name in ("compute_gates", "next_state", "candidate_backward", "reset_backward"):
        monkeypatch.setattr(kernels, name, getattr(steps, name))
    for name in ("attention_steps", "word_nll"):
        monkeypatch.setattr(kernels, name, getattr(steps, name))
    network = make(recurrence="fused", dtype=torch.float32)
    backend_of(network).verify = None
    return network


@pytest.mark.parametrize(
    ("milliseconds", "best"),
    [
        ((7, 20, 30, 90), 0),
        ((40, 20, 30, 90), 1),
        ((40, 38, 30, 90), 2),
        ((40, 38, 30, 8), 3),
        ((22, 20, 21, 20), 0),  # the times differ too little, so the first wins
        ((math.inf,) * 4, 0),
    ],
)
def test_preferred_way_is_faster_than_those_before_it_by_a_factor(milliseconds, best):
    assert preferred(dict(zip(ALL, milliseconds, strict=True))) == ALL[best]


def test_fastest_way_leaves_random_numbers_and_gradients(net, caplog):
    caplog.set_level(logging.INFO)
    state = torch.get_rng_state()
    assert fastest_way(net, batch(), ALL) in ALL
    assert torch.equal(torch.get_rng_state(), state)
    assert all(parameter.grad is None for parameter in net.parameters())
    [line] = caplog.messages
    assert line.startswith("time of an update: ")
    assert line.count(" ms with Triton kernels and no CUDA graphs") == 1


@pytest.mark.slow
def test_fastest_way_skips_a_way_that_fails(net, monkeypatch):
    """First only the kernels fail, then the captures fail, too."""
    from nmt.fused.gpu import kernels

    def fail(*given, **options):
        raise RuntimeError("out of resource")

    monkeypatch.setattr(kernels, "next_state", fail)
    assert not fastest_way(net, batch(), ALL).kernels
    monkeypatch.setattr(graphs, "LossGraph", fail)
    assert fastest_way(net, batch(), ALL) == ALL[3]
