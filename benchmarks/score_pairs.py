"""Computes retention of scores and their paired differences in plain NumPy, and how often the intervals are right.

    python -m benchmarks.score_pairs table.tsv --short 10 --long 40 --against mqm
    python -m benchmarks.score_pairs esa.tsv --scores esa bleu --short 15 --long 110 \\
        --texts en-zh.txt en-zh.refA.txt en-zh.jsonl --systems rated/*.txt
    python -m benchmarks.score_pairs --coverage 300

The table has a row per system and sentence: `system`, `seg`, `words`, optionally `document` and `domain`, and a
column per score. `NAME:WORST` is a score with its worst value, and `NAME/words` a sum per word. The numbers are
those of against.csv of `nmt.compare`, whose code is not used here (only the numbers that define the curve and the
draws are the same).

With --texts (source, reference, metadata with `docid` and `domain`), `seg_id` of the table is a line number, the
table may have a row per rater, and the score `bleu` is computed from the words into which the package splits the
output of --systems.

--coverage draws test sets in which the metric alone falls with length, the systems alone, both, or neither, and
prints the percentage of 95 % intervals that contain the true difference of the mean retentions.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import ndtr, stdtrit

from nmt.text.lines import read_lines
from nmt.text.tokenise import count_words, tokeniser

WIDTH, SEED, RESAMPLES = 0.15, 12345, 1000
SHORT, LONG = 10, 50
FEWEST_OF_DOMAIN = 5


def weights_at(words: np.ndarray, length: float) -> np.ndarray:
    """Returns the weight of each sentence at a length; their word-weighted mean log length is the log length."""
    logs = np.log(words)
    centres = np.arange(logs.min() - 4 * WIDTH, logs.max() + 4 * WIDTH, WIDTH / 10)
    exponents = -0.5 * ((logs - centres[:, None]) / WIDTH) ** 2
    by_words = np.exp(exponents - exponents.max(axis=1, keepdims=True)) * words
    means = by_words @ logs / by_words.sum(axis=1)
    return np.exp(-0.5 * ((logs - np.interp(np.log(length), means, centres)) / WIDTH) ** 2)


def adjusted_weights_at(
    words: np.ndarray, domains: np.ndarray, lengths: tuple[float, float]
) -> list[np.ndarray]:
    """Returns weights at two lengths, at which each domain has its share of all sentences.

    Domains without enough sentences at both lengths have weight 0.
    """
    found = [np.zeros(len(words)), np.zeros(len(words))]
    for domain in np.unique(domains):
        inside = domains == domain
        own = [weights_at(words[inside], length) for length in lengths]
        near = [np.exp(-0.5 * (np.log(words[inside] / at) / WIDTH) ** 2).sum() for at in lengths]
        effective = [each.sum() ** 2 / (each**2).sum() for each in own]
        if min(*effective, *(2**0.5 * each for each in near)) >= FEWEST_OF_DOMAIN:
            for weights, each in zip(found, own, strict=True):
                weights[inside] = inside.sum() * each / each.sum()
    return found


def ratios(
    values: np.ndarray,
    below: np.ndarray,
    weights: list[np.ndarray],
    documents: np.ndarray,
    worst: float,
    resamples: int = RESAMPLES,
) -> np.ndarray:
    """Returns the ratio of the distances from the worst value: (1 + R, S), first for all sentences.

    Args:
        values: (N, S) value of each sentence and system.
        below: (N,) its denominator.
        weights: two arrays (N,), at the short and the long length.
        documents: (N,) index of the resampled unit of each sentence.
    """
    size = documents.max() + 1
    draws = np.random.default_rng(SEED).integers(size, size=(resamples, size))
    counts = np.stack([np.ones(size), *(np.bincount(draw, minlength=size) for draw in draws)])
    short, long = (
        (counts[:, documents] * each) @ values / ((counts[:, documents] * each) @ below)[:, None]
        for each in weights
    )
    return (long - worst) / (short - worst)


def counts_of_bleu(hypothesis: list[str], reference: list[str]) -> list[int]:
    """Returns the matches and the numbers of n-grams (n = 1 to 4), and both lengths."""
    found = []
    for n in range(1, 5):
        ours, theirs = (
            Counter(zip(*(words[start:] for start in range(n)), strict=False))
            for words in (hypothesis, reference)
        )
        found += [(ours & theirs).total(), ours.total()]
    return [*found, len(hypothesis), len(reference)]


def ratios_of_bleu(
    counts: np.ndarray, weights: list[np.ndarray], documents: np.ndarray, resamples: int = RESAMPLES
) -> np.ndarray:
    """Returns BLEU at the long length divided by BLEU at the short length: (1 + R, S).

    Args:
        counts: (N, S, 10) results of `counts_of_bleu`.
    """
    size = documents.max() + 1
    draws = np.random.default_rng(SEED).integers(size, size=(resamples, size))
    drawn = np.stack([np.ones(size), *(np.bincount(draw, minlength=size) for draw in draws)])
    values = []
    for each in weights:
        sums = np.tensordot(drawn[:, documents] * each, counts, 1)  # (1 + R, S, 10)
        precisions = sums[..., 0:8:2] / sums[..., 1:8:2]
        penalty = np.minimum(0, 1 - sums[..., 9] / sums[..., 8])
        values.append(np.exp(np.log(precisions).mean(axis=-1) + penalty))
    short, long = values
    return long / short


def read_texts(table: pd.DataFrame, texts: list[Path], systems: list[Path]) -> pd.DataFrame:
    """Averages the raters of a table, and adds words, documents, domains and the counts of BLEU."""
    source, reference = (list(read_lines(path)) for path in texts[:2])
    rows = [json.loads(line) for line in read_lines(texts[2])]
    sentences = pd.DataFrame(
        {
            "seg_id": range(1, len(source) + 1),
            "words": [count_words(line, False) for line in source],
            "document": [row["docid"] for row in rows],
            "domain": [row["domain"] for row in rows],
        }
    )
    tokenise = tokeniser("zh").tokenise
    references = [tokenise(line) for line in reference]
    parts = []
    for path in systems:
        outputs = [tokenise(line) for line in read_lines(path)]
        counts = map(counts_of_bleu, outputs, references)
        parts.append(sentences.assign(system=path.stem, bleu=[*counts]))
    means = table.drop(columns="rater").groupby(["system", "seg_id"], as_index=False).mean()
    return pd.concat(parts).merge(means, how="left").rename(columns={"seg_id": "seg"})


def interval(values: np.ndarray, documents: int | None) -> tuple[float, float]:
    """Returns the 95 % percentile interval, widened if documents were drawn (Hesterberg, 2015)."""
    tail = 0.025
    if documents is not None:
        widening = (documents / (documents - 1)) ** 0.5 * stdtrit(documents - 1, tail)
        tail = float(ndtr(widening))
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)


def measure(table: pd.DataFrame, scores: list[str], against: str, ends: tuple[int, int]) -> None:
    """Prints the mean ratio of each score over all systems, and its difference from one of them."""
    columns = [score.partition(":")[0].partition("/")[0] for score in scores]
    wide = table.dropna(subset=columns).set_index(["seg", "system"])
    wide = wide[~wide.index.duplicated()].unstack("system").dropna()
    first = {
        name: wide[name].iloc[:, 0].to_numpy() for name in table if name not in ("seg", "system")
    }
    words = first["words"].astype(float)
    documents = np.arange(len(words))
    if "document" in first:
        documents = pd.factorize(first["document"])[0]
    drawn = documents.max() + 1 if "document" in first else None
    plans = {"all": [weights_at(words, length) for length in ends]}
    if "domain" in first:
        plans["adjusted"] = adjusted_weights_at(words, first["domain"], ends)
    for plan, weights in plans.items():
        means = {}
        for score in scores:
            column, _, per = score.partition(":")[0].partition("/")
            below = first[per].astype(float) if per else np.ones(len(words))
            worst = float(score.partition(":")[2] or 0)
            if column == "bleu":
                counts = np.array(wide[column].to_numpy().tolist(), dtype=float)
                means[score] = ratios_of_bleu(counts, weights, documents).mean(axis=1)
                continue
            values = wide[column].to_numpy(dtype=float)
            means[score] = ratios(values, below, weights, documents, worst).mean(axis=1)
        for name, values in means.items():
            for label, each in ((name, values), (f"{name} - {against}", values - means[against])):
                low, high = interval(each[1:], drawn)
                print(f"{plan},{len(words)},{label},{each[0]:.6f},{low:.6f},{high:.6f}")


def coverage(sets: int, size: int, resamples: int) -> None:
    """Prints the coverage of the interval of a difference of retentions, over generated test sets."""
    print("falls,true difference,covered,excludes 0")
    levels, own_falls = np.linspace(0.6, 0.85, 6), np.linspace(0.5, 1.5, 6)
    for falls, (of_metric, of_systems) in {
        "metric": (0.2, 0.0),
        "systems": (0.0, 0.2),
        "both": (0.2, 0.2),
        "neither": (0.0, 0.0),
    }.items():
        generator = np.random.default_rng(7)
        covered, excluded = [], []
        truth = float(np.mean((1 - of_systems * own_falls) * -of_metric))
        for _ in range(sets):
            words = np.clip(np.exp(generator.normal(np.log(20), 0.7, size)).round(), 3, 120)
            documents = np.arange(size) // 5
            logs = (np.log(words / SHORT) / np.log(LONG / SHORT))[:, None]
            quality = levels * (1 - of_systems * own_falls * logs)
            difficulty = generator.normal(0, 0.1, size)[:, None]
            difficulty = difficulty + generator.normal(0, 0.1, size // 5 + 1)[documents][:, None]
            scores = [
                quality * (1 - fall * logs) + difficulty + generator.normal(0, 0.1, quality.shape)
                for fall in (of_metric, 0.0)
            ]
            weights = [weights_at(words, length) for length in (SHORT, LONG)]
            means = [
                ratios(each, np.ones(size), weights, documents, 0.0, resamples).mean(axis=1)
                for each in scores
            ]
            low, high = interval((means[0] - means[1])[1:], documents.max() + 1)
            covered.append(low <= truth <= high)
            excluded.append(not low <= 0 <= high)
        print(f"{falls},{truth:.3f},{100 * np.mean(covered):.1f},{100 * np.mean(excluded):.1f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("table", nargs="?", help="TSV; see above")
    parser.add_argument("--scores", nargs="+", default=[], help="NAME, NAME:WORST or NAME/words")
    parser.add_argument("--against", help="one of --scores, whose ratio is subtracted")
    parser.add_argument("--short", type=int, default=SHORT)
    parser.add_argument("--long", type=int, default=LONG)
    parser.add_argument("--texts", type=Path, nargs=3, help="source, reference, metadata")
    parser.add_argument("--systems", type=Path, nargs="+", help="outputs in Chinese; see above")
    parser.add_argument("--coverage", type=int, metavar="SETS")
    parser.add_argument("--sentences", type=int, default=600)
    parser.add_argument("--resamples", type=int, default=500)
    args = parser.parse_args()
    if args.coverage:
        coverage(args.coverage, args.sentences, args.resamples)
        return
    table = pd.read_csv(args.table, sep="\t")
    if args.texts:
        table = read_texts(table, args.texts, args.systems)
    measure(table, args.scores, args.against or args.scores[0], (args.short, args.long))


if __name__ == "__main__":
    main()
