"""Simulates test sets, and counts how often intervals of `nmt.evaluation` contain the true value.

    python -m benchmarks.coverage [--sets 1000] [--only natural] [--csv docs/results/coverage.csv]
    python -m benchmarks.coverage --bands [--sets 1000] [--csv docs/results/bands.csv]
    python -m benchmarks.coverage --constant 0.2 [--sets 500] [--loss 0.1]

A simulated translation has as many words as its source. Each sentence has a probability that a word is right,
drawn from a beta distribution. All systems and seeds share these probabilities. An n-gram matches if its n words
are right. The expected BLEU at each length is therefore known. Prints a table. Each row simulates another
combination of a curve of BLEU over length, a distribution of lengths, and differences between seeds or documents.
All columns except `s` (seconds) are percentages of test sets whose interval contains the true value of a quantity:

- `curve`: BLEU at a length (mean of the percentages over all lengths)
- `retention`: the BLEU at 50 words divided by the BLEU at 10 words
- `10 %`, `25 %`, `50 %`: the length at which this share of the BLEU at 10 words is lost
- `exact`: retention without smoothing; the true values of the other columns come from the smoothed curve

`--bands` prints the percentages of test sets in which the band of the difference excludes 0 at some length: for two
equal systems (nominal: 5), and for a system that is worse at all lengths. *Equal* seeds differ only in
what they do to single words; *similar* seeds differ in BLEU, with a standard deviation of about 1.5 %, and
other seeds with one of about 6 %.

`--constant` simulates systems that replace spans of words, omit words and insert words. The error rate
differs between sentences, but does not depend on length. The test of excess retention compares the fall of
BLEU from 10 to 50 words with that of a system with constant error rates. Prints the percentages of test
sets in which the test reports a steeper fall, and a flatter fall (nominal: 2.5 each). With `--loss 0.1`,
added errors in sentences of more than 10 words lower the BLEU at 50 words by 10 %. The percentage
of steeper falls is then the power of the test.

N is the number of sentences, n the number of seeds.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit

from nmt.evaluation.compared_curve import difference
from nmt.evaluation.constant_error import measure_constant_error
from nmt.evaluation.length_curve import (
    LONG,
    LOST,
    SHORT,
    Curve,
    Kernel,
    excess_retention,
    kernel,
    length_curves,
)
from nmt.evaluation.measured import Measured
from nmt.evaluation.resampling import count_documents
from nmt.evaluation.scores import REGISTERED
from nmt.evaluation.scores.bleu import all_statistics

BLEU = REGISTERED["bleu"]
LONGEST = 100  # number of words in the longest sentence
LONGEST_EVER = 400  # number of words in the longest paragraph
SHIFT = 0.5  # standard deviation of the documents' shifts of a logit (see `simulated`)
CONCENTRATION = 12.0  # alpha + beta of the beta distribution
WORSE = 0.98  # see `bands`; lowers BLEU by about 5 %
WARM_UP = 30  # a span of errors can start up to this many words before a sentence
POPULATION = 100_000  # number of sentences from which the true values are computed
ORDERS = np.arange(1, 5)
Fall = Callable[[np.ndarray], np.ndarray]

FALLS: dict[str, Fall] = {  # expected BLEU of a sentence of x words
    "exponential": lambda x: 56 * np.exp(-x / 40),
    "power law": lambda x: 60 * (x / 5) ** -0.6,
    "linear": lambda x: 56 - 0.55 * x,
    "flat at 56": lambda x: np.full_like(x, 56.0),
    "flat at 10": lambda x: np.full_like(x, 10.0),
    "falls from 30": lambda x: 50 * np.minimum(1, 30 / x),
    "falls from 50": lambda x: 50 * np.minimum(1, 50 / x),
}


@dataclass(frozen=True)
class Seeds:
    """How seeds differ: each seed multiplies the probability of a right word by its own factor."""

    count: int = 1
    failing: float = 0.0  # probability that a seed fails; a failed seed has the factor 0.6
    spread: float = 0.0  # the factors of seeds that do not fail are in 0.95 ± spread

    def draw(self, generator: np.random.Generator) -> np.ndarray:
        """Draws the factors (n,) of all seeds."""
        fails = generator.random(self.count) < self.failing
        usual = 0.95 + self.spread * generator.uniform(-1, 1, self.count)
        return np.where(fails, 0.6, usual) if self.count > 1 else np.ones(1)

    def quadrature(self) -> list[tuple[float, float]]:
        """Returns (factor, probability) pairs to compute expected values over seeds."""
        if self.count == 1:
            return [(1.0, 1.0)]
        usual = 0.95 + self.spread * np.linspace(-1, 1, 21)
        parts = [(float(factor), (1 - self.failing) / 21) for factor in usual]
        return [*parts, (0.6, self.failing)]


SEEDS = {
    "1 seed": Seeds(),
    "3 seeds": Seeds(3, spread=0.04),
    "3 seeds, 1 in 3 fails": Seeds(3, failing=1 / 3, spread=0.02),
    "2 equal seeds": Seeds(2),
    "3 equal seeds": Seeds(3),
    "3 similar seeds": Seeds(3, spread=0.01),
    "5 similar seeds": Seeds(5, spread=0.01),
    "10 similar seeds": Seeds(10, spread=0.01),
}


@dataclass(frozen=True)
class Plan:
    """The settings of the simulation for one row of the printed table.

    Attributes:
        lengths: a key of `LENGTHS`, such as `even` or `natural`.
        seeds: a key of `SEEDS`.
        fall: a key of `FALLS`.
        documents: number of documents, which differ in difficulty; 0: sentences are independent.
        known: whether the bootstrap resamples documents instead of sentences.
        truncated: maximum number of words of a translation; 0: no limit.
    """

    lengths: str
    seeds: str
    fall: str
    documents: int = 0
    known: bool = False
    truncated: int = 0

    @property
    def title(self) -> str:
        parts = [self.lengths, self.seeds, self.fall]
        if self.documents:
            parts.append(f"{self.documents} documents {'drawn' if self.known else 'ignored'}")
        if self.truncated:
            parts.append(f"stops after {self.truncated} words")
        return ", ".join(parts)


def moments(bleu: np.ndarray, factor: float = 1.0) -> np.ndarray:
    """Returns the probabilities (..., 4) that 1, 2, 3 or 4 neighbouring words are right, given the BLEU."""
    means = np.linspace(0.05, 0.99, 2000)
    grid = 100 * np.exp(np.log(_powers(means)).mean(axis=-1))
    return _powers(np.interp(bleu, grid, means)) * factor**ORDERS


def _powers(means: np.ndarray) -> np.ndarray:
    """Returns E[p], E[p²], E[p³] and E[p⁴] (..., 4) of beta variables p with these means."""
    steps = np.arange(4)
    first = means[..., None] * CONCENTRATION
    return np.cumprod((first + steps) / (CONCENTRATION + steps), axis=-1)


def totals(lengths: np.ndarray) -> np.ndarray:
    """Counts the 1- to 4-grams (N, 4) of sentences with these lengths (N,)."""
    return np.maximum(lengths[:, None] - (ORDERS - 1), 0)


def statistics(correct: np.ndarray, written: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Returns BLEU statistics (N, 10) from matches (N, 4), translation lengths and reference lengths."""
    words = written[:, None], lengths[:, None]
    return np.concatenate([correct, totals(written), *words], axis=1).astype(np.float64)


def draw_difficulty(
    lengths: np.ndarray,
    fall: Fall,
    generator: np.random.Generator,
    documents: np.ndarray | None = None,
) -> np.ndarray:
    """Draws the probability (N,) that a word of each sentence is right; all systems share these probabilities.

    Each document shifts the logit of the probability by a random number, with a standard deviation of `SHIFT`.
    """
    means = moments(fall(lengths.astype(float)))[:, 0]
    right = generator.beta(means * CONCENTRATION, (1 - means) * CONCENTRATION)
    if documents is None:
        return right
    shift = generator.normal(0, SHIFT, documents.max() + 1)[documents]
    return expit(logit(np.clip(right, 1e-6, 1 - 1e-6)) + shift)


def translate(
    lengths: np.ndarray,
    right: np.ndarray,
    factors: np.ndarray,
    generator: np.random.Generator,
    truncated: int = 0,
) -> Iterator[np.ndarray]:
    """Yields the BLEU statistics (N, 10) of each seed of a system.

    Args:
        right: (N,) probability that a word is right; each seed multiplies it by its own factor.
        truncated: maximum number of words of a translation; 0: no limit.
    """
    written = np.minimum(lengths, truncated or LONGEST_EVER)
    inside = np.arange(lengths.max()) < written[:, None]
    for factor in factors:
        matches = (generator.random(inside.shape) < (right * factor)[:, None]) & inside
        correct = [matches.sum(axis=1)]
        for _ in ORDERS[1:]:
            matches = matches[:, 1:] & inside[:, : matches.shape[1] - 1] & matches[:, :-1]
            correct.append(matches.sum(axis=1))
        yield statistics(np.stack(correct, axis=1), written, lengths)


def curve_of(
    of: Kernel, tables: Sequence[np.ndarray], resamples: int, documents: np.ndarray | None
) -> Curve:
    """Computes the curve of a system from the BLEU statistics of its seeds."""

    def influence() -> np.ndarray:
        return np.mean([of.influence(each, BLEU.combine, documents) for each in tables], axis=0)

    values = np.stack([BLEU.curve(of.sums(table, resamples, documents)) for table in tables])
    return Curve(
        of,
        [values],
        documents=count_documents(documents),
        influence=influence,
        shares=of.shares(documents),
    )


LENGTHS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "even": lambda draw, size: draw.integers(1, 81, size),
    "natural": lambda draw, size: draw.lognormal(np.log(20), 0.6, size),
    "heavy-tailed": lambda draw, size: 8 * (1 + draw.pareto(1.6, size)),
    "two lengths": lambda draw, size: draw.normal(np.where(draw.random(size) < 0.5, 10, 50), 6),
    "paragraphs": lambda draw, size: draw.lognormal(np.log(55), 0.8, size),
}


def draw_lengths(kind: str, size: int, generator: np.random.Generator) -> np.ndarray:
    """Draws lengths (N,) of at most `LONGEST` words, or `LONGEST_EVER` for paragraphs."""
    most = LONGEST_EVER if kind == "paragraphs" else LONGEST
    return np.clip(np.round(LENGTHS[kind](generator, size)), 1, most).astype(int)


def draw_documents(plan: Plan, size: int) -> np.ndarray | None:
    """Returns document numbers (N,) for documents of equal size, or None if there are no documents."""
    return np.arange(size) * plan.documents // size if plan.documents else None


def truth(plan: Plan) -> Curve:
    """Computes the true curve, for an unlimited number of sentences, documents and seeds."""
    generator = np.random.default_rng(0)
    lengths = draw_lengths(plan.lengths, POPULATION, generator)
    of = kernel(lengths)
    fall = FALLS[plan.fall]
    if plan.documents or plan.truncated:  # there is no formula, so draw a large sample
        alone = np.arange(POPULATION) if plan.documents else None
        factors = np.ones(1)
        right = draw_difficulty(lengths, fall, generator, alone)
        [table] = translate(lengths, right, factors, generator, plan.truncated)
        return Curve(of, [BLEU.combine(of.sums(table, 0)[0])[None, None]])
    value = np.zeros(len(of.lengths))
    for factor, probability in SEEDS[plan.seeds].quadrature():
        correct = moments(fall(lengths.astype(float)), factor) * totals(lengths)
        value += probability * BLEU.combine(of.sums(statistics(correct, lengths, lengths), 0)[0])
    return Curve(of, [value[None, None]])


def unsmoothed_retention(fall: Fall, seeds: Seeds) -> float:
    ends = np.array([SHORT, LONG], dtype=float)
    values = [
        probability * np.exp(np.log(moments(fall(ends), factor)).mean(axis=1))
        for factor, probability in seeds.quadrature()
    ]
    short, long = np.sum(values, axis=0)
    return float(long / short)


def holds(lost: Sequence[float | None], length: float | None, last: float) -> bool:
    """Tells whether an interval contains the true length at which a share of BLEU is lost.

    If the true length is None or beyond the curve, the interval must have no upper bound.
    """
    _, low, high = lost
    if length is None or length > last:
        return high is None
    return (low or np.inf) <= length <= (high or np.inf)


def coverage(plan: Plan, sets: int, size: int, resamples: int) -> list[float]:
    """Simulates test sets and returns the cells of one row of the table."""
    expected = truth(plan)
    generator = np.random.default_rng(1)
    kept = expected.relative.at(LONG)
    fall = FALLS[plan.fall]
    simple = not (plan.documents or plan.truncated)
    exact = unsmoothed_retention(fall, SEEDS[plan.seeds]) if simple else np.nan
    crossings = [expected.lost(share)[0] for share in LOST]
    documents = draw_documents(plan, size)
    drawn = documents if plan.known else None
    band, rows = [], []

    for _ in range(sets):
        lengths = draw_lengths(plan.lengths, size, generator)
        right = draw_difficulty(lengths, fall, generator, documents)
        factors = SEEDS[plan.seeds].draw(generator)
        tables = [*translate(lengths, right, factors, generator, plan.truncated)]
        curve = curve_of(kernel(lengths), tables, resamples, drawn)
        low, high = curve.band
        goal = np.interp(np.log(curve.lengths), np.log(expected.lengths), expected.score)
        known = ~np.isnan(curve.score)
        band.append(np.mean((low <= goal)[known] & (goal <= high)[known]))
        found = curve.relative.at(LONG)
        if not np.isfinite(found.score):
            continue  # no retention, since there are too few matches at 10 or 50 words
        below, above = found.interval()
        assert below is not None
        assert above is not None
        lost = [curve.lost(share) for share in LOST]
        rows.append(
            [below <= kept.score <= above]
            + [holds(*pair, curve.lengths[-1]) for pair in zip(lost, crossings, strict=True)]
            + [below <= exact <= above if simple else np.nan]
        )
    return [100 * float(np.mean(band)), *(100 * np.mean(rows, axis=0)).tolist()]


def differs(first: Curve, second: Curve) -> bool:
    """Tells whether the band of the difference of two systems excludes 0 at some length."""
    low, high = difference(first, second).band
    return bool(((low > 0) | (high < 0)).any())


def bands(plan: Plan, sets: int, size: int, resamples: int) -> list[float]:
    """Returns the percentages of test sets whose band excludes 0 for an equal, and for a worse system.

    Each word of the worse system is right with a probability that is lower by the factor `WORSE`. The first sets
    are the same for any number of sets.
    """
    documents = draw_documents(plan, size)
    found = []
    for number in range(sets):
        generator = np.random.default_rng([1, number])
        lengths = draw_lengths(plan.lengths, size, generator)
        of = kernel(lengths)
        right = draw_difficulty(lengths, FALLS[plan.fall], generator, documents)
        system, equal, worse = (
            curve_of(of, [*translate(lengths, right, factors, generator)], resamples, documents)
            for factors in (SEEDS[plan.seeds].draw(generator) * part for part in (1, 1, WORSE))
        )
        found.append([differs(system, equal), differs(system, worse)])
    return (100 * np.mean(found, axis=0)).tolist()


def damaged(
    references: list[list[str]], rates: np.ndarray, generator: np.random.Generator
) -> list[dict[str, Any]]:
    """Simulates a system with these error rates (N,), and returns a record of each translation.

    The system replaces spans of words, omits words and inserts words. Inserted words and replacements are random
    words of the text. These errors differ from the errors that the tested function, `measure_constant_error`,
    simulates. So the function is not tested on its own model. A span can start before the first word. Otherwise
    the first words would have fewer errors, and short sentences a lower error rate.
    """
    text = np.array([word for words in references for word in words], dtype=object)
    outputs = []
    for number, words in enumerate(references):
        own = rates[number] * generator.uniform(0.4, 1.6)
        size = WARM_UP + len(words)
        draws = generator.random((3, size))
        spans = generator.geometric(0.5, size)
        others = text[generator.integers(len(text), size=(2, size))]
        left = 0
        written = []
        for place, word in enumerate([""] * WARM_UP + words):
            left = left - 1 if left else int(spans[place] * (draws[0, place] < own / 2))
            if place >= WARM_UP and draws[1, place] > 0.3 * own:
                written.append(others[0, place] if left else word)
            if place >= WARM_UP and draws[2, place] < 0.2 * own:
                written.append(others[1, place])
        outputs.append(written)
    statistics = all_statistics(outputs, [[words] for words in references]).tolist()
    return [
        {"id": number, "reference": words, "length": len(words), "bleu_stats": counts}
        for number, (words, counts) in enumerate(zip(references, statistics, strict=True))
    ]


def verdicts(rate: float, loss: float, sets: int, size: int, resamples: int) -> tuple[float, float]:
    """Returns the percentages of test sets whose BLEU falls significantly more, and less, than at constant error rates.

    Args:
        rate: error rate of sentences with up to `SHORT` words.
        loss: additional errors lower the BLEU at `LONG` words by this share.
    """
    generator = np.random.default_rng(1)
    vocabulary = 1 / np.arange(1, 3001)
    intervals = []
    for _ in range(sets):
        lengths = draw_lengths("natural", size, generator)
        flat = generator.choice(3000, lengths.sum(), p=vocabulary / vocabulary.sum())
        words = np.split(np.array([f"w{word}" for word in flat]), np.cumsum(lengths)[:-1])
        # BLEU is about proportional to the square of the share of right words. So the square root of a loss
        # in BLEU gives the share.
        place = np.clip(np.log(lengths / SHORT) / np.log(LONG / SHORT), 0, None)
        rates = 1 - (1 - rate) * np.sqrt(np.maximum(1 - loss * place, 0.1))
        given = damaged([each.tolist() for each in words], rates, generator)
        measured = [Measured(given, [], resamples)]
        systems = {"given": measured, "constant": measure_constant_error([given], measured)}
        curves = length_curves(systems, ["bleu"])["bleu"]
        excess = excess_retention(curves["given"], curves["constant"])
        intervals.append(excess.at(LONG).interval())
    low, high = np.array(intervals, dtype=np.float64).T
    return 100 * float(np.mean(high < 0)), 100 * float(np.mean(low > 0))


PLANS = [
    *(Plan(kind, "1 seed", name) for kind in ("even", "natural") for name in FALLS),
    *(Plan("even", seeds, "exponential") for seeds in ("3 seeds", "3 seeds, 1 in 3 fails")),
    *(Plan(kind, "1 seed", "power law") for kind in LENGTHS if kind not in ("even", "natural")),
    Plan("natural", "1 seed", "power law", truncated=40),
    *(
        Plan("natural", "1 seed", "power law", documents, known)
        for documents in (50, 10)
        for known in (False, True)
    ),
]
BANDS = [
    Plan("natural", seeds, "power law", documents, known=documents > 0)
    for seeds in SEEDS
    if "fails" not in seeds
    for documents in (0, 50, 10)
]
COLUMNS = ("curve", "retention", "10 %", "25 %", "50 %", "exact")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", type=int, default=1000)
    parser.add_argument("--sentences", type=int, default=1400)
    parser.add_argument("--resamples", type=int, default=500)
    parser.add_argument("--only", default="", help="rows whose name has this text")
    parser.add_argument("--csv", help="file to write the rows to")
    parser.add_argument("--bands", action="store_true", help="bands of differences only")
    parser.add_argument("--constant", type=float, help="rate of errors")
    parser.add_argument("--loss", type=float, default=0.0, help="share lost by long sentences")
    options = parser.parse_args()
    sizes = options.sets, options.sentences, options.resamples
    if options.constant is not None:
        falls, rises = verdicts(options.constant, options.loss, *sizes)
        print(f"steeper fall reported in {falls:.1f} %, flatter fall in {rises:.1f} %")
        return
    columns: tuple[str, ...] = COLUMNS
    plans, cells_of = PLANS, coverage
    if options.bands:
        plans, columns, cells_of = BANDS, ("equal", "worse"), bands
    print(f"| lengths, seeds, shape | {' | '.join(columns)} | s |")
    print(f"|---|{'---:|' * (len(columns) + 1)}")
    rows = [["row", *columns]]
    for plan in plans:
        if options.only in plan.title:
            start = time.perf_counter()
            cells = [f"{value:.1f}" for value in cells_of(plan, *sizes)]
            seconds = time.perf_counter() - start
            print(f"| {plan.title} | {' | '.join(cells)} | {seconds:.0f} |", flush=True)
            rows.append([plan.title, *cells])
    if options.csv:
        with open(options.csv, "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)


if __name__ == "__main__":
    main()
