"""Simulates systems whose error rates do not depend on sentence length.

The outputs of a simulated system are the references with random errors. Words are dropped, repeated, swapped
with a neighbour, or replaced by random words of the references. As in real systems, some sentences have
more replaced words than others, and errors of neighbouring words are correlated. Both effects are the same
at every sentence length.

The error rates are fitted to a given system. On the whole test set, the simulated system has the same BLEU,
length ratio, and precisions of 1-grams and 4-grams. Its length curves show how a score depends on sentence
length at constant error rates. To reduce noise, the statistics of `DRAWS` simulated systems are averaged.

A large test set is simulated in parts, each with its own error rates, which limits memory. With k parts, a part has
every k-th sentence, so all parts have about the same lengths and errors.

In array shapes, N is the number of sentences.
"""

from __future__ import annotations

import copy
import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, binom

from nmt.evaluation.measured import Measured, statistics_tables
from nmt.evaluation.records import Record, in_order, system_record
from nmt.evaluation.scores import Score
from nmt.evaluation.scores.bleu import (
    CORRECT,
    HYPOTHESIS_LENGTH,
    ORDERS,
    TOTAL,
    WIDTH,
    Bleu,
    padded,
    statistics_of,
)
from nmt.evaluation.scores.model import AttentionEntropy, NllPerWord
from nmt.evaluation.scores.ngrams import ReferenceNgrams, Texts
from nmt.evaluation.scores.text import TextScore
from nmt.utils.processes import map_in_processes
from nmt.utils.progress import Stage

SEED = 12345
DRAWS = 4  # number of simulated systems to average
MOST = 20_000  # maximum number of sentences in a part
# Lower and upper bounds of `replaced`, `variation` and `clustered`. Below -0.5, swaps would be rarer again.
BOUNDS = (0.001, 0.01, -0.5), (0.96, 0.96, 0.95)
ROUNDS = 12  # maximum number of rounds in `solve_rates`
BLEU_WEIGHT = 10  # weight of the mean log precision; 1-gram and 4-gram log precisions have weight 1
CLOSE = 0.002  # `solve_rates` stops when all weighted log precisions are this close to the goal


@dataclass(frozen=True)
class Rates:
    """Error rates per word of the reference."""

    replaced: float  # rate of replaced words, averaged over sentences; between 0 and 1
    variation: float  # its standard deviation over sentences, divided by the largest possible one
    # if positive: the probability that one random number decides about a word and the previous word
    # if negative: minus the probability that a word is drawn to swap places with the next word
    clustered: float
    added: float  # positive: rate of repeated words; negative: minus the rate of dropped words


class References:
    """References as word indices, and the random numbers that decide where errors occur.

    The random numbers are the same for all rates, so a small change of a rate changes few words.

    Args:
        references: one or more references per sentence. Errors are inserted into the first one.
    """

    def __init__(self, references: Sequence[Sequence[Sequence[str]]]) -> None:
        numbers: dict[str, int] = {}
        texts = []
        for chosen in zip(*padded(references), strict=True):
            flat = [numbers.setdefault(word, len(numbers)) for words in chosen for word in words]
            texts.append(Texts(np.array(flat, dtype=np.uint64), np.array(list(map(len, chosen)))))
        self.ngrams = ReferenceNgrams(texts, ORDERS)
        self.words = texts[0].symbols.astype(np.int64)
        self.sentences = len(references)
        self.sentence = np.repeat(np.arange(self.sentences), texts[0].lengths)
        self.starts = np.diff(self.sentence, prepend=-1) > 0
        self.vocabulary = list(numbers)

    def draw(self, seed: int) -> None:
        """Draws a replacement and three uniform numbers per word, and one uniform number per sentence."""
        generator = np.random.default_rng(seed)
        size = len(self.words)
        self.other = self.words[generator.integers(size, size=size)]
        self.replacing, self.resizing, self.together = generator.random((3, size))
        self.per_sentence = generator.random(self.sentences)

    def hypotheses(self, rates: Rates) -> tuple[np.ndarray, np.ndarray]:
        """Returns the words with errors, and the sentence index of each word."""
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
        """Computes the BLEU statistics (N, 10) of all sentences."""
        lengths = np.bincount(sentence, minlength=self.sentences)
        return statistics_of(Texts(words.astype(np.uint64), lengths), self.ngrams)


def expected_precisions(rates: Rates) -> np.ndarray:
    """Returns the expected precisions (4,) if no words are added and no n-gram matches by chance."""
    concentration = 1 / rates.variation**2 - 1
    steps = np.arange(ORDERS)
    kept = (1 - rates.replaced) * concentration
    moments = np.cumprod((kept + steps) / (concentration + steps))
    # Clustered words share a random number, so n words depend on 1 to n numbers, with the probabilities `chances`.
    shared, swapped = max(rates.clustered, 0.0), max(-rates.clustered, 0.0)
    words = np.arange(ORDERS)[:, None]
    chances = (1 - shared) ** steps * shared ** np.maximum(words - steps, 0) * binom(words, steps)
    # A word is swapped with the next word if its own draw is a success and the previous draw is a failure. None
    # of n words is swapped if no success follows a failure in their n draws and the two draws before them.
    successes = map(np.arange, range(5, ORDERS + 4))
    in_order = [np.sum(swapped**k * (1 - swapped) ** k[::-1]) for k in successes]
    return chances @ moments * [1.0, *in_order]


def solve_rates(references: References, wanted: np.ndarray) -> Rates:
    """Finds the rates that reproduce the summed BLEU statistics (10,) of a system.

    Each round fits the rates so that the expected precisions equal a target. It then simulates errors with
    these rates, and corrects the target by the difference between simulated and expected precisions.
    If no rates match all precisions, the closest rates are returned; BLEU has the largest weight in the distance.
    """
    from scipy.optimize import least_squares  # imported here because it takes half a second

    excess = float(np.clip(wanted[HYPOTHESIS_LENGTH] / len(references.words) - 1, -0.98, 0.98))
    # Choose the rate so that the number of draws below it equals the number of words to add or drop.
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


def simulated_systems(
    records: Sequence[Record], draws: int = DRAWS, seed: int = SEED
) -> Iterator[tuple[np.ndarray, Callable[[], list[Record]]]]:
    """Simulates systems with the BLEU of a given system and constant error rates.

    All simulated systems have the same rates, but different errors.

    Args:
        records: records of the N translations of the given system.
        draws: number of simulated systems.
        seed: seed of the errors of the first simulated system; the next one has the next seed.

    Yields:
        For each system, its BLEU statistics (N, 10), and a function that builds its records. The records have no
        text and no `bleu_no_unk`, because errors are made in tokens.
    """
    ordered = in_order(records)
    references = _references_of(
        tuple(
            tuple(map(tuple, [record["reference"], *record.get("more_references", [])]))
            for record in ordered
        )
    )
    references.draw(seed)
    rates = solve_rates(references, np.sum([record["bleu_stats"] for record in ordered], axis=0))

    def build(words: np.ndarray, sentence: np.ndarray, statistics: np.ndarray) -> list[Record]:
        ends = np.searchsorted(sentence, np.arange(len(ordered) + 1))
        written = [references.vocabulary[index] for index in words.tolist()]
        hypotheses = [written[first:last] for first, last in itertools.pairwise(ends)]
        missing = {"no_unk": None, "raw_reference": None}
        return [
            system_record(record | missing, hypothesis, " ".join(hypothesis), counts)
            for record, hypothesis, counts in zip(
                ordered, hypotheses, statistics.tolist(), strict=True
            )
        ]

    for number in range(draws):
        references.draw(seed + number)
        words, sentence = references.hypotheses(rates)
        statistics = references.statistics(words, sentence)
        yield statistics, functools.partial(build, words, sentence, statistics)


@functools.lru_cache(maxsize=1)
def _references_of(texts: tuple[tuple[tuple[str, ...], ...], ...]) -> References:
    """Returns the references; all systems of a test set have the same."""
    return References(texts)


def measure_constant_error(
    records: Sequence[Sequence[Record]], measured: Sequence[Measured], *, shown: bool = False
) -> list[Measured]:
    """Simulates systems with constant error rates for each run, and averages their statistics.

    Args:
        records: records of each run.
        measured: statistics of each run. The same scores are computed for the simulated systems.
    """
    ordered = [in_order(rows) for rows in records]
    counts = [max(1, math.ceil(len(rows) / MOST)) for rows in ordered]
    # All runs of a part come one after another, because they share the references.
    jobs = sorted((part, run) for run, count in enumerate(counts) for part in range(count))

    def tables(job: tuple[int, int]) -> dict[str, np.ndarray]:
        """Returns the mean statistics of BLEU, and of each score that needs records, for a part of a run."""
        part, run = job
        own = ordered[run][part :: counts[run]]
        others = {key: s for key, s in measured[run].scores.items() if _needs_records(s)}
        if not any(record["reference"] for record in own):
            unknown = np.full((len(own), 1), np.nan)
            return {Bleu.field: np.zeros((len(own), WIDTH)), **dict.fromkeys(others, unknown)}
        draws = [
            {Bleu.field: statistics}
            | statistics_tables(others, build() if others else [], compute_slow=False)
            for statistics, build in simulated_systems(own, seed=SEED + DRAWS * part)
        ]
        return {key: np.mean([each[key] for each in draws], axis=0) for key in draws[0]}

    # A user's score may use threads, for example of torch, which do not survive a fork.
    users = any(_needs_records(score) for each in measured for score in each.scores.values())
    total = sum(map(len, ordered))
    results = map(tables, jobs) if users else map_in_processes(tables, jobs, total)
    parts: list[list[dict[str, np.ndarray]]] = [[] for _ in ordered]
    with Stage("simulating constant error rates", total, "sentence", shown=shown) as stage:
        for (_, run), found in zip(jobs, results, strict=True):
            parts[run].append(found)
            stage.advance(len(found[Bleu.field]))
    systems = [copy.copy(each) for each in measured]
    for system, of_parts in zip(systems, parts, strict=True):
        found = {key: _interleaved([part[key] for part in of_parts]) for key in of_parts[0]}
        unknown = np.full((len(system.ids), 1), np.nan)
        system.tables = {
            key: found.get(key, found[Bleu.field] if score.field == Bleu.field else unknown)
            for key, score in system.scores.items()
        }
    return systems


def _needs_records(score: Score) -> bool:
    """Tells whether a score has statistics of its own; others read BLEU's, or need text or a model and have none."""
    known = (Score, TextScore, NllPerWord, AttentionEntropy)
    return all(type(score).statistics is not each.statistics for each in known)


def _interleaved(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Joins the tables of k parts; row i of part p becomes row p + k i. A part without statistics has one column."""
    shape = sum(map(len, parts)), max(part.shape[1] for part in parts)
    table = np.empty(shape)
    for index, part in enumerate(parts):
        table[index :: len(parts)] = part
    return table
