"""Two directions of an alignment made into one."""

from __future__ import annotations

import numpy as np

from nmt.evaluation.symmetrisation import grow_diag_final_and, intersection


def test_growing_takes_neighbours_of_the_union_and_then_what_has_no_link():
    direct = {(0, 0), (1, 1), (2, 2), (5, 5)}
    inverse = {(0, 0), (1, 1), (2, 3), (4, 1), (6, 7)}
    assert intersection(direct, inverse) == {(0, 0), (1, 1)}
    # (2, 2) neighbours (1, 1), (2, 3) then (2, 2); (5, 5) and (6, 7) have two free words, (4, 1) has one
    assert grow_diag_final_and(direct, inverse) == {
        *((0, 0), (1, 1), (2, 2), (2, 3)),
        *((5, 5), (6, 7)),
    }


def test_between_intersection_and_union_whichever_way_round():
    generator = np.random.default_rng(1)
    for _ in range(50):
        first, second = (
            {tuple(map(int, link)) for link in generator.integers(6, size=(7, 2))} for _ in range(2)
        )
        grown = grow_diag_final_and(first, second)
        assert intersection(first, second) <= grown <= first | second
        assert grow_diag_final_and(first, first) == first
