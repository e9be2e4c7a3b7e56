"""Measures how well `nmt.evaluation.documents` finds the segments of damaged documents.

    python -m benchmarks.documents source.en reference.de systems/*.de --metadata metadata.jsonl
    python -m benchmarks.documents source.cs reference.uk systems/*.uk --size 10

The segments of each document are damaged and joined. So we know where each segment begins. Prints a row per
damage and system:

- `boundaries`: percentage of boundaries between segments that are found exactly
- `BLEU`: BLEU of the found segments minus BLEU of the true ones (documents joined; in points)
- `retention`: the same for retention from --short to --long words, in points
- `position`: largest difference of BLEU at a position in the document (with at least 30 segments)
- `late`: the difference of retention by position, from the first segment to the long position of `nmt compare`

Damages: none; 5 % of the segments dropped; the last third of every fifth document lost; 5 % of the segments
written twice. In the others, a segment is a line: 5 % of the line ends lost (merged); 5 % of the segments
broken into two lines (split).
"""

from __future__ import annotations

import argparse
import json
import random
from itertools import accumulate
from pathlib import Path

import numpy as np

from nmt.evaluation.documents import POSITION, cut, measure_documents
from nmt.evaluation.length_curve import kernel
from nmt.evaluation.scores.bleu import bleu, sentence_statistics
from nmt.text.lines import read_lines
from nmt.text.tokenise import count_words, tokeniser

DAMAGES = ("joined", "dropped", "lost tails", "repeated", "merged", "split")
RATE = 0.05


def damaged(parts: list[str], damage: str, draw: random.Random) -> tuple[list[str], str]:
    """Returns the true text of each segment after the damage, and the text of the document."""
    chosen = [draw.random() < RATE for _ in parts]
    if damage == "dropped":
        parts = ["" if hit else part for hit, part in zip(chosen, parts, strict=True)]
    elif damage == "repeated":
        parts = [f"{part} {part}" if hit else part for hit, part in zip(chosen, parts, strict=True)]
    elif damage == "lost tails" and draw.random() < 0.2:
        numbered = [(n, word) for n, part in enumerate(parts) for word in part.split()]
        kept = numbered[: -(len(numbered) // 3) or None]
        parts = [" ".join(word for m, word in kept if m == n) for n in range(len(parts))]
    if damage == "merged":
        ends = [" " if hit else "\n" for hit in chosen]
        return parts, "".join(part + end for part, end in zip(parts, ends, strict=True))
    if damage == "split":
        lines = []
        for hit, part in zip(chosen, parts, strict=True):
            words = part.split()
            middle = len(words) // 2 if hit else len(words)
            lines += [" ".join(words[:middle]), *([" ".join(words[middle:])] if hit else [])]
        return parts, "\n".join(lines)
    return parts, " ".join(part for part in parts if part)


def boundaries(parts: list[str]) -> list[int]:
    """Returns the number of visible characters before each boundary."""
    return list(accumulate(len("".join(part.split())) for part in parts))[:-1]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("systems", type=Path, nargs="+")
    parser.add_argument("--metadata", type=Path, help="JSONL with a column docid")
    parser.add_argument(
        "--size", type=int, default=10, help="segments of a document without metadata"
    )
    parser.add_argument("--short", type=int, default=10)
    parser.add_argument("--long", type=int, default=50)
    args = parser.parse_args()
    source, reference = ([*read_lines(path)] for path in (args.source, args.reference))
    names = [n // args.size for n in range(len(source))]
    if args.metadata:
        names = [json.loads(line)["docid"] for line in read_lines(args.metadata)]
    documents = [[n for n, own in enumerate(names) if own == name] for name in dict.fromkeys(names)]
    positions = np.concatenate([np.arange(len(own)) for own in documents])
    order = [n for own in documents for n in own]
    lengths = np.array([count_words(source[n], False) for n in order])
    weights = kernel(lengths, [args.short, args.long], fewest=0).weights
    scale, places = measure_documents([str(names[n]) for n in order], lengths.tolist(), POSITION)
    late = kernel(places, [scale.short, scale.long], fewest=0).weights
    tokenise = tokeniser(args.reference.suffix[1:]).tokenise
    tokens = {n: tokenise(reference[n]) for n in order}
    known: dict[tuple[int, str], list[int]] = {}

    def statistics(n: int, text: str) -> list[int]:
        if (n, text) not in known:
            known[n, text] = sentence_statistics(tokenise(text), tokens[n]).tolist()
        return known[n, text]

    def error_of_retention(statistics: np.ndarray, weights: np.ndarray) -> float:
        by_length = bleu(weights @ statistics)
        return float(np.diff(100 * by_length[:, 1] / by_length[:, 0])[0])

    print("damage,system,boundaries,BLEU,retention,position,late")
    for path in args.systems:
        output = [" ".join(line.split()) for line in read_lines(path)]
        known.clear()
        for damage in DAMAGES:
            draw = random.Random(1)
            right = total = 0
            tables: list[list[list[int]]] = [[], []]  # of the true and of the found segments
            for own in documents:
                true, text = damaged([output[n] for n in own], damage, draw)
                found = cut([reference[n] for n in own], text).texts
                pairs = list(zip(boundaries(true), boundaries(found), strict=True))
                right += sum(a == b for a, b in pairs)
                total += len(pairs)
                for table, texts in zip(tables, (true, found), strict=True):
                    table += [statistics(n, part) for n, part in zip(own, texts, strict=True)]
            both = np.array(tables, dtype=float)
            score = np.diff(bleu(both.sum(axis=1)))[0]
            by_position = [
                np.diff(bleu(both[:, positions == n].sum(axis=1)))[0]
                for n in range(positions.max() + 1)
                if (positions == n).sum() >= 30
            ]
            retention, of_late = (error_of_retention(both, each) for each in (weights, late))
            numbers = 100 * right / total, score, retention, max(by_position, key=abs), of_late
            shown = ",".join(f"{number:.2f}" for number in numbers)
            print(f"{damage},{path.name.partition('.')[0]},{shown}", flush=True)


if __name__ == "__main__":
    main()
