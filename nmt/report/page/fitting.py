"""Keeps a page within its size limit by thinning out translations and alignments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nmt.report.page import embed
from nmt.report.page.markup import Markup
from nmt.report.page.sentences import alignment_rows, decoded, spread, thinned
from nmt.report.runs import FinishedRun

PAGE_BYTES = 2_900_000
"""Size that a page is kept under by leaving out translations, evenly over the lengths."""

FRAME_BYTES = 5_000
"""What the page has besides style, program, sections and data."""

ALIGNMENT_BYTES = 1_900_000
"""Size that the alignments of a page are kept under: first the smallest weights go, then sentences."""

FLOORS = (0.0, 2e-4, 1e-3)
"""Weights that are too small to be kept, tried one after another until the alignments fit."""

FAR_BEYOND = 2
"""Times ALIGNMENT_BYTES from which alignments are cut before they are packed."""

SAMPLED = 6
"""Sentences a test set that tell about how much all take."""

FEWEST = 200
"""Translations a test set that a page holds however large the rest is."""


def fitted_alignments(
    runs: Mapping[str, Sequence[FinishedRun]], limit: int
) -> tuple[Markup, dict[str, set[int]]]:
    """The payload of alignments in at most ALIGNMENT_BYTES, and the sentences in it by test set.

    Args:
        runs: those shown of each test set.
        limit: sentences of a test set.
    """
    found = {name: alignment_rows(some, name) for name, some in runs.items()}
    rows = {name: _bounded(sentences, limit) for name, sentences in found.items()}
    expected = _expected_size(rows)
    if expected > FAR_BEYOND * ALIGNMENT_BYTES:  # packed once to find out, and not for every floor
        floor, limit = FLOORS[-1], max(1, int(limit * ALIGNMENT_BYTES / expected))
        rows = {name: _bounded(sentences, limit) for name, sentences in found.items()}
        text = _packed(rows, floor)
    else:
        for floor in FLOORS:
            text = _packed(rows, floor)
            if size(text) <= ALIGNMENT_BYTES:
                break
    while size(text) > ALIGNMENT_BYTES and limit > 1:
        limit = max(1, int(limit * min(0.95, ALIGNMENT_BYTES / size(text))))
        rows = {name: _bounded(sentences, limit) for name, sentences in rows.items()}
        text = _packed(rows, floor)
    return text, {name: {row["id"] for row in sentences} for name, sentences in rows.items()}


def _packed(rows: Mapping[str, Sequence[dict[str, Any]]], floor: float) -> Markup:
    return embed.packed(
        "alignments", {name: [decoded(row, floor) for row in some] for name, some in rows.items()}
    )


def _expected_size(rows: Mapping[str, list[dict[str, Any]]]) -> float:
    """About the size of sentences without small weights, from `SAMPLED` of each test set."""
    some = {name: _bounded(sentences, SAMPLED) for name, sentences in rows.items()}
    share = sum(map(len, some.values())) / max(1, sum(map(len, rows.values())))
    return size(_packed(some, FLOORS[-1])) / share if share else 0.0


def _bounded(sentences: list[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    """At most `limit` sentences: those most runs have, then spread over the lengths they are sorted by."""
    if len(sentences) <= limit:
        return sentences
    most = max((len(sentence["by"]) for sentence in sentences), default=0)
    shared = [sentence for sentence in sentences if len(sentence["by"]) == most]
    return spread(shared if len(shared) >= limit else sentences, limit)


def fitted_translations(
    translations: dict[str, Any], kept: dict[str, set[int]], beside: int
) -> Markup:
    """The payload of translations, thinned out until it fits in a page with `beside` bytes of other content."""
    frame = size(embed.stylesheet()) + size(embed.program("main.mjs")) + FRAME_BYTES
    room = PAGE_BYTES - frame - beside
    share = 1.0
    while True:
        counts = {
            name: max(min(FEWEST, rows["total"]), int(share * rows["total"]))
            for name, rows in translations.items()
        }
        some = {
            name: thinned(rows, counts[name], kept[name]) for name, rows in translations.items()
        }
        text = embed.packed("translations", some)
        if size(text) <= room or all(counts[name] <= FEWEST for name in counts):
            return text
        share *= max(0.0, min(0.95, 0.97 * room / size(text)))


def size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
