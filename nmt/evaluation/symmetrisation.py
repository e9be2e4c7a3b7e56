"""Symmetrisation of the alignments of two directions (Koehn et al., 2005)."""

from __future__ import annotations

from collections.abc import Iterable

from nmt.evaluation.alignment import Link

NEIGHBOURS = [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)]


def grow_diag_final_and(direct: Iterable[Link], inverse: Iterable[Link]) -> set[Link]:
    """Grow-diag-final-and: the intersection, grown into the union.

    First links of the union are added that neighbour one that is in, diagonally too, and of which
    one word at least has no link yet; then links of either direction of which neither word has one.
    Links are visited target word by target word, those just added too: the order decides.

    Args:
        direct, inverse: links (source word, target word) of each direction.

    >>> sorted(grow_diag_final_and([(0, 0), (1, 1), (3, 3)], [(0, 0), (1, 2)]))
    [(0, 0), (1, 1), (1, 2), (3, 3)]
    """
    first, second = set(direct), set(inverse)
    union, links = first | second, first & second
    order = sorted(union, key=lambda link: (link[1], link[0]))
    sources, targets = {j for j, _ in links}, {i for _, i in links}

    def add(link: Link) -> None:
        links.add(link)
        sources.add(link[0])
        targets.add(link[1])

    growing = True
    while growing:
        growing = False
        for j, i in (link for link in order if link in links):
            for down, right in NEIGHBOURS:
                link = (j + right, i + down)
                new = link in union and link not in links
                if new and (link[0] not in sources or link[1] not in targets):
                    add(link)
                    growing = True
    for side in (first, second):
        for link in order:
            if link in side and link[0] not in sources and link[1] not in targets:
                add(link)
    return links
