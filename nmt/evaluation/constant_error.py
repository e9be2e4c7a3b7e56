"""A system whose errors do not depend on length, made from the references.

Words of a reference are replaced by words of another place in the text, dropped or repeated, and
swapped with a neighbour. Every rate is the same whatever the length of the sentence. As in real
systems, sentences differ in the rate of replaced words, and neighbouring words share their fate; how
much so does not depend on length either. The rates are solved so that BLEU, the ratio of lengths and
the precisions of 1-grams and of 4-grams over the whole set are those of a given system. What the curve
of such a system does is the score's own dependence on length.

Legend: N sentences, T words of all references.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import root
from scipy.special import betaincinv, expit, logit

from nmt.evaluation.bleu import (
    HYPOTHESIS_LENGTH,
    ORDERS,
    REFERENCE_LENGTH,
    TOTAL,
    WIDTH,
    bleu_scores,
)
from nmt.evaluation.external import system_record
from nmt.evaluation.records import Record, in_order

SEED = 12345
LARGEST_RATE = 0.98


@dataclass(frozen=True)
class Rates:
    """Errors a word of the reference.

    Attributes:
        replaced: mean rate of replaced words.
        variation: standard deviation of that rate between sentences, as a share of the largest
            possible one.
        clustered: probability that a word is replaced or kept as the word before it was; negative:
            the rate of words swapped with the next.
        added: words added by repetition for each word; negative: dropped.
    """

    replaced: float
    variation: float
    clustered: float
    added: float


class References:
    """References as numbers, and the random draws that errors are made from.

    The same draws serve any rates, so that what is solved for changes gradually with them.
    """

    def __init__(self, references: Sequence[Sequence[str]], seed: int = SEED) -> None:
        numbers: dict[str, int] = {}
        flat = [numbers.setdefault(word, len(numbers)) for words in references for word in words]
        generator = np.random.default_rng(seed)
        self.size, self.words, self.vocabulary = len(references), np.array(flat), list(numbers)
        self.sentence = np.repeat(np.arange(self.size), [len(words) for words in references])
        self.keys = generator.integers(2**63, size=(ORDERS, max(len(numbers), 1)), dtype=np.uint64)
        self.salts = generator.integers(2**63, size=self.size, dtype=np.uint64)
        self.other = self.words[generator.integers(max(len(flat), 1), size=len(flat))]
        self.per_sentence = generator.random(self.size)
        self.replacing, self.resizing, self.together = generator.random((3, len(flat)))
        self.starts = np.diff(self.sentence, prepend=-1) > 0
        self.ngrams = [
            np.unique(self._ngrams(self.words, self.sentence, order)[0], return_counts=True)
            for order in range(1, ORDERS + 1)
        ]

    def hypotheses(self, rates: Rates) -> tuple[np.ndarray, np.ndarray]:
        """The words with errors, and the sentence of each."""
        words = self.words.copy()
        first = (self.together[:-1] < -rates.clustered) & ~self.starts[1:]
        first[1:] &= ~first[:-1]
        places = np.flatnonzero(first)
        words[places], words[places + 1] = words[places + 1], words[places]
        rate = np.full(self.size, rates.replaced)
        if 0 < rates.replaced < 1 and rates.variation > 0:
            concentration = 1 / rates.variation**2 - 1
            ends = rates.replaced * concentration, (1 - rates.replaced) * concentration
            rate = betaincinv(*ends, self.per_sentence)
        alone = (self.together >= rates.clustered) | self.starts
        drawn = self.replacing[np.maximum.accumulate(np.where(alone, np.arange(len(words)), 0))]
        words = np.where(drawn < rate[self.sentence], self.other, words)
        resized = self.resizing < abs(rates.added)
        counts = np.where(resized, 2 if rates.added > 0 else 0, 1)
        return np.repeat(words, counts), np.repeat(self.sentence, counts)

    def statistics(self, words: np.ndarray, sentence: np.ndarray) -> np.ndarray:
        """The statistics of BLEU of hypotheses: (N, 10), equal to `bleu.sentence_statistics`."""
        table = np.zeros((self.size, WIDTH))
        for order, (known, limits) in enumerate(self.ngrams, start=1):
            grams, of = self._ngrams(words, sentence, order)
            table[:, TOTAL.start + order - 1] = np.bincount(of, minlength=self.size)
            if not len(grams) or not len(known):
                continue
            found, first, counts = np.unique(grams, return_index=True, return_counts=True)
            places = np.minimum(np.searchsorted(known, found), len(known) - 1)
            matches = np.where(known[places] == found, np.minimum(counts, limits[places]), 0)
            table[:, order - 1] = np.bincount(of[first], matches, minlength=self.size)
        table[:, HYPOTHESIS_LENGTH] = np.bincount(sentence, minlength=self.size)
        table[:, REFERENCE_LENGTH] = np.bincount(self.sentence, minlength=self.size)
        return table

    def _ngrams(
        self, words: np.ndarray, sentence: np.ndarray, order: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """A 64-bit number for each n-gram of a sentence, and the sentence that it belongs to."""
        count = max(len(words) - order + 1, 0)
        inside = sentence[:count] == sentence[len(sentence) - count :]
        grams = self.salts[sentence[:count]].copy()
        for place in range(order):
            grams += self.keys[place, words[place : place + count]] * np.uint64(2 * order + 1)
        return grams[inside], sentence[:count][inside]


def solve_rates(references: References, wanted: np.ndarray) -> Rates:
    """The rates that give the sums of a system's statistics of BLEU (10,).

    Precisions that no such rates give are met as closely as possible.
    """
    wanted = np.asarray(wanted, dtype=np.float64)
    ratio = wanted[HYPOTHESIS_LENGTH] / max(wanted[REFERENCE_LENGTH], 1)
    added = float(np.clip(ratio - 1, -LARGEST_RATE, LARGEST_RATE))

    def features(sums: np.ndarray) -> np.ndarray:
        matches, totals = np.maximum(sums[:ORDERS], 0.5), np.maximum(sums[TOTAL], 1)
        logs = np.log(matches / totals)
        return np.array([logs[0], logs[3], np.log(max(bleu_scores(sums), 1e-3))])

    def rates(values: np.ndarray) -> Rates:
        replaced, variation = expit(values[:2]).tolist()
        return Rates(replaced, variation, float(np.tanh(values[2])), added)

    def residuals(values: np.ndarray) -> np.ndarray:
        table = references.statistics(*references.hypotheses(rates(values)))
        return features(table.sum(axis=0)) - goal

    goal = features(wanted)
    start = logit(np.clip(1 - np.exp(goal[0]), 0.02, 0.9)), logit(0.3), 0.1
    best = root(residuals, start, options={"eps": 1e-3, "xtol": 1e-3, "maxfev": 40})
    return rates(best.x)


def constant_error_records(records: Sequence[Record], seed: int = SEED) -> list[Record]:
    """Records of a system with constant rates of errors that scores as a given one over the whole set.

    Args:
        records: of the given system, with `reference` and `bleu_stats`.
        seed: of the errors.
    """
    ordered = in_order(records)
    references = References([record["reference"] for record in ordered], seed)
    rates = solve_rates(references, np.sum([record["bleu_stats"] for record in ordered], axis=0))
    words, sentence = references.hypotheses(rates)
    ends = np.searchsorted(sentence, np.arange(len(ordered) + 1))
    texts = [references.vocabulary[number] for number in words.tolist()]
    return [
        system_record(record, hypothesis := texts[first:last], " ".join(hypothesis))
        for record, first, last in zip(ordered, ends[:-1], ends[1:], strict=True)
    ]
