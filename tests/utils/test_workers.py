"""`map_batches` processes batches in several threads."""

from __future__ import annotations

import threading

import pytest
import torch

from nmt.utils.devices import map_batches

CPU = torch.device("cpu")


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_map_batches_keeps_order(workers):
    def work(item):
        return item, torch.get_num_threads()

    torch.set_num_threads(2)
    try:
        results = list(map_batches(work, range(40), workers, CPU))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert results == [(item, 1) for item in range(40)]


def test_map_batches_runs_in_parallel():
    """Each item waits for two others, so fewer than three workers would never finish."""
    together = threading.Barrier(3, timeout=20)
    assert list(map_batches(lambda _: together.wait() >= 0, range(3), 3, CPU)) == [True] * 3


def test_map_batches_stops_after_an_error():
    begun: list[int] = []

    def work(item: int) -> int:
        begun.append(item)
        if item == 0:
            raise ValueError("broken")
        return item

    with pytest.raises(ValueError, match="broken"):
        list(map_batches(work, range(1000), 2, CPU))
    assert len(begun) < 1000
    assert torch.get_num_threads() == 1


def test_map_batches_clears_the_autocast_cache():
    """Otherwise, autocast would reuse casts of old weights after the weights have changed."""
    weight = torch.ones(2, 2, requires_grad=True)

    def work(_: int) -> None:
        with torch.autocast("cpu", torch.bfloat16):
            torch.ones(2, 2) @ weight

    list(map_batches(work, range(4), 2, CPU))
    with torch.no_grad():
        weight.fill_(2.0)
    with torch.autocast("cpu", torch.bfloat16):
        assert (torch.ones(2, 2) @ weight).tolist() == [[4.0, 4.0]] * 2
