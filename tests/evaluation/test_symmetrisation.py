"""Two directions of an alignment made into one."""

from __future__ import annotations

import numpy as np

from nmt.evaluation.symmetrisation import grow_diag_final_and


def test_growing_takes_neighbours_of_the_union_and_then_what_has_no_link():
    direct = {(0, 0), (1, 1), (2, 2), (5, 5)}
    inverse = {(0, 0), (1, 1), (2, 3), (4, 1), (6, 7)}
    # (2, 2) neighbours (1, 1), (2, 3) then (2, 2); (5, 5) and (6, 7) have two free words, (4, 1) has one
    assert grow_diag_final_and(direct, inverse) == {
        *((0, 0), (1, 1), (2, 2), (2, 3)),
        *((5, 5), (6, 7)),
    }


def grown_on_a_grid(direct, inverse):
    """The algorithm as it is printed (Koehn et al., 2005), on matrices: target word, source word."""
    a, b = np.zeros((2, 9, 9), bool)
    for grid, links in ((a, direct), (b, inverse)):
        for j, i in links:
            grid[i, j] = True
    grown, added = a & b, True
    while added:
        added = False
        for e, f in np.ndindex(9, 9):
            if not grown[e, f]:
                continue
            for de, df in ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)):
                y, x = e + de, f + df
                inside = 0 <= y < 9 and 0 <= x < 9 and (a | b)[y, x] and not grown[y, x]
                if inside and not (grown[y].any() and grown[:, x].any()):
                    grown[y, x] = added = True
    for grid in (a, b):
        for e, f in np.ndindex(9, 9):
            if grid[e, f] and not grown[e].any() and not grown[:, f].any():
                grown[e, f] = True
    return {(int(f), int(e)) for e, f in np.argwhere(grown)}


def test_links_are_those_of_the_algorithm_as_printed():
    direct, inverse = {(0, 0), (1, 1), (3, 2), (3, 3)}, {(0, 0), (1, 2), (3, 3), (4, 3)}
    assert (1, 2) in grow_diag_final_and(direct, inverse) == grown_on_a_grid(direct, inverse)
    draw = np.random.default_rng(2)
    for _ in range(300):  # a diagonal of links, some of them moved by a word or two
        first, second = (
            {(min(8, max(0, j + int(draw.integers(-1, 3)))), j) for j in range(9) for _ in range(2)}
            for _ in range(2)
        )
        assert grow_diag_final_and(first, second) == grown_on_a_grid(first, second)


def test_between_intersection_and_union_whichever_way_round():
    generator = np.random.default_rng(1)
    for _ in range(50):
        first, second = (
            {tuple(map(int, link)) for link in generator.integers(6, size=(7, 2))} for _ in range(2)
        )
        grown = grow_diag_final_and(first, second)
        assert first & second <= grown <= first | second
        assert grow_diag_final_and(first, first) == first
