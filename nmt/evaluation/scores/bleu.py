"""Corpus BLEU and its components, equal to those of sacrebleu with `tokenize="none"`.

A sentence has ten integer statistics: four clipped n-gram matches (order 1 to 4), four n-gram counts of the
hypothesis (order 1 to 4), the length of the hypothesis, and the length of the reference. The BLEU of a set
of sentences is computed from the sums of these statistics (Papineni et al., 2002).

If an order has no match, sacrebleu smooths its precision (`smooth_method="exp"`). In this case, multi-bleu,
which the paper used, returns 0. Otherwise, both return the same BLEU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from nmt.evaluation.scores.base import Ratio, Score, quotient
from nmt.evaluation.scores.ngrams import BLOCK, ReferenceNgrams, Texts, words

ORDERS = 4
CORRECT = slice(0, ORDERS)
TOTAL = slice(ORDERS, 2 * ORDERS)
HYPOTHESIS_LENGTH = 2 * ORDERS
REFERENCE_LENGTH = 2 * ORDERS + 1
WIDTH = 2 * ORDERS + 2
FEWEST_MATCHES = 10  # with fewer matching 4-grams, BLEU and its interval are biased downwards


def sentence_statistics(hypothesis: Sequence[str | None], *references: Sequence[str]) -> np.ndarray:
    """Computes the BLEU statistics (10,) of one sentence; see `all_statistics`.

    >>> sentence_statistics("the cat sat".split(), "the cat sat down".split()).tolist()
    [3, 2, 1, 0, 3, 2, 1, 0, 3, 4]
    """
    return all_statistics([hypothesis], [references])[0]


def all_statistics(
    hypotheses: Sequence[Sequence[str | None]], references: Sequence[Sequence[Sequence[str]]]
) -> np.ndarray:
    """Computes the BLEU statistics of N sentences.

    The n-grams are counted here, since sacrebleu would split tokens that contain a Unicode space such as U+00A0 or
    U+2009.

    Args:
        hypotheses: tokens of each sentence, without `</s>`. None stands for the symbol `<unk>`, which matches nothing.
        references: tokens of each reference of each sentence. The closest length is used as the reference length.

    Returns:
        (N, 10) int64: matching 1- to 4-grams, all 1- to 4-grams, hypothesis length, reference length.
    """
    if len(hypotheses) != len(references):
        raise ValueError(
            f"{len(hypotheses)} hypotheses, but references of {len(references)} sentences"
        )
    tables = [np.empty((0, WIDTH), dtype=np.int64)]
    for at in range(0, len(hypotheses), BLOCK):
        part = slice(at, at + BLOCK)
        texts = map(words, zip(*padded(references[part]), strict=True))
        tables.append(statistics_of(words(hypotheses[part]), ReferenceNgrams([*texts], ORDERS)))
    return np.concatenate(tables)


def padded(references: Sequence[Sequence[Sequence[str]]]) -> list[list[Sequence[str]]]:
    """Repeats the first reference of each sentence until all have equally many, which changes no statistic."""
    most = max(map(len, references))
    return [[*each, *[each[0]] * (most - len(each))] for each in references]


def statistics_of(hypotheses: Texts, references: ReferenceNgrams) -> np.ndarray:
    """Computes the BLEU statistics (N, 10) of N sentences."""
    sizes = hypotheses.lengths[:, None]
    # Choose the closest reference length. If two are equally close, choose the shorter one.
    distance = np.abs(references.lengths - sizes) + references.lengths / 1e6
    closest = np.argmin(distance, axis=1)[:, None]
    return np.concatenate(
        [
            references.matches(hypotheses),
            np.maximum(sizes - np.arange(ORDERS), 0),
            sizes,
            np.take_along_axis(references.lengths, closest, axis=1),
        ],
        axis=1,
    )


def bleu(statistics: np.ndarray | Sequence[int], *, effective_order: bool = False) -> np.ndarray:
    """Computes BLEU from summed statistics with sacrebleu's formula.

    Args:
        statistics: (..., 10) integers of any numeric type.
        effective_order: whether to ignore orders without n-grams in the hypotheses, as usual for the
            BLEU of single sentences.

    Returns:
        (...) float64, 0 to 100.

    >>> bleu([6, 4, 2, 1, 7, 6, 5, 4, 7, 8]).round(4).tolist()
    42.3837
    """
    statistics = np.asarray(statistics, dtype=np.float64)
    correct, total = statistics[..., CORRECT], statistics[..., TOTAL]
    # NIST smoothing: the first order without a match counts as 1/2 match, the second as 1/4, and so on.
    halvings = np.cumsum(correct == 0, axis=-1)
    smoothed = np.where(correct > 0, correct, np.exp2(-halvings))
    written = total > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(100.0 * smoothed / total)
        orders = written.sum(axis=-1) if effective_order else ORDERS
        means = np.where(written, logs, 0.0).sum(axis=-1) / orders
        scores = brevity_penalty(statistics) * np.exp(means)
    defined = (correct > 0).any(axis=-1) & (effective_order | written.all(axis=-1))
    return np.where(defined, np.minimum(scores, 100.0), 0.0)  # exp(log(100)) > 100


def brevity_penalty(statistics: np.ndarray) -> np.ndarray:
    """Computes BLEU's brevity penalty: (..., 10) -> (...) float64, from 0 to 1."""
    hypothesis = np.asarray(statistics[..., HYPOTHESIS_LENGTH], dtype=np.float64)
    reference = np.asarray(statistics[..., REFERENCE_LENGTH], dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(hypothesis >= reference, 1.0, np.exp(1.0 - reference / hypothesis))


def enough_matches(statistics: np.ndarray) -> np.ndarray:
    """Tells whether enough 4-grams match for a reliable BLEU interval: (..., 10) -> (...) bool."""
    return np.asarray(statistics[..., ORDERS - 1] >= FEWEST_MATCHES)


class Bleu(Score):
    """Case-sensitive corpus BLEU on tokens (Papineni et al., 2002)."""

    key = "bleu"
    title = "BLEU"
    unit = "points"
    best = 100.0
    worst = 0.0
    field = "bleu_stats"

    def combine(self, sums: np.ndarray) -> np.ndarray:
        return bleu(sums)

    def enough(self, sums: np.ndarray) -> np.ndarray:
        return enough_matches(sums)


class BleuNoUnk(Bleu):
    """BLEU on sentences without unknown words, translated without `<unk>` (Table 1 of the paper)."""

    key = "bleu_no_unk"
    title = "BLEU, no UNK"
    field = "bleu_stats_no_unk"


class BleuPrecisions(Bleu):
    """BLEU without its brevity penalty: the geometric mean of the precisions of 1- to 4-grams."""

    key = "bleu_precisions"
    title = "BLEU without brevity penalty"

    def combine(self, sums: np.ndarray) -> np.ndarray:
        return quotient(bleu(sums), brevity_penalty(sums))


class LengthRatio(Ratio):
    """Number of words in the hypotheses divided by the number of words in the references."""

    key = "length_ratio"
    title = "Length ratio"
    unit = "ratio"
    digits = 3
    higher_is_better: ClassVar[bool | None] = None
    field = "bleu_stats"
    above = HYPOTHESIS_LENGTH
    below = REFERENCE_LENGTH


class BrevityPenalty(LengthRatio):
    """The brevity penalty of BLEU, from 0 to 1."""

    key = "brevity_penalty"
    title = "Brevity penalty"
    higher_is_better = True
    best = 1.0
    worst = 0.0

    def combine(self, sums: np.ndarray) -> np.ndarray:
        return brevity_penalty(sums)
