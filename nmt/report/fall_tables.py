"""Tables of how scores fall with length: of each group of runs, and of pairs of groups."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from nmt.evaluation.degradation.estimate import FEWEST_SEEDS
from nmt.report.comparison import SetComparison
from nmt.report.falls import verdicts
from nmt.report.groups import paired_note
from nmt.report.table import Column, Located, Table, measured, score_column

RANGE_TITLES = {"all": "all lengths", "to_cap": "up to the cap", "beyond_cap": "beyond the cap"}


def falls_table(comparison: SetComparison) -> Table:
    """Slopes, lengths of losses and breakpoint of each group of runs."""
    rows = []
    scores = comparison.shown_scores()
    falls = comparison.falls
    for key, about in scores.items():
        for name, found in falls.of_groups.get(key, {}).items():
            slopes = {part: measured(found[part]["slope"]) for part in RANGE_TITLES}
            if not about["by_length"] or not any(slopes.values()):
                continue
            rows.append(
                {
                    "group": name,
                    "runs": len(falls.groups[name]),
                    "score": key,
                    "digits": about["digits"],
                    **slopes,
                    **{share: _length(found["losses"][share]) for share in found["losses"]},
                    "breakpoint": _length(found["breakpoint"]),
                    "sentence": ". ".join(verdicts(found, about, falls.caps[name])),
                }
            )
    columns = [
        Column("group", "Runs", text=True),
        Column("runs", "Seeds", 0),
        score_column(scores),
        *(Column(part, f"Slope, {title}", None) for part, title in RANGE_TITLES.items()),
        Column("tenth", "A tenth lost at", 0, text=True),
        Column("half", "Half lost at", 0, text=True),
        Column("breakpoint", "Breakpoint", 0, text=True),
        Column("sentence", "In words", text=True),
    ]
    level = comparison.level_of_differences
    notes = [
        f"Slopes are the change of the score for 10 more words, with {level} intervals: weighted "
        "least squares over buckets of 5 words, up to the cap (the longest training sentence) and beyond it. "
        f"Of {FEWEST_SEEDS} seeds or more they speak of seeds to come, of fewer of these runs alone.",
        "The text of a bucket moves a score, too: whether runs differ is said by the table of differences.",
    ]
    title = f"How scores fall with length, on {comparison.name}"
    return Table(f"falls_{comparison.name}", title, columns, rows, notes)


def slope_differences_table(comparison: SetComparison, only: Collection[str] = ()) -> Table:
    """Groups in pairs (`paired`): the difference of their slopes and of their scores over each range.

    Args:
        only: keys of the scores that have rows; none: all.
    """
    rows = []
    scores = {
        key: about for key, about in comparison.shown_scores().items() if not only or key in only
    }
    for key, about in scores.items():
        for row in comparison.falls.differences.get(key, []) if about["by_length"] else []:
            slope, score = row["slope"] or {}, row["score"] or {}
            rows.append(
                {
                    "score": key,
                    "digits": about["digits"],
                    "a": row["a"],
                    "b": row["b"],
                    "range": RANGE_TITLES[row["range"]],
                    "slope": measured(row["slope"]),
                    "p": slope.get("p"),
                    "difference": measured(row["score"]),
                    "p_difference": score.get("p"),
                    "of": (slope or score)["of"],
                }
            )
    columns = [
        score_column(scores),
        Column("a", "A", text=True),
        Column("b", "B", text=True),
        Column("range", "Lengths", text=True),
        Column("slope", "Slope, A − B", None),
        Column("p", "p", 4),
        Column("difference", "Score, A − B", None),
        Column("p_difference", "p of the score", 4),
        Column("of", "Interval of", text=True),
    ]
    level = comparison.level_of_differences
    note = (
        f"{level} intervals and p by paired bootstrap of the same sentences for all runs; with "
        f"{FEWEST_SEEDS} seeds or more on both sides of the seeds, too. Where the caps of two runs "
        "differ, lengths up to the cap end at the smaller, and those beyond it begin at the larger."
    )
    title = f"Differences of slopes on {comparison.name}"
    notes = [note, *filter(None, [paired_note(len(comparison.falls.groups), "groups")])]
    return Table(f"slope_differences_{comparison.name}", title, columns, rows, notes)


def _length(found: Mapping[str, Any] | None) -> Located | None:
    return None if found is None else Located(*(found[key] for key in Located._fields))
