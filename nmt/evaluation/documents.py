"""Finds the segments of a document in its translation.

If the translation has as many paragraphs or lines as the reference has segments, these are its segments.
Otherwise, it is cut where the word edit distance to the segments of the reference is smallest (Matusov et al.,
2005). A cut that follows no final mark, such as a full stop, costs as much as one wrong word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from nmt.evaluation.length_curve import FEWEST, LengthScale, fitting_scale
from nmt.text.tokenise import UNSPACED

POSITION, DOCUMENT = "position", "document"  # values of `lengths`
UNITS = {POSITION: "segments into the document", DOCUMENT: "words of the document"}
RELIABLE_BLEU = 15  # below this BLEU, only about 60 % of the cuts are at the right word,
FEWEST_WORDS = 10  # so scores of segments with fewer words are not shown

_WORD = re.compile(f"[{UNSPACED}]|[^\\W{UNSPACED}]+|[^\\w\\s]")
_FINAL = re.compile("[.!?:;\u2026\u3002\uff01\uff1f\u061f\u06d4\u0964]")
_CLOSING = re.compile("[\"')\\]}\u00bb\u201d\u2019\u201c\u300d\u300f\uff09]")
_LEFT, _DIAGONAL, _UP = range(3)  # moves in the table of edit distances


class Aligned(NamedTuple):
    """The translation of a document, as one text per segment of the reference."""

    texts: list[str]
    is_cut: bool = False  # whether the edit distance decided
    extra: int = 0  # number of words that correspond to no word of the reference


def in_documents(unit: str) -> bool:
    """Tells whether a unit of length describes documents, not sentences."""
    return unit.endswith(" the document")


def dimension(unit: str) -> str:
    """Names what is measured in a unit of length.

    >>> dimension(UNITS[POSITION]), dimension("characters of the document"), dimension("words")
    ('position in the document', 'length of the document', 'length of the source sentence')
    """
    if unit == UNITS[POSITION]:
        return "position in the document"
    return f"length of the {'document' if in_documents(unit) else 'source sentence'}"


def at_length(length: float, unit: str) -> str:
    """Names what has a length in a unit.

    >>> at_length(3, UNITS[POSITION]), at_length(300, UNITS[DOCUMENT]), at_length(12, "words")
    ('segment 3 of the document', 'documents of 300 words', '12 words')
    """
    if unit == UNITS[POSITION]:
        return f"segment {length:.0f} of the document"
    if in_documents(unit):
        return f"documents of {length:.0f} {unit.partition(' ')[0]}"
    return f"{length:.0f} {unit}"


def short_and_long(unit: str) -> tuple[str, str]:
    """Names the texts at both ends of a scale.

    >>> short_and_long("words"), short_and_long(UNITS[POSITION])
    (('short sentences', 'long sentences'), ('early segments', 'late segments'))
    """
    if unit == UNITS[POSITION]:
        return "early segments", "late segments"
    noun = "documents" if in_documents(unit) else "sentences"
    return f"short {noun}", f"long {noun}"


def axis_title(unit: str) -> str:
    """Names what is measured, and the unit.

    >>> axis_title(UNITS[POSITION]), axis_title("words")
    ('position in the document, in segments', 'length of the source sentence, in words')
    """
    return f"{dimension(unit)}, in {unit.partition(' ')[0] if in_documents(unit) else unit}"


def align(references: Sequence[str], output: str) -> Aligned:
    r"""Splits the translation of a document into one text per reference segment.

    >>> align(["A dog.", "A cat."], "Un chien.\n\nUn chat.").texts
    ['Un chien.', 'Un chat.']
    """
    for mark in ("\n\n", "\n"):
        parts = output.strip().split(mark)
        if len(parts) == len(references):
            return Aligned([part.strip() for part in parts])
    if len(references) == 1:
        return Aligned([output.strip()])
    return cut(references, output)


def cut(references: Sequence[str], output: str) -> Aligned:
    """Splits a text at the places with the smallest edit distance to the references.

    The table of a single edit distance, between all references and the whole text, gives the best segments.

    >>> cut(["The cat sat.", "It slept."], "The old cat sat. It slept").texts
    ['The old cat sat.', 'It slept']
    """
    spans = [match.span() for match in _WORD.finditer(output)]
    numbers: dict[str, int] = {}
    words = np.array([_number(output[a:b], numbers) for a, b in spans], dtype=np.int64)
    columns = np.arange(len(words) + 1)
    costs = np.array([_cost(output, spans, place) for place in range(len(columns))])
    moves = []  # each: whether it is a boundary, and how each column is reached
    row = columns
    for n, reference in enumerate(references):
        if n:
            reached = np.minimum.accumulate(row + costs - columns) + columns
            moves.append((True, np.where(reached == row + costs, _UP, _LEFT).astype(np.int8)))
            row = reached
        for word in _WORD.findall(reference):
            diagonal = row[:-1] + (words != _number(word, numbers))
            best = row + 1
            best[1:] = np.minimum(best[1:], diagonal)
            best = np.minimum.accumulate(best - columns) + columns
            move = np.where(best == row + 1, _UP, _LEFT).astype(np.int8)
            move[1:][best[1:] == diagonal] = _DIAGONAL
            moves.append((False, move))
            row = best
    cuts = [len(words)]
    column = len(words)
    extra = 0
    while moves:
        is_boundary, move = moves[-1]
        if move[column] == _LEFT:
            column -= 1
            extra += 1
            continue
        moves.pop()
        if is_boundary:
            cuts.append(column)
        elif move[column] == _DIAGONAL:
            column -= 1
    places = [0, *reversed(cuts)]
    starts = [*(first for first, _ in spans), len(output)]
    parts = [output[starts[a] : starts[b]] for a, b in pairwise(places)]
    return Aligned([part.strip() for part in parts], is_cut=True, extra=extra + column)


def _number(word: str, numbers: dict[str, int]) -> int:
    return numbers.setdefault(word.casefold(), len(numbers))


def _cost(text: str, spans: Sequence[tuple[int, int]], place: int) -> int:
    """Returns 0 if a segment may end before word `place`: after a final mark, at a line break, or at an end."""
    if place in (0, len(spans)) or "\n" in text[spans[place - 1][1] : spans[place][0]]:
        return 0
    last = place - 1
    while last > 0 and _CLOSING.match(text, spans[last][0]):
        last -= 1
    return int(_FINAL.match(text, spans[last][0]) is None)


def measure_documents(
    documents: Sequence[str], lengths: Sequence[int], unit: str
) -> tuple[LengthScale, list[int]]:
    """Returns a scale, and for each segment its position in its document or the length of its document.

    Args:
        documents: the name of each segment's document; segments are in order.
        lengths: length of each segment, in words.
        unit: `position` or `document`.
    """
    totals: dict[str, int] = {}
    before = []
    for document, length in zip(documents, lengths, strict=True):
        totals[document] = totals.get(document, 0) + (1 if unit == POSITION else length)
        before.append(totals[document])
    if unit == DOCUMENT:
        of_segment = [totals[document] for document in documents]
        return fitting_scale(of_segment, UNITS[unit]), of_segment
    counts = np.bincount(before)
    last = max(2, int(np.flatnonzero(counts >= min(FEWEST, counts.max()))[-1]))
    edges = np.unique(np.geomspace(1, last, 6).round().astype(int)).tolist()
    return LengthScale(UNITS[unit], 1, last, edges), before
