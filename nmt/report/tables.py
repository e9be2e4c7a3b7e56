"""The tables of a comparison: scores as in the paper's Table 1, seeds, lengths, significance."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from nmt.evaluation.buckets import bucket_name
from nmt.evaluation.results import bucket_score, score_of
from nmt.evaluation.significance import FEW_SENTENCES, FEWEST
from nmt.report.comparison import SetComparison
from nmt.report.disambiguation import renamed_sets
from nmt.report.groups import grouped
from nmt.report.no_unk import no_unk_note
from nmt.report.run_tables import differences_table, paper_table, training_table
from nmt.report.runs import FinishedRun
from nmt.report.table import (
    Column,
    MeanAndDeviation,
    Table,
    heading,
    measured,
    score_column,
)
from nmt.utils.files import write_text
from nmt.utils.progress import counted, enumeration

WRITTEN = re.compile(
    r"(scores|alignment|seeds|by_length|by_unknown_words|significance)_.+|training|published|differences"
)
"""Names of the tables that `all_tables` may give."""

"""What people read for `made_by` of `nmt.evaluation.link_scores`."""


def scores_table(comparison: SetComparison) -> Table:
    """A table like the paper's Table 1, with more scores; what was measured, and nothing else."""
    rows = []
    for run in comparison.runs:
        result = comparison.results[run.label]
        found = {key: measured(score_of(result, key)) for key in comparison.shown_scores()}
        rows.append({"run": run.label, **found})
    return Table(
        f"scores_{comparison.name}",
        f"Scores on {comparison.name}",
        [Column("run", "Run", text=True), *_score_columns(comparison)],
        rows,
        _score_notes(comparison),
    )


def _score_columns(comparison: SetComparison) -> list[Column]:
    return [
        Column(key, heading(about), about["digits"])
        for key, about in comparison.shown_scores().items()
    ]


def seeds_table(comparison: SetComparison) -> Table:
    """Mean and standard deviation over the seeds of each group of runs; no rows where no group has two runs."""
    groups = grouped(comparison.runs)
    names = bucket_names(comparison)
    rows = []
    for group, runs in groups.items():
        results = [comparison.results[run.label] for run in runs]
        cells: dict[str, Any] = {"group": group, "runs": len(runs)}
        for key in comparison.shown_scores():
            cells[key] = _mean_and_deviation(
                (score_of(result, key) or {}).get("score") for result in results
            )
        for name in names:
            found = (row for run in runs for row in comparison.rows(run.label))
            cells[name] = _mean_and_deviation(
                row["score"] for row in found if bucket_name(row) == name
            )
        rows.append(cells)
    return Table(
        f"seeds_{comparison.name}",
        f"Over seeds, on {comparison.name}",
        [
            Column("group", "Runs that differ by their seed", text=True),
            Column("runs", "Seeds", 0),
            *_score_columns(comparison),
            *(Column(name, name, 1) for name in names),
        ],
        rows if any(len(runs) > 1 for runs in groups.values()) else [],
        [
            "Mean ± standard deviation over seeds; BLEU by number of words in the columns on the right."
        ],
    )


def lengths_table(comparison: SetComparison, scores: Sequence[str] | None = None) -> Table:
    """Every run in every bucket, and how far its BLEU falls.

    Args:
        scores: keys of the scores, a row each and a run; None: all that are given by length.
    """
    known = comparison.shown_scores()
    if scores is None:
        scores = [key for key, about in known.items() if about["by_length"]]
    rows = []
    for key in scores:
        for run in comparison.runs:
            found = {
                bucket_name(row): measured(bucket_score(row, key))
                for row in comparison.rows(run.label)
            }
            if not any(found.values()):
                continue
            cells = {"run": run.label, "score": key, "digits": known[key]["digits"], **found}
            if key == "bleu":
                buckets = comparison.rows(run.label)
                best = max(buckets, key=lambda row: row["score"])
                cells |= {"best": bucket_name(best), "drop": best["score"] - buckets[-1]["score"]}
            rows.append(cells)
    several = [score_column(known)] if len(scores) > 1 else []
    columns = [
        Column("run", "Run", text=True),
        *several,
        Column("best", "Best bucket", text=True),
        Column("drop", "Fall, best to last"),
        *(Column(name, name, None) for name in bucket_names(comparison)),
    ]
    notes = [
        f"Scores with their {comparison.levels} interval by number of words; the fall is BLEU's."
    ]
    title = f"{'Scores' if several else known[scores[0]]['title']} by length on {comparison.name}"
    return Table(f"by_length_{comparison.name}", title, columns, rows, notes)


def unknown_words_table(comparison: SetComparison) -> Table:
    """BLEU of every run by the number of unknown words of a pair."""
    rows = []
    names: dict[str, None] = {}
    pairs: dict[str, list[str]] = {}  # runs by how many of them have so many unknown words
    for run in comparison.runs:
        parts = comparison.results[run.label].get("by_unknown_words") or ()
        found = {f"{row['from']}{'' if row['to'] is not None else '+'}": row for row in parts}
        names |= dict.fromkeys(found)
        if found:
            rows.append({"run": run.label, **{name: measured(row) for name, row in found.items()}})
            counts = [f"{row['sentences']:,} with {name}" for name, row in found.items()]
            pairs.setdefault(enumeration(counts), []).append(run.label)
    columns = [Column("run", "Run", text=True), *(Column(name, name) for name in sorted(names))]
    notes = [
        f"BLEU with its {comparison.levels} interval by the number of words of "
        "a pair, source and reference together, that the run's own shortlists lack.",
        *(
            f"Pairs of {'all' if len(pairs) == 1 else enumeration(labels)}: {counts}."
            for counts, labels in pairs.items()
        ),
    ]
    title = f"BLEU by unknown words on {comparison.name}"
    return Table(f"by_unknown_words_{comparison.name}", title, columns, rows, notes)


def significance_table(comparison: SetComparison) -> Table:
    """Runs in pairs (`SetComparison.paired`) by every score, on the whole set and in each bucket."""
    columns = [
        score_column(comparison.known),
        Column("a", "A", text=True),
        Column("b", "B", text=True),
        Column("bucket", "Words", text=True),
        Column("sentences", "Sentences", 0),
        Column("delta", "A − B", None),
        Column("p", "p", 4),
        Column("p_corrected", "p, corrected", 4),
        Column("p_randomised", "p by randomisation", 4),
        Column("p_randomised_corrected", "p by randomisation, corrected", 4),
    ]
    rows = [
        {
            **row,
            "score": key,
            "digits": comparison.known[key]["digits"],
            "delta": (row["delta"], row["low"], row["high"]),
        }
        for key, tested in comparison.significance.items()
        for row in tested
    ]
    note = (
        f"{comparison.level_of_differences} intervals and p by paired bootstrap (no p below {FEWEST} "
        "sentences), beside it p by approximate randomisation; p-values of buckets corrected for "
        "their number (Holm)."
    )
    title = f"Differences on {comparison.name}"
    notes = [note, *filter(None, [comparison.pairs_note])]
    return Table(f"significance_{comparison.name}", title, columns, rows, notes)


def write_tables(
    runs: Sequence[FinishedRun], comparisons: Sequence[SetComparison], folder: str | Path
) -> list[Path]:
    """Writes `tables.md`, and a CSV and a LaTeX file a table, and returns their paths.

    A table of more than `MOST_ROWS` rows has its CSV alone.
    Tables of an earlier comparison in the folder are removed: the files there are of one comparison.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for path in [*folder.glob("*.csv"), *folder.glob("*.tex")]:
        if WRITTEN.fullmatch(path.stem):
            path.unlink()
    tables = all_tables(runs, comparisons)
    paths = [folder / "tables.md"]
    write_text(paths[0], "\n".join(table.markdown() for table in tables))
    for table in tables:
        for ending in ("csv",) if table.elsewhere else ("csv", "tex"):
            path = folder / f"{table.name}.{ending}"
            write_text(path, table.csv() if ending == "csv" else table.latex())
            paths.append(path)
    return paths


def all_tables(runs: Sequence[FinishedRun], comparisons: Sequence[SetComparison]) -> list[Table]:
    """Every table that has rows, in the order people read them."""
    makers: tuple[Callable[[SetComparison], Table], ...] = (
        scores_table,
        seeds_table,
        lengths_table,
        unknown_words_table,
        significance_table,
    )
    tables = [make(comparison) for comparison in comparisons for make in makers]
    tables += [training_table(runs), paper_table(), differences_table(runs)]
    return [table for table in tables if table.rows]


def _score_notes(comparison: SetComparison) -> list[str]:
    renamed = renamed_sets(comparison.runs)
    notes = [renamed[comparison.name]] if comparison.name in renamed else []
    pairs, shared = comparison.no_unk_pairs, comparison.no_unk_shared
    no_unk = no_unk_note(comparison.runs, comparison.name, pairs, shared)
    if no_unk:
        notes.append(no_unk)
    for key, about in comparison.shown_scores().items():
        found = (score_of(result, key) or {} for result in comparison.results.values())
        signatures = {str(score["signature"]) for score in found if score.get("signature")}
        notes += [f"{about['title']} signature: {signature}" for signature in sorted(signatures)]
    sentences = max((each.get("pairs") or 0 for each in comparison.results.values()), default=0)
    if 0 < sentences < FEWEST:
        notes.append(f"{counted(sentences, 'sentence')}: {FEW_SENTENCES}.")
    searches = {_search(result.get("search")) for result in comparison.results.values()}
    if comparison.recounted:
        others = ", ".join(comparison.recounted)
        notes.append(f"By length as the first run's sentences are counted: {others}.")
    notes += [f"Search: {search}." for search in sorted(searches) if search]
    related = correlation_of_alignment(comparison)
    if related is not None:
        runs, (value, low, high) = related
        notes.append(
            f"Over {runs} runs AER and BLEU correlate by {value:.2f} (Pearson's r, 95 % interval by "
            f"Fisher's z {low:.2f} to {high:.2f})."
        )
    return notes


def correlation_of_alignment(
    comparison: SetComparison,
) -> tuple[int, tuple[float, float, float]] | None:
    """How the alignment error rate goes with BLEU over runs: their number, and r with its interval.

    None for fewer than four runs that have both, or where one of the two is the same in all.
    """
    found = [
        [score_of(result, key) for key in ("alignment_error_rate", "bleu")]
        for result in comparison.results.values()
    ]
    pairs = [(rate["score"], bleu["score"]) for rate, bleu in found if rate and bleu]
    if len(pairs) < 4:
        return None
    try:
        r = statistics.correlation(*zip(*pairs, strict=True))
    except statistics.StatisticsError:
        return None
    z = math.atanh(max(-1 + 1e-12, min(1 - 1e-12, r)))
    half = statistics.NormalDist().inv_cdf(0.975) / math.sqrt(len(pairs) - 3)
    return len(pairs), (r, math.tanh(z - half), math.tanh(z + half))


def _search(settings: dict[str, Any] | None) -> str:
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in (settings or {}).items())


def bucket_names(comparison: SetComparison) -> list[str]:
    """Names of all buckets, short sentences first."""
    rows = (row for result in comparison.results.values() for row in result["by_length"])
    starts = {bucket_name(row): row["from"] for row in rows}
    return sorted(starts, key=lambda name: starts[name])


def _mean_and_deviation(values: Iterable[float | None]) -> MeanAndDeviation | float | None:
    """Mean and deviation of what is known; of a single run its figure."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return known[0] if known else None
    return MeanAndDeviation(statistics.mean(known), statistics.stdev(known))
