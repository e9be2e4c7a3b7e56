"""Data selection by cross-entropy difference (Axelrod, He, Gao 2011, after Moore and Lewis 2010).

A pair is the better, the more its words look like the in-domain text and the less like the general
text they come from: the sum over both sides of H_in(s) - H_out(s), in bits a word, lower is better.
H_in is the cross-entropy of a model learnt from the in-domain text, H_out of one learnt from as
many pairs of the general text, drawn at random. Both share a vocabulary: the words that occur twice
or more in the in-domain text (Moore and Lewis, section 2).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import numpy.typing as npt

from nmt.data.batches import shuffle
from nmt.data.filtering.ngrams import closed, cross_entropy, frequent_words, load_model, write_model

SEED = 1  # of the sample of the general text
Array = npt.NDArray[Any]


def cross_entropy_differences(
    general: datasets.Dataset,
    candidates: Array,
    in_domain: datasets.Dataset,
    order: int,
    scratch: Path,
    workers: int | None,
) -> Array:
    """The score of every pair of the general text, lower is better.

    Args:
        general: columns `source` and `target`: tokens joined by spaces.
        candidates: (pairs,) which of them can be selected; the others score infinity, and the
            sample is drawn from the candidates alone.
        in_domain: as `general`.
        order: longest n-gram of the models.
        scratch: folder for models and scores.
        workers: processes that score; None: this one alone.

    Returns:
        (pairs,) float32.
    """
    rows = np.flatnonzero(candidates)
    sample = np.sort(rows[shuffle(len(rows), SEED)[: len(in_domain)]])
    mask = scratch / "candidates.npy"
    np.save(mask, candidates)
    scores = np.where(candidates, 0, np.inf).astype(np.float32)
    for side in ("source", "target"):
        vocabulary = frequent_words(_column(in_domain, side))
        for name, sign in (("in", 1), ("out", -1)):
            # One model at a time: memory is that of the largest.
            path = scratch / f"{side}.{name}"
            drawn = _column(in_domain if name == "in" else general, side)
            chosen = drawn if name == "in" else _take(drawn, sample)
            write_model(chosen, vocabulary, order, path)
            load_model(path)
            entropies = general.map(
                _Score(path, side, vocabulary, mask),
                batched=True,
                with_indices=True,
                remove_columns=general.column_names,
                features=datasets.Features({"bits": datasets.Value("float32")}),
                num_proc=workers,
                cache_file_name=str(scratch / f"{side}-{name}.arrow"),
                new_fingerprint=f"{side}-{name}",
                desc=f"select: {side}, {'in-domain' if name == 'in' else 'general'} model",
            )
            scores += sign * entropies.data.column("bits").to_numpy()
            load_model.cache_clear()
    return scores


def best(scores: Array, words: Array, most_words: int) -> Array:
    """Which pairs are kept: the best ones, as long as they have no more than so many words.

    Args:
        scores: (pairs,) lower is better; infinite ones are never kept.
        words: (pairs,) words of the side that is counted.
        most_words: of all kept pairs together.

    Returns:
        (pairs,) bool. Of pairs with equal scores the earlier one is better.
    """
    order = np.argsort(scores, kind="stable")
    order = order[np.isfinite(scores[order])]
    kept = np.zeros(len(scores), bool)
    kept[order[np.cumsum(words[order], dtype=np.int64) <= most_words]] = True
    return kept


@dataclass(frozen=True)
class _Score:
    model: Path
    side: str
    vocabulary: frozenset[str]
    candidates: Path

    def __call__(self, rows: dict[str, list[str]], numbers: list[int]) -> dict[str, list[float]]:
        model, wanted = load_model(self.model), np.load(self.candidates, mmap_mode="r")
        bits = [
            cross_entropy(model, closed(line.split(" "), self.vocabulary)) if take else 0.0
            for line, take in zip(rows[self.side], wanted[numbers].tolist(), strict=True)
        ]
        return {"bits": bits}


def _column(rows: datasets.Dataset, name: str) -> Iterator[str]:
    for chunk in rows.data.column(name).chunks:
        yield from chunk.to_pylist()


def _take(lines: Iterator[str], numbers: Array) -> Iterator[str]:
    """The lines of these rising numbers."""
    wanted = np.zeros(int(numbers.max(initial=-1)) + 1, bool)
    wanted[numbers] = True
    return itertools.compress(lines, wanted.tolist())
