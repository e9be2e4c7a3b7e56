"""The tables of a comparison: the paper's Tables 1 and 2, length, significance, settings."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from nmt.evaluation.published import SOURCE, TEST_SET, published_rows
from nmt.evaluation.significance import FEWEST
from nmt.report.comparison import SetComparison, bucket_name
from nmt.report.disambiguation import renamed_sets
from nmt.report.groups import grouped
from nmt.report.runs import MISSING, Run, differing_keys
from nmt.report.table import Column, Spread, Table, levels

WRITTEN = re.compile(r"(scores|seeds|by_length|significance)_.+|training|published|differences")
"""Names of the tables that `all_tables` may give."""


def scores_table(comparison: SetComparison) -> Table:
    """A table like the paper's Table 1, with more scores, the paper's own figures beside them."""
    published = {row["experiment"]: row for row in published_rows() if row["experiment"]}
    rows = []
    for run in comparison.runs:
        result = comparison.scores[run.label]
        beside = published.get(run.results.get("experiment"), {})
        rows.append(
            {
                "run": run.label,
                "all": _range(result["bleu"].get("all")),
                "no_unk": _range(result["bleu"].get("no_unk")),
                "published_all": beside.get("bleu_all"),
                "published_no_unk": beside.get("bleu_no_unk"),
                "sacrebleu": (result.get("sacrebleu") or {}).get("score"),
                "chrf": (result.get("chrf") or {}).get("score"),
                "nll": result.get("nll_per_sentence"),
                "perplexity": result.get("perplexity"),
                "aer": (result.get("alignment") or {}).get("error_rate"),
                "length_ratio": result.get("length_ratio"),
                "brevity": result.get("brevity_penalty"),
            }
        )
    columns = [
        Column("run", "Run", text=True),
        Column("all", "BLEU all"),
        Column("no_unk", "BLEU no UNK"),
        Column("published_all", "Published, all"),
        Column("published_no_unk", "Published, no UNK"),
        Column("sacrebleu", "sacreBLEU"),
        Column("chrf", "chrF"),
        Column("nll", "NLL a sentence"),
        Column("perplexity", "Perplexity"),
        Column("aer", "AER", 3),
        Column("length_ratio", "Length ratio", 3),
        Column("brevity", "Brevity penalty", 3),
    ]
    return Table(
        f"scores_{comparison.name}",
        f"Scores on {comparison.name} (as Table 1)",
        columns,
        rows,
        _score_notes(comparison),
    )


def published_table() -> Table:
    """Every row of the paper, as published."""
    columns = [
        Column("name", "System", text=True),
        Column("bleu_all", "BLEU all"),
        Column("bleu_no_unk", "BLEU no UNK"),
        Column("updates", "Updates", 0),
        Column("epochs", "Epochs", 1),
        Column("hours", "Hours", 0),
        Column("device", "Device", text=True),
        Column("train_nll", "Train NLL", 1),
        Column("valid_nll", "Dev. NLL", 1),
    ]
    note = f"As published, on {TEST_SET}: {SOURCE}."
    return Table("published", "The paper's figures", columns, published_rows(), [note])


def seeds_table(comparison: SetComparison) -> Table:
    """Mean and standard deviation over the seeds of each group of runs; no rows where no group has two runs."""
    groups = grouped(comparison.runs)
    rows = []
    for name, runs in groups.items():
        scores = [comparison.scores[run.label] for run in runs]
        cells = {
            "group": name,
            "runs": len(runs),
            "all": _spread(_score(s["bleu"].get("all")) for s in scores),
            "no_unk": _spread(_score(s["bleu"].get("no_unk")) for s in scores),
            "nll": _spread(s.get("nll_per_sentence") for s in scores),
            "aer": _spread((s.get("alignment") or {}).get("error_rate") for s in scores),
        }
        for bucket in _buckets(comparison):
            found = (row for run in runs for row in comparison.lengths[run.label])
            cells[bucket] = _spread(row["score"] for row in found if bucket_name(row) == bucket)
        rows.append(cells)
    columns = [
        Column("group", "Runs that differ by their seed", text=True),
        Column("runs", "Seeds", 0),
        Column("all", "BLEU all"),
        Column("no_unk", "BLEU no UNK"),
        Column("nll", "NLL a sentence"),
        Column("aer", "AER", 3),
        *(Column(name, name, 1) for name in _buckets(comparison)),
    ]
    return Table(
        f"seeds_{comparison.name}",
        f"Over seeds, on {comparison.name}",
        columns,
        rows if any(len(runs) > 1 for runs in groups.values()) else [],
        [
            "Mean ± standard deviation over seeds; BLEU by number of words in the columns on the right."
        ],
    )


def training_table(runs: Sequence[Run]) -> Table:
    """A table like the paper's Table 2: what the training took."""
    rows = []
    for run in runs:
        train, valid = run.results.get("train") or {}, run.results.get("valid") or {}
        if not train:
            continue
        rows.append(
            {
                "run": run.label,
                "updates": train.get("updates"),
                "epochs": train.get("epochs"),
                "hours": train.get("hours"),
                "device": train.get("device"),
                "train_nll": train.get("nll_per_sentence"),
                "valid_nll": valid.get("nll_per_sentence"),
                "words": train.get("target_words_per_second"),
                "parameters": run.results.get("parameters"),
                "memory": _gigabytes(train.get("peak_memory")),
            }
        )
    columns = [
        Column("run", "Run", text=True),
        Column("updates", "Updates", 0),
        Column("epochs", "Epochs", 1),
        Column("hours", "Hours", 2),
        Column("device", "Device", text=True),
        Column("train_nll", "Train NLL"),
        Column("valid_nll", "Dev. NLL"),
        Column("words", "Target words/s", 0),
        Column("parameters", "Parameters", 0),
        Column("memory", "Peak memory, GB", 2),
    ]
    note = "NLL in nats a sentence; hours are accumulated over resumes."
    return Table("training", "Training (as Table 2)", columns, rows, [note])


def lengths_table(comparison: SetComparison) -> Table:
    """BLEU of every run in every bucket, and how far it falls."""
    names = _buckets(comparison)
    table_rows = []
    for run in comparison.runs:
        cells: dict[str, Any] = {"run": run.label}
        cells |= {bucket_name(row): _range(row) for row in comparison.lengths[run.label]}
        decay = comparison.decay.get(run.label)
        if decay:
            cells |= {
                "best": bucket_name(decay.best),
                "drop": decay.drop,
                "slope": decay.slope,
            }
        table_rows.append(cells)
    columns = [
        Column("run", "Run", text=True),
        Column("best", "Best bucket", text=True),
        Column("drop", "Fall, best to last"),
        Column("slope", "Slope per 10 words"),
        *(Column(name, name) for name in names),
    ]
    notes = [
        f"BLEU with its {levels(comparison.confidence.values())} interval by number of words; "
        "the slope is a least-squares line over the buckets, each at the mean length of its "
        "sentences and weighing as many as it has."
    ]
    return Table(
        f"by_length_{comparison.name}",
        f"BLEU by length on {comparison.name}",
        columns,
        table_rows,
        notes,
    )


def significance_table(comparison: SetComparison) -> Table:
    """Every pair of runs, on the whole set and in each bucket."""
    columns = [
        Column("a", "A", text=True),
        Column("b", "B", text=True),
        Column("bucket", "Words", text=True),
        Column("sentences", "Sentences", 0),
        Column("delta", "A − B"),
        Column("p", "p", 4),
        Column("p_corrected", "p, corrected", 4),
        Column("p_randomised", "p by randomisation", 4),
        Column("p_randomised_corrected", "p by randomisation, corrected", 4),
    ]
    rows = [
        {**row, "delta": (row["delta"], row.get("low"), row.get("high"))}
        for row in comparison.significance
    ]
    tested = levels([max(comparison.confidence.values())])
    note = (
        f"{tested} intervals and p by paired bootstrap (no p below {FEWEST} sentences), beside it p by "
        "approximate randomisation; p-values of buckets corrected for their number (Holm)."
    )
    title = f"Differences in BLEU on {comparison.name}"
    return Table(f"significance_{comparison.name}", title, columns, rows, [note])


def differences_table(runs: Sequence[Run]) -> Table:
    """The configuration keys in which runs differ, one row a key."""
    rows = [
        {"key": key, **{run.label: _value(v) for run, v in zip(runs, values, strict=True)}}
        for key, values in differing_keys(runs).items()
    ]
    configured = [run for run in runs if not run.external]
    columns = [Column("key", "Key", text=True)]
    columns += [Column(run.label, run.label, text=True) for run in configured]
    return Table("differences", "Where the configurations differ", columns, rows)


def write_tables(
    runs: Sequence[Run], comparisons: Sequence[SetComparison], folder: str | Path
) -> list[Path]:
    """Writes `tables.md` and a CSV file a table, and returns their paths.

    Tables of an earlier comparison in the folder are removed: the files there are of one comparison.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.csv"):
        if WRITTEN.fullmatch(path.stem):
            path.unlink()
    tables = all_tables(runs, comparisons)
    paths = [folder / "tables.md"]
    paths[0].write_text("\n".join(table.markdown() for table in tables), encoding="utf-8")
    for table in tables:
        path = folder / f"{table.name}.csv"
        path.write_text(table.csv(), encoding="utf-8")
        paths.append(path)
    return paths


def all_tables(runs: Sequence[Run], comparisons: Sequence[SetComparison]) -> list[Table]:
    """Every table that has rows, in the order people read them."""
    makers: tuple[Callable[[SetComparison], Table], ...] = (
        scores_table,
        seeds_table,
        lengths_table,
        significance_table,
    )
    tables = [make(comparison) for comparison in comparisons for make in makers]
    tables += [training_table(runs), published_table(), differences_table(runs)]
    return [table for table in tables if table.rows]


def _score_notes(comparison: SetComparison) -> list[str]:
    renamed = renamed_sets(comparison.runs)
    notes = [renamed[comparison.name]] if comparison.name in renamed else []
    if comparison.no_unk_pairs:
        which = (
            "the sentences that every run's shortlists cover"
            if comparison.no_unk_shared
            else "sentences"
        )
        notes.append(f"No UNK: {comparison.no_unk_pairs} {which}, translated with <unk> forbidden.")
    notes.append(
        f"Published figures are the paper's own, on {TEST_SET}, another test set unless yours is that one."
    )
    detokenised = [comparison.scores[run.label].get("sacrebleu") or {} for run in comparison.runs]
    signatures = {str(score["signature"]) for score in detokenised if score.get("signature")}
    notes += [f"sacreBLEU signature: {signature}" for signature in sorted(signatures)]
    searches = {_search(comparison.scores[run.label].get("search")) for run in comparison.runs}
    notes += [f"Search: {search}." for search in sorted(searches) if search]
    return notes


def _search(settings: dict[str, Any] | None) -> str:
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in (settings or {}).items())


def _range(score: dict[str, Any] | None) -> tuple[float, float | None, float | None] | None:
    if score is None or score.get("score") is None:
        return None
    return score["score"], score.get("low"), score.get("high")


def _buckets(comparison: SetComparison) -> list[str]:
    """Names of all buckets, short sentences first."""
    rows = (row for rows in comparison.lengths.values() for row in rows)
    starts = {bucket_name(row): row["from"] for row in rows}
    return sorted(starts, key=lambda name: starts[name])


def _score(score: dict[str, Any] | None) -> float | None:
    return None if score is None else score.get("score")


def _spread(values: Iterable[float | None]) -> Spread | float | None:
    """Mean and deviation of what is known; of a single run its figure."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return known[0] if known else None
    return Spread(statistics.mean(known), statistics.stdev(known))


def _value(value: Any) -> str | None:
    if value is MISSING:
        return None
    return "null" if value is None else str(value)


def _gigabytes(size: float | None) -> float | None:
    return None if size is None else size / 1e9
