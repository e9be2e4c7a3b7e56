"""Compares sentences inside longer inputs with the same sentences translated alone.

Neighbouring sentences of a test set are joined into longer inputs. Each output is split into sentences
again. These are compared with translations of the single sentences, so the difficulty of a sentence cancels
out (after Peng, Bawden and Yvon, 2024).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from nmt.evaluation.records import Record, in_order, system_record
from nmt.evaluation.resampling import (
    count_documents,
    interval_row,
    number_documents,
    resampled_sums,
)
from nmt.evaluation.scores.bleu import bleu

POSITION = "position"  # value of the column `subset` in scores.csv
POSITION_OF = "-position"  # `test-position4` is the test set that joins every 4 sentences of `test`


def join_sentences(sentences: Sequence[Record], size: int) -> list[Record]:
    """Joins every `size` neighbouring sentences into one input; the last input may have fewer sentences.

    >>> text = [{"source": [word], "reference": [word.upper()]} for word in "abc"]
    >>> [each["source"] for each in join_sentences(text, 2)]
    [['a', 'b'], ['c']]
    """
    inputs: list[Record] = []
    for first in range(0, len(sentences), size):
        parts = sentences[first : first + size]
        source, reference = (
            [word for part in parts for word in part[side]] for side in ("source", "reference")
        )
        words = {"source": source, "reference": reference, "length": len(source)}
        inputs.append({"id": len(inputs), **words, "no_unk": None})
    return inputs


def cut_outputs(
    sentences: Sequence[Record],
    outputs: Iterable[Sequence[str]],
    size: int,
    detokenise: Callable[[list[str]], str],
) -> list[Record]:
    """Splits outputs into records of single sentences, each with its `position` in the input.

    Args:
        sentences: the sentences that were joined, in the same order.
        outputs: the words of the translation of each input from `join_sentences`.
    """
    records = []
    for number, output in enumerate(outputs):
        parts = sentences[number * size : (number + 1) * size]
        cut_output = cut(output, [part["reference"] for part in parts])
        for position, (part, words) in enumerate(zip(parts, cut_output, strict=True), 1):
            record = system_record(part | {"no_unk": None}, words, detokenise(words))
            records.append(record | {"position": position})
    return records


def cut(hypothesis: Sequence[str], references: Sequence[Sequence[str]]) -> list[list[str]]:
    """Splits an output into one segment per reference, with the smallest total edit distance.

    This total equals the edit distance between the whole output and the joined references. So the table of
    a single edit-distance computation gives the best segments (Matusov et al., 2005).

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
    index, column = len(words), len(hypothesis)
    while True:
        cuts.setdefault(index, column)  # extra words between sentences go to the earlier one
        distance = table[index][column]
        different = index and column and written[column - 1] != words[index - 1]
        if index and column and distance == table[index - 1][column - 1] + different:
            index, column = index - 1, column - 1
        elif index and distance == table[index - 1][column] + 1:
            index -= 1
        elif column:
            column -= 1
        else:
            break
    indices = [0, *(cuts[end] for end in ends)]
    return [list(hypothesis[a:b]) for a, b in itertools.pairwise(indices)]


def position_losses(
    name: str, alone: Iterable[Record], together: Iterable[Record], resamples: int
) -> Iterator[dict[str, Any]]:
    """Yields rows of scores.csv with the BLEU lost in longer inputs, for all positions, then for each position.

    Args:
        alone: records of sentences that were translated alone.
        together: records from `cut_outputs` of all or some of these sentences.
    """
    by_id = {record["id"]: record["bleu_stats"] for record in alone}
    records = in_order(together)
    rows = np.array([[*by_id[row["id"]], *row["bleu_stats"]] for row in records], dtype=np.float64)
    positions = np.array([record["position"] for record in records])
    documents = number_documents(record.get("document") for record in records)
    for position in (None, *sorted(set(positions.tolist()))):
        inside = (positions == position) | (position is None)
        part = rows[inside]
        drawn = None if documents is None else documents[inside]
        sums = resampled_sums(part, resamples, drawn)
        losses = bleu(sums[:, :10]) - bleu(sums[:, 10:])
        head = {"set": name, "subset": POSITION, "score": "bleu_loss"}
        head |= {"from": position, "to": position}
        yield head | interval_row(losses, len(part), count_documents(drawn))
