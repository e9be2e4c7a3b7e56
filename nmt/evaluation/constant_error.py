"""Simulates a system whose errors do not depend on sentence length, from the references.

Words of a reference are dropped, repeated, swapped with a neighbour, or replaced by words from
elsewhere in the text. Every rate is the same at every sentence length. As in real systems, sentences differ
in the rate of replaced words, and errors of neighbouring words are correlated; neither effect depends
on length. The rates are chosen so that BLEU, the length ratio and the precisions of 1-grams and 4-grams
over the whole set equal those of a given system. The curve of the simulated system then shows how the
score itself depends on length. The statistics of `DRAWS` such systems are averaged, so that their random
errors add little to an interval.

Legend: N sentences, T words in all first references together.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, binom

from nmt.evaluation.records import Record, in_order, system_record
from nmt.evaluation.scores.bleu import (
    CORRECT,
    HYPOTHESIS_LENGTH,
    ORDERS,
    REFERENCE_LENGTH,
    TOTAL,
)
from nmt.evaluation.summary import Measured
from nmt.utils.processes import map_in_processes
from nmt.utils.progress import Stage

SEED = 12345
DRAWS = 4  # number of simulated systems that are averaged
# Lower and upper bounds of `replaced`, `variation` and `clustered`; beyond a rate of 0.5, swaps get rarer
BOUNDS = (0.001, 0.01, -0.5), (0.96, 0.96, 0.95)
ROUNDS = 12  # maximum number of rounds of the search for rates
BLEU_WEIGHT = 10  # weight of the mean log precision; the weight of 1-grams and of 4-grams is 1
CLOSE = 0.002  # the search ends when all weighted log precisions miss the target by less


@dataclass(frozen=True)
class Rates:
    """Errors per word of the reference."""

    replaced: float  # mean rate of replaced words, between 0 and 1
    variation: float  # standard deviation of this rate over sentences, as a share of its maximum
    # if positive, probability that a word shares the error draw of the word before; if negative, minus
    # the probability that a word is drawn to swap places with the next
    clustered: float
    added: float  # rate of repeated words; negative: minus the rate of dropped words


class References:
    """References, with words as numbers, and the random draws that decide on errors.

    The draws are the same for all rates, so that precisions change gradually with the rates.

    Args:
        references: one or more for each sentence; the errors are put into the first reference.
    """

    def __init__(self, references: Sequence[Sequence[Sequence[str]]]) -> None:
        numbers: dict[str, int] = {}
        texts = []
        most = max(map(len, references))
        # A sentence with fewer references repeats its first reference, which changes no statistic.
        padded = [[*each, *[each[0]] * (most - len(each))] for each in references]
        self.lengths = np.array([list(map(len, each)) for each in padded])  # (N, references)
        for sizes, chosen in zip(self.lengths.T, zip(*padded, strict=True), strict=True):
            flat = [numbers.setdefault(word, len(numbers)) for words in chosen for word in words]
            texts.append((np.array(flat, dtype=np.int64), np.repeat(np.arange(len(sizes)), sizes)))
        self.words, self.sentence = texts[0]
        self.starts = np.diff(self.sentence, prepend=-1) > 0
        self.vocabulary = list(numbers)

        self.sentences = len(references)
        generator = np.random.default_rng(SEED)
        self.keys = generator.integers(2**63, size=(ORDERS, len(numbers)), dtype=np.uint64)
        self.salts = generator.integers(2**63, size=self.sentences, dtype=np.uint64)
        self.limits = []  # for each order: the n-grams, and the largest count of each in one reference
        for order in range(ORDERS):
            grams, counts, _ = zip(*(self._ngrams(*text, order) for text in texts), strict=True)
            known, indices = np.unique(np.concatenate(grams), return_inverse=True)
            limits = np.zeros(len(known), dtype=np.int64)
            np.maximum.at(limits, indices, np.concatenate(counts))
            self.limits.append((known, limits))

    def draw(self, seed: int) -> None:
        """Draws a replacement and uniform numbers for each word, and a uniform number for each sentence."""
        generator = np.random.default_rng(seed)
        size = len(self.words)
        self.other = self.words[generator.integers(size, size=size)]
        self.replacing, self.resizing, self.together = generator.random((3, size))
        self.per_sentence = generator.random(self.sentences)

    def hypotheses(self, rates: Rates) -> tuple[np.ndarray, np.ndarray]:
        """Returns the words with errors, and the sentence of each word."""
        words = self.words.copy()
        first = (self.together[:-1] < -rates.clustered) & ~self.starts[1:]
        first[1:] &= ~first[:-1]
        indices = np.flatnonzero(first)
        words[indices], words[indices + 1] = words[indices + 1], words[indices]

        concentration = 1 / rates.variation**2 - 1
        ends = rates.replaced * concentration, (1 - rates.replaced) * concentration
        rate = betaincinv(*ends, self.per_sentence)[self.sentence]
        alone = (self.together >= rates.clustered) | self.starts
        drawn = self.replacing[np.maximum.accumulate(np.where(alone, np.arange(len(words)), 0))]
        words = np.where(drawn < rate, self.other, words)

        resized = self.resizing < abs(rates.added)
        counts = np.where(resized, 2 if rates.added > 0 else 0, 1)
        return np.repeat(words, counts), np.repeat(self.sentence, counts)

    def statistics(self, words: np.ndarray, sentence: np.ndarray) -> np.ndarray:
        """Computes the BLEU statistics of each sentence: (N, 10) int64.

        Equals `nmt.evaluation.scores.bleu.sentence_statistics`, but for all sentences at once.
        """
        table = np.zeros((self.sentences, 2 * ORDERS + 2), dtype=np.int64)
        for order, (known, limits) in enumerate(self.limits):
            grams, counts, place = self._ngrams(words, sentence, order)
            _, own, indices = np.intersect1d(grams, known, assume_unique=True, return_indices=True)
            np.add.at(table[:, order], place[own], np.minimum(counts[own], limits[indices]))
            np.add.at(table[:, ORDERS + order], place, counts)
        written = np.bincount(sentence, minlength=self.sentences)
        table[:, HYPOTHESIS_LENGTH] = written
        # the closest reference length, the shorter one if two are equally close
        distance = np.abs(self.lengths - written[:, None]) + self.lengths / 1e6
        closest = np.argmin(distance, axis=1)[:, None]
        table[:, REFERENCE_LENGTH] = np.take_along_axis(self.lengths, closest, axis=1)[:, 0]
        return table

    def _ngrams(
        self, words: np.ndarray, sentence: np.ndarray, order: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns the n-grams of `order` + 1 words as 64-bit numbers, and each one's count and sentence."""
        count = max(len(words) - order, 0)
        inside = sentence[:count] == sentence[len(sentence) - count :]
        grams = self.salts[sentence[:count]]
        for index in range(order + 1):
            grams = grams + self.keys[index, words[index : index + count]]
        unique, first, counts = np.unique(grams[inside], return_index=True, return_counts=True)
        return unique, counts, sentence[:count][inside][first]


def expected_precisions(rates: Rates) -> np.ndarray:
    """Returns the precisions (4,) that are expected without added words and without chance matches."""
    concentration = 1 / rates.variation**2 - 1
    steps = np.arange(ORDERS)
    kept = (1 - rates.replaced) * concentration
    moments = np.cumprod((kept + steps) / (concentration + steps))
    # Clustered words share a draw, so n words depend on 1 to n draws.
    shared, swapped = max(rates.clustered, 0.0), max(-rates.clustered, 0.0)
    words = np.arange(ORDERS)[:, None]
    chances = (1 - shared) ** steps * shared ** np.maximum(words - steps, 0) * binom(words, steps)
    # Two neighbours are swapped if their draw is a success and the previous draw is not. n words keep
    # their order if all successes come first among n + 2 draws.
    successes = map(np.arange, range(5, ORDERS + 4))
    in_order = [np.sum(swapped**k * (1 - swapped) ** k[::-1]) for k in successes]
    return chances @ moments * [1.0, *in_order]


def solve_rates(references: References, wanted: np.ndarray) -> Rates:
    """Finds the rates that reproduce the summed BLEU statistics (10,) of a system.

    Each round finds rates whose expected precisions equal a target, draws errors with these rates, and
    corrects the target by the precisions of the drawn errors. If no rates reach all precisions, the
    function returns the closest rates; BLEU has the largest weight.
    """
    from scipy.optimize import least_squares  # this import takes half a second

    excess = float(np.clip(wanted[HYPOTHESIS_LENGTH] / len(references.words) - 1, -0.98, 0.98))
    # As many draws are below this quantile as words must be added or dropped.
    added = float(np.sign(excess) * np.quantile(references.resizing, abs(excess)))

    def rates(values: np.ndarray) -> Rates:
        replaced, variation, clustered = values.tolist()
        return Rates(replaced, variation, clustered, added)

    def features(precisions: np.ndarray) -> np.ndarray:
        logs = np.log(np.maximum(precisions, 1e-6))
        return np.array([logs[0], logs[-1], BLEU_WEIGHT * logs.mean()])

    def missed(values: np.ndarray) -> np.ndarray:
        return features(expected_precisions(rates(values))) - target

    goal = features(wanted[CORRECT] / np.maximum(wanted[TOTAL], 1))
    values = np.array([np.clip(1 - np.exp(goal[0]), 0.02, 0.9), 0.3, 0.1])
    best = values
    least = np.inf
    target = goal
    for _ in range(ROUNDS):
        values = least_squares(missed, values, bounds=BOUNDS).x
        found = references.statistics(*references.hypotheses(rates(values))).sum(axis=0)
        residuals = features(found[CORRECT] / np.maximum(found[TOTAL], 1)) - goal
        if np.linalg.norm(residuals) < least:
            best = values
            least = float(np.linalg.norm(residuals))
        if np.abs(residuals).max() < CLOSE:
            break
        target = target + missed(values) - residuals
    return rates(best)


def constant_error_records(records: Sequence[Record], draws: int = DRAWS) -> Iterator[list[Record]]:
    """Yields the records of each simulated system, with constant error rates and the BLEU of the given system.

    All simulated systems have the same rates, but different errors. They have no scores of detokenised
    text, since their errors are in tokens, and no scores without unknown words.

    Args:
        records: records of the given system.
    """
    ordered = in_order(records)
    texts = [[record["reference"], *record.get("more_references", [])] for record in ordered]
    references = References(texts)
    references.draw(SEED)
    rates = solve_rates(references, np.sum([record["bleu_stats"] for record in ordered], axis=0))
    for number in range(draws):
        references.draw(SEED + number)
        words, sentence = references.hypotheses(rates)
        ends = np.searchsorted(sentence, np.arange(len(ordered) + 1))
        written = [references.vocabulary[index] for index in words.tolist()]
        hypotheses = [written[first:last] for first, last in itertools.pairwise(ends)]
        missing = {"no_unk": None, "raw_reference": None}
        statistics = references.statistics(words, sentence).tolist()
        yield [
            system_record(record | missing, hypothesis, " ".join(hypothesis), counts)
            for record, hypothesis, counts in zip(ordered, hypotheses, statistics, strict=True)
        ]


def measure_constant_error(
    records: Sequence[Sequence[Record]], measured: Sequence[Measured], *, shown: bool = False
) -> list[Measured]:
    """Measures, for each run, systems with constant error rates, and averages their statistics.

    Args:
        records: records of each run.
        measured: statistics of each run; those of the same scores are computed for the simulated systems.
    """

    def tables(run: int) -> dict[str, np.ndarray]:
        draws = [
            {key: s.table(each, compute=not s.slow) for key, s in measured[run].scores.items()}
            for each in constant_error_records(records[run])
        ]
        return {key: np.mean([each[key] for each in draws], axis=0) for key in draws[0]}

    systems = []
    with Stage("simulating constant error rates", len(records), "run", shown=shown) as stage:
        for run, simulated in enumerate(
            map_in_processes(tables, range(len(records)), sum(map(len, records)))
        ):
            systems.append(copy.copy(measured[run]))
            systems[-1].tables = simulated
            stage.advance()
    return systems
