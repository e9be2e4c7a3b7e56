"""The sentence pairs of a test set, and test sets of long inputs made by joining neighbouring ones.

`joined` makes inputs of about a given length. `position_sets` makes the same sentences into inputs of
1, 2, 4, … sentences: the output for an input is cut back into sentences, and each is compared with
the translation of the same sentence alone, so that the difficulty of the sentence cancels (after Peng,
Bawden and Yvon, 2024).
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nmt.evaluation.alignment import Gold
from nmt.evaluation.records import Record, in_order, system_record
from nmt.evaluation.resampling import interval_of, resampled_sums
from nmt.evaluation.scores.bleu import bleu

TOLERANCE = 0.25  # share by which an input may be longer or shorter than asked for
POSITION = "position"  # `subset` of scores.csv


@dataclass(frozen=True)
class Example:
    """A sentence pair of a test set.

    Attributes:
        id: number of the sentence in its set.
        source, target: words, without `</s>`.
        text: the reference as the file has it, for scores of detokenised text.
        gold: its gold alignment, where there is one.
        parts: the sentences that it was joined from, whose translations are cut apart again.
        line: number of its line in the source file, from 1.
    """

    id: int
    source: Sequence[str]
    target: Sequence[str]
    text: str | None = None
    gold: Gold | None = None
    parts: tuple[Example, ...] = ()
    line: int | None = None

    def __add__(self, other: Example) -> Example:
        """This pair followed by another, under this one's id.

        Gold links move with their words. Gold links and text are those of both pairs or None.
        """
        gold = text = None
        if self.gold is not None and other.gold is not None:
            gold = self.gold.followed_by(other.gold, len(self.source), len(self.target))
        if self.text is not None and other.text is not None:
            text = f"{self.text} {other.text}"
        source, target = [*self.source, *other.source], [*self.target, *other.target]
        return Example(self.id, source, target, text, gold)


def joined(examples: Sequence[Example], length: int, count: int) -> list[Example]:
    """Inputs of about `length` source words, made of neighbouring sentences.

    From each start sentences are added as long as that brings the input nearer to `length`; an
    input further from it than a quarter is not used, and the next start is tried. No sentence is
    used twice.

    Args:
        examples: in the order of the text.
        length: source words to reach.
        count: most inputs to make; fewer where the text ends.

    >>> text = [Example(n, ["a"] * 9, ["b"] * 8) for n in range(5)]
    >>> [(each.id, len(each.source)) for each in joined(text, length=20, count=3)]
    [(0, 18), (1, 18)]
    """
    inputs: list[Example] = []
    start = 0
    while start < len(examples) and len(inputs) < count:
        candidate, end = examples[start], start + 1
        while end < len(examples) and _nearer(candidate, examples[end], length):
            candidate, end = candidate + examples[end], end + 1
        fits = abs(len(candidate.source) - length) <= TOLERANCE * length
        if fits:
            inputs.append(replace(candidate, id=len(inputs)))
        start = end if fits else start + 1
    return inputs


def _nearer(candidate: Example, following: Example, length: int) -> bool:
    longer = len(candidate.source) + len(following.source)
    return abs(longer - length) < abs(len(candidate.source) - length)


def joined_name(name: str, length: int) -> str:
    """The name of the set of joined sentences of about `length` words of the set `name`."""
    return f"{name}-joined{length}"


def position_name(name: str, size: int) -> str:
    """The name of the set of inputs of `size` sentences of the set `name`."""
    return f"{name}-position{size}"


def stress_sets(
    name: str, examples: Sequence[Example], lengths: Iterable[int], count: int
) -> dict[str, list[Example]]:
    """A test set of concatenated inputs for each length that the text allows, by its name.

    >>> text = [Example(n, ["a"] * 9, ["b"] * 8) for n in range(5)]
    >>> {name: len(inputs) for name, inputs in stress_sets("mine", text, [20, 90], 3).items()}
    {'mine-joined20': 2}
    """
    sets = {joined_name(name, length): joined(examples, length, count) for length in lengths}
    return {name: inputs for name, inputs in sets.items() if inputs}


def position_sets(
    name: str, examples: Sequence[Example], sizes: Sequence[int], count: int
) -> dict[str, list[Example]]:
    """The first sentences of a test set, alone and in inputs of several sentences.

    Args:
        examples: in the order of the text.
        sizes: sentences of an input.
        count: sentences used, rounded down to a multiple of all sizes.

    >>> text = [Example(n, ["a"] * 9, ["b"] * 8) for n in range(9)]
    >>> {name: len(inputs) for name, inputs in position_sets("mine", text, [2, 4], 9).items()}
    {'mine-position1': 8, 'mine-position2': 4, 'mine-position4': 2}
    """
    if not sizes:
        return {}
    used = min(count, len(examples))
    used -= used % int(np.lcm.reduce(sizes))
    sets = {}
    for size in dict.fromkeys([1, *sizes]):
        starts = range(0, used, size)
        inputs = [_concatenated(examples[start : start + size]) for start in starts]
        sets[position_name(name, size)] = inputs
    return sets if used else {}


def _concatenated(parts: Sequence[Example]) -> Example:
    return replace(functools.reduce(operator.add, parts), parts=tuple(parts))


def cut_records(records: Iterable[Record], detokenise: Callable[[list[str]], str]) -> list[Record]:
    """The records of the sentences of inputs, each with its part of the output.

    Args:
        records: of inputs, with `parts`: what describes their sentences (`external.system_record`).
        detokenise: tokens -> text.
    """
    sentences = []
    for record in records:
        references = [part["reference"] for part in record["parts"]]
        outputs = cut(record["hypothesis"], references)
        sentences += [
            system_record(part, words, detokenise(words))
            for part, words in zip(record["parts"], outputs, strict=True)
        ]
    return in_order(sentences)


def cut(hypothesis: Sequence[str], references: Sequence[Sequence[str]]) -> list[list[str]]:
    """Cuts an output into one part for each reference, with the least edit distance to them in all.

    The sum of the distances of the parts is the distance of the whole output to the references in a
    row, so that one table of distances has the best cuts (Matusov et al., 2005).

    >>> cut("a b x c d".split(), [["a", "b"], ["c", "d"]])
    [['a', 'b', 'x'], ['c', 'd']]
    """
    words = [word for reference in references for word in reference]
    columns = np.arange(len(hypothesis) + 1)
    written = np.array([*hypothesis, ""], dtype=object)[:-1]
    table = [columns]
    for word in words:
        above = table[-1]
        row = above + 1
        row[1:] = np.minimum(row[1:], above[:-1] + (written != word))
        table.append(np.minimum.accumulate(row - columns) + columns)
    ends = np.cumsum([len(reference) for reference in references]).tolist()
    cuts: dict[int, int] = {}
    place, column = len(words), len(hypothesis)
    while True:
        cuts.setdefault(place, column)  # words before the first of the next reference stay here
        distance = table[place][column]
        different = place and column and written[column - 1] != words[place - 1]
        if place and column and distance == table[place - 1][column - 1] + different:
            place, column = place - 1, column - 1
        elif place and distance == table[place - 1][column] + 1:
            place -= 1
        elif column:
            column -= 1
        else:
            break
    places = [0, *(cuts[end] for end in ends)]
    return [list(hypothesis[a:b]) for a, b in itertools.pairwise(places)]


def position_losses(
    name: str, alone: Iterable[Record], together: Iterable[Record], resamples: int
) -> Iterator[dict[str, Any]]:
    """BLEU that sentences lose in longer inputs, of all positions and of each: rows of scores.csv.

    Args:
        name: of the set of inputs.
        alone: records of the sentences translated by themselves.
        together: records of the same sentences, cut from the output for inputs.
    """
    by_id = {record["id"]: record["bleu_stats"] for record in alone}
    records = in_order(together)
    rows = np.array([[*by_id[row["id"]], *row["bleu_stats"]] for row in records], dtype=np.float64)
    positions = np.array([record["position"] for record in records])
    for position in (None, *sorted(set(positions.tolist()))):
        part = rows[(positions == position) | (position is None)]
        sums = resampled_sums(part, resamples)
        losses = bleu(sums[:, :10]) - bleu(sums[:, 10:])
        low, high = interval_of(losses[1:])
        yield {
            "set": name,
            "subset": POSITION,
            "score": "bleu_loss",
            "from": position,
            "to": position,
            "value": float(losses[0]),
            "low": low,
            "high": high,
            "sentences": len(part),
            "interval": "" if low is None else "sentences",
        }
