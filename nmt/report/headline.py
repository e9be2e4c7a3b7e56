"""The headline of a comparison: how much of the BLEU of short sentences is left at long ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nmt.report.comparison import SetComparison
from nmt.report.groups import grouped
from nmt.report.runs import FinishedRun
from nmt.utils.progress import enumeration

LONG = 50  # words: the end of the long bucket; without such a bucket the last closed one
MOST = 6  # groups with a sentence each; of more, those that keep the least and the most


def bleu_headline(comparison: SetComparison) -> str | None:
    """One sentence a group of seeds, such as "A: BLEU 43 at 10 words, 9 at 50: 21 % left."

    None where no group has two closed buckets.
    """
    found = []
    for name, runs in grouped(comparison.runs).items():
        curves = [comparison.rows(run.label) for run in runs]
        kept = retention(curves[0])
        if kept is None or any(len(curve) != len(curves[0]) for curve in curves):
            continue
        means = [sum(curve[place]["score"] for curve in curves) / len(curves) for place in kept]
        if means[0] <= 0:
            continue
        short, long = (curves[0][place]["to"] for place in kept)
        share = means[1] / means[0]
        said = f"BLEU {means[0]:.0f} at {short} words, {means[1]:.0f} at {long}: {share:.0%} left"
        found.append((share, f"{name}: {said.replace('%', ' %')}."))
    if len(found) > MOST:
        found = [min(found), max(found)]
    return " ".join(sentence for _, sentence in found) or None


def retention(buckets: Sequence[Mapping[str, int | None]]) -> tuple[int, int] | None:
    """Places of the short and the long bucket that are compared; None without two closed ones."""
    closed = [place for place, bucket in enumerate(buckets) if bucket["to"] is not None]
    if len(closed) < 2:
        return None
    return closed[0], next((n for n in closed[1:] if buckets[n]["to"] == LONG), closed[-1])


def names_of(runs: Sequence[FinishedRun]) -> str:
    """Runs as a title names them: by group, four at most."""
    names = list(grouped(runs))
    return enumeration(names if len(names) <= 4 else [*names[:3], f"{len(names) - 3} more"])
