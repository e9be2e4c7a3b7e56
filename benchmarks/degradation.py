"""How often the intervals and tests of `nmt.evaluation.degradation` are right: simulated runs.

    python -m benchmarks.degradation

A made-up translation has right and wrong words; how many n-grams are right follows, and BLEU of all
sentences of a length that there could be is known exactly. A sentence is easy or hard for every run
and besides for each run apart, and runs of a group differ in how often words are right and in how
fast that falls with length. Each draw is a test set of its own, resampled as runs are.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from nmt.evaluation.bleu import ORDERS
from nmt.evaluation.degradation import RANGES, Curve, Group, estimate, measured_curves
from nmt.evaluation.degradation.curve import WIDTH
from nmt.evaluation.degradation.findings import LOSSES, degradation_of
from nmt.evaluation.degradation.fit import LengthAxis
from nmt.evaluation.scores import REGISTERED

BLEU = REGISTERED["bleu"]
CAP = 50
LONGEST = 70
RESAMPLES = 1000
HARDNESS = np.array(
    [-0.12, -0.06, 0.0, 0.05, 0.08]
)  # added to the share of right words, each as often


@dataclass(frozen=True)
class System:
    """How often a word is right, by length of the sentence.

    Attributes:
        right: share of right words in short sentences.
        slope: what it changes for each word up to CAP.
        fall: what it loses in addition for each word beyond CAP.
        short: share of the words that are missing for each word beyond CAP.
        seed_level, seed_slope: standard deviations over seeds of `right` and `slope`.
    """

    right: float = 0.8
    slope: float = 0.0
    fall: float = 0.0
    short: float = 0.0
    seed_level: float = 0.0
    seed_slope: float = 0.0

    def seed(self, draw: np.random.Generator) -> System:
        """One training: a system of its own."""
        level, slope = draw.normal(0, [self.seed_level, self.seed_slope])
        return replace(self, right=self.right + level, slope=self.slope + slope)

    def shares(self, lengths: np.ndarray) -> np.ndarray:
        """Mean share of right words in sentences of some lengths."""
        return self.right + self.slope * lengths - self.fall * np.maximum(0, lengths - CAP)

    def written(self, lengths: np.ndarray) -> np.ndarray:
        """Words of a translation; that of the reference is the sentence's length."""
        return np.rint(lengths * (1 - self.short * np.maximum(0, lengths - CAP))).astype(int)


@dataclass(frozen=True)
class TestText:
    """How long the sentences of a test set are.

    Attributes:
        sentences: N.
        chances: of each length from 1.
    """

    sentences: int
    chances: np.ndarray


UNIFORM = TestText(1400, np.full(LONGEST, 1 / LONGEST))
_NATURAL = np.arange(1, LONGEST + 1) * np.exp(-np.arange(1, LONGEST + 1) / 14.0)
NATURAL = TestText(3000, _NATURAL / _NATURAL.sum())


def simulate(
    text: TestText, systems: Sequence[System], draw: np.random.Generator
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Lengths of a test set (N,), and BLEU's statistics of each system (N, 10)."""
    lengths = draw.choice(np.arange(1, LONGEST + 1), text.sentences, p=text.chances)
    shared = draw.choice(HARDNESS, text.sentences)
    tables = []
    for system in systems:
        hardness = shared + draw.choice(HARDNESS, text.sentences)
        words = draw.random((text.sentences, LONGEST), dtype=np.float32)
        written = system.written(lengths)
        right = words < (system.shares(lengths) + hardness)[:, None]
        right &= np.arange(LONGEST) < written[:, None]
        correct = []
        grams = right
        for order in range(ORDERS):
            if order:
                grams = grams[:, :-1] & right[:, order:]
            correct.append(grams.sum(axis=1))
        total = [np.maximum(0, written - order) for order in range(ORDERS)]
        tables.append(np.stack([*correct, *total, written, lengths], axis=1).astype(float))
    return lengths, tables


def true_statistics(text: TestText, system: System) -> np.ndarray:
    """Expected statistics of a sentence of each length, times the chance of the length: (L, 10)."""
    lengths = np.arange(1, LONGEST + 1)
    hardness = (HARDNESS[:, None] + HARDNESS[None, :]).ravel()
    shares = np.clip(system.shares(lengths)[:, None] + hardness, 0, 1)
    written = system.written(lengths)
    total = [np.maximum(0, written - order) for order in range(ORDERS)]
    correct = [total[order] * (shares ** (order + 1)).mean(axis=1) for order in range(ORDERS)]
    return np.stack([*correct, *total, written, lengths], axis=1) * text.chances[:, None]


def truth(text: TestText, system: System) -> tuple[LengthAxis, np.ndarray]:
    """Buckets of the whole population and their BLEU (1, B), of those that a test set fits."""
    lengths = np.arange(1, LONGEST + 1)
    cells = (lengths - 1) // WIDTH
    statistics = true_statistics(text, system)
    sums = np.stack([statistics[cells == cell].sum(axis=0) for cell in range(cells[-1] + 1)])
    weights = text.sentences * np.bincount(cells, text.chances)
    means = text.sentences * np.bincount(cells, text.chances * lengths) / weights
    first = np.arange(len(weights)) * WIDTH + 1
    axis = LengthAxis(first, first + WIDTH - 1, weights[None], means[None])
    return axis, BLEU.combine(sums)[None]


def true_slopes(text: TestText, system: System, trainings: int = 1000) -> dict[str, float]:
    """By range; of a system whose trainings differ the mean over many."""
    draw = np.random.default_rng(99)
    varies = system.seed_level or system.seed_slope
    some = [system.seed(draw) for _ in range(trainings)] if varies else [system]
    axis = truth(text, system)[0]
    scores = np.mean([truth(text, each)[1] for each in some], axis=0)
    found: dict[str, float] = {}
    for part in RANGES:
        coefficients = axis.slope(part, CAP)
        assert coefficients is not None
        found[part] = float((coefficients * scores).sum())
    return found


def draws(
    text: TestText, systems: Sequence[System], seeds: int, number: int, start: int = 0
) -> Iterator[list[Group]]:
    """Test sets and trainings drawn anew each time: a group for each system."""
    for n in range(start, start + number):
        draw = np.random.default_rng([n, seeds, text.sentences])
        trained = [system.seed(draw) for system in systems for _ in range(seeds)]
        lengths, tables = simulate(text, trained, draw)
        yield grouped_curves(lengths, tables, len(systems))


def grouped_curves(lengths: np.ndarray, tables: Sequence[np.ndarray], groups: int) -> list[Group]:
    """Groups of equally many runs, of their statistics (N, 10)."""
    labels = [str(n) for n in range(len(tables))]
    ids = dict.fromkeys(labels, np.arange(len(lengths)))
    [(_, found)] = measured_curves(
        {"bleu": dict(zip(labels, tables, strict=True))},
        ids,
        dict.fromkeys(labels, lengths),
        {"bleu": BLEU},
        resamples=RESAMPLES,
    )
    curves: list[Curve] = [found[label] for label in labels]
    size = len(curves) // groups
    return [Group(curves[n * size : (n + 1) * size], CAP) for n in range(groups)]


# Trainings differ by about one BLEU, and their slopes by 0.15 for each 10 words
VARIES = {"seed_level": 0.004, "seed_slope": 0.0001}
FLAT = System()
FALLS = System(right=0.75, slope=-0.0015, fall=0.004)
STOPS = System(slope=-0.0005, fall=0.002, short=0.01)  # falls beyond the cap, and ends early


def trained(system: System, seeds: int) -> System:
    """The system as runs of it are: trainings differ where the interval speaks of them."""
    return replace(system, **VARIES) if seeds > 1 else system


@dataclass
class Rates:
    """Counts of what was right, by what was asked."""

    asked: dict[str, int]
    held: dict[str, int]

    @classmethod
    def none(cls) -> Rates:
        return cls({}, {})

    def add(self, name: str, held: bool) -> None:
        self.asked[name] = self.asked.get(name, 0) + 1
        self.held[name] = self.held.get(name, 0) + bool(held)

    def shares(self) -> dict[str, float]:
        return {name: self.held[name] / asked for name, asked in self.asked.items()}


def inside(low: float | None, value: float, high: float | None) -> bool:
    """Whether an interval has a value; an end that is None is without bound."""
    return (low is None or low <= value) and (high is None or value <= high)


def one_system(text: TestText, system: System, seeds: int, number: int) -> Rates:
    """Intervals of slopes, of lengths of losses and of the breakpoint of a group of runs."""
    system, rates = trained(system, seeds), Rates.none()
    true = true_slopes(text, system)
    axis, scores = truth(text, system)
    shares = [*LOSSES.values()]
    losses = dict(zip(LOSSES, axis.losses(scores, shares, higher_is_better=True), strict=True))
    for (group,) in draws(text, [system], seeds, number):
        for part in RANGES:
            found = estimate(group, "slope", part)
            if found is not None:
                rates.add(
                    f"slope {part}", inside(found.interval()[0], true[part], found.interval()[1])
                )
        described = degradation_of(group)
        for key, length in losses.items():
            loss = described["losses"][key]
            rates.add(f"{key} lost: found", loss["status"] == "found")
            rates.add(f"{key} lost: interval", _has(loss, float(length[0])))
        bend = described["breakpoint"]
        rates.add("breakpoint: found", bend["status"] == "found")
        if bend["status"] == "found":
            rates.add("breakpoint: interval", inside(bend["low"], CAP, bend["high"]))
    return rates


def _has(loss: dict[str, Any], length: float) -> bool:
    if loss["status"] == "none":
        return not np.isfinite(length)
    if not np.isfinite(length):
        return loss["high"] is None
    return loss["low"] is not None and inside(loss["low"], length, loss["high"])


def two_systems(text: TestText, a: System, b: System, seeds: int, number: int) -> Rates:
    """Differences of slopes: intervals that have the true one, and tests at the edge of their claim.

    `differs` is the share of p below 0.05, which is false where the two systems are alike;
    `equivalent` and `no fall` are claimed at a margin that the truth is just not within.
    """
    a, b, rates = trained(a, seeds), trained(b, seeds), Rates.none()
    first, second = true_slopes(text, a), true_slopes(text, b)
    for groups in draws(text, [a, b], seeds, number):
        for part in RANGES:
            found = estimate(groups[0], "slope", part, against=groups[1])
            if found is None:
                continue
            true = first[part] - second[part]
            low, high = found.interval()
            rates.add(f"difference {part}", inside(low, true, high))
            p = found.p()
            rates.add(f"differs {part}", p is not None and p < 0.05)
            if abs(true) > 0.01:
                rates.add(f"equivalent {part}", found.equivalence(abs(true))["equivalent"])
                if true < 0:
                    rates.add(f"no fall {part}", found.no_fall(-true)["holds"])
    return rates


def shuffled_lengths(text: TestText, system: System, number: int) -> Rates:
    """Intervals of slopes that hold 0, where one test set's lengths are dealt out anew each time."""
    rates = Rates.none()
    draw = np.random.default_rng(5)
    lengths, tables = simulate(text, [system], draw)
    for _ in range(number):
        (group,) = grouped_curves(draw.permutation(lengths), tables, 1)
        for part in RANGES:
            found = estimate(group, "slope", part)
            if found is not None:
                rates.add(f"slope {part}", inside(found.interval()[0], 0, found.interval()[1]))
    return rates


SYSTEMS = {"flat": FLAT, "falls": FALLS, "stops": STOPS}
TEXTS = {"uniform": UNIFORM, "natural": NATURAL}
PAIRS = (("flat", "flat"), ("falls", "falls"), ("falls", "flat"), ("stops", "falls"))


def plans(number: int) -> Iterator[tuple[str, Callable[[], Rates]]]:
    """What is simulated, by name."""
    for kind, text in TEXTS.items():
        for seeds in (1, 3):
            of = f"{kind}, {seeds} run{'s' * (seeds > 1)}"
            for name, system in SYSTEMS.items():
                yield f"{of}, {name}", partial(one_system, text, system, seeds, number)
            for a, b in PAIRS:
                pair = partial(two_systems, text, SYSTEMS[a], SYSTEMS[b], seeds, number)
                yield f"{of}, {a} less {b}", pair
        yield f"{kind}, shuffled", partial(shuffled_lengths, text, FALLS, number // 2)


def main() -> None:
    """Prints the rates of every plan, or of those with a text in their name, a line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("draws", type=int, nargs="?", default=2000, help="test sets of each plan")
    parser.add_argument("only", nargs="?", default="", help="a part of the plans' names")
    arguments = parser.parse_args()
    for title, plan in plans(arguments.draws):
        if arguments.only in title:
            for name, share in plan().shares().items():
                print(f"{title:32} {name:24} {100 * share:6.1f} %", flush=True)


if __name__ == "__main__":
    main()
