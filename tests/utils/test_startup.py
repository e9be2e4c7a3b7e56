"""`threads=auto`."""

import os

import pytest

from nmt.utils.startup import choose_threads


@pytest.mark.parametrize("units", [16, 128, 256, 1000, 4000])
def test_auto_is_at_most_the_cores(units, monkeypatch):
    monkeypatch.setenv("GOMP_SPINCOUNT", "10000")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cores = os.cpu_count() or 1
    assert 1 <= choose_threads(units) <= cores
    assert choose_threads(units, processes=cores) == 1
