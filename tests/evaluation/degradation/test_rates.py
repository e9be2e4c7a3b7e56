"""How often intervals and tests are right, on fewer draws than docs/degradation.md has."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.degradation import (
    FALLS,
    STOPS,
    UNIFORM,
    plans,
    simulate,
    true_slopes,
    true_statistics,
)
from nmt.evaluation.degradation import RANGES
from nmt.evaluation.scores import REGISTERED

DRAWS = 400


def within(rates, name, low, high):
    """Shares by range, in per cent: three standard errors of `DRAWS` wider than what is asked for."""
    for part in RANGES:
        assert low <= 100 * rates[f"{name} {part}"] <= high, (name, part, rates)


def test_what_is_taken_for_true_is_what_many_sentences_come_to():
    draw, many = np.random.default_rng(3), replace(UNIFORM, sentences=30_000)
    for system in (FALLS, STOPS):
        lengths, (table,) = simulate(many, [system], draw)
        expected = true_statistics(UNIFORM, system)
        for first, last in [(1, 10), (31, 40), (61, 70)]:
            inside = (lengths >= first) & (lengths <= last)
            found = REGISTERED["bleu"].combine(table[inside].sum(0))
            true = REGISTERED["bleu"].combine(expected[first - 1 : last].sum(0))
            assert found == pytest.approx(true, abs=1.5)
    assert true_slopes(UNIFORM, FALLS)["beyond_cap"] < true_slopes(UNIFORM, FALLS)["to_cap"] < -1


@pytest.mark.slow
def test_intervals_have_the_true_slope_and_alike_systems_rarely_differ():
    chosen = dict(plans(DRAWS))
    within(chosen["uniform, 1 run, falls"]().shares(), "slope", 91.5, 98.5)
    alike = chosen["uniform, 1 run, flat less flat"]().shares()
    within(alike, "difference", 91.5, 98.5)
    within(alike, "differs", 1.5, 8.5)
    seeds = chosen["uniform, 3 runs, flat less flat"]().shares()
    within(seeds, "difference", 91.5, 99)
    within(seeds, "differs", 1, 8.5)


@pytest.mark.slow
def test_equivalence_at_its_margin_is_rarely_found():
    rates = dict(plans(DRAWS))["uniform, 1 run, falls less flat"]().shares()
    within(rates, "equivalent", 0, 8.5)
    within(rates, "no fall", 0, 8.5)


@pytest.mark.slow
def test_lengths_dealt_out_anew_give_slopes_that_may_be_0():
    within(dict(plans(2 * DRAWS))["uniform, shuffled"]().shares(), "slope", 91.5, 98.5)
