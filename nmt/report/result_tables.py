"""The tables of a comparison: scores as in the paper's Table 1, seeds, lengths, training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from nmt.config.changes import flatten
from nmt.evaluation.documents import at_length, axis_title, dimension, in_documents, short_and_long
from nmt.evaluation.scores import REGISTERED
from nmt.evaluation.scores_csv import COLUMNS
from nmt.report.comparison import LEVEL, Comparison
from nmt.report.retention import CONSTANT, ERRORS, EXCESS, RETAINED, resampled_words
from nmt.report.runs import FinishedRun, differing_settings
from nmt.report.score_against_score import (
    DIFFERENCE,
    FALLING,
    LEAST,
    MOST,
    SPEARMAN,
    plain_sentences,
)
from nmt.report.table import NONE, Cell, Table, number, pivot
from nmt.utils.files import write_text

UNKNOWN = "Retention of"  # notes that begin so belong to the table of retention, if there is one
TITLES = {"by_length": "sentences of all lengths", "test": "the test set"}  # of sets, for people
MAX_HEADLINES = 6  # if there are more groups, a headline describes only two of them
RATES = (RETAINED, CONSTANT, EXCESS, ERRORS, DIFFERENCE)  # statistics that tables show in per cent

TRAINING: dict[str, tuple[str, int | None]] = {  # column title -> key, and decimals (None: text)
    "Run": ("run", None),
    "Updates": ("train.updates", 0),
    "Epochs": ("train.epochs", 1),
    "Hours": ("train.hours", 2),
    "Device": ("train.device", None),
    "Train NLL": ("train.nll_per_sentence", 2),
    "Dev. NLL": ("valid.nll_per_sentence", 2),
    "Target words/s": ("train.target_words_per_second", 0),
    "Parameters": ("parameters", 0),
    "Peak memory, GB": ("memory", 2),
}


def set_title(name: str) -> str:
    """Returns the title of a test set: its name, or a description of a set of the built-in corpus."""
    return TITLES.get(name, name)


def heading(about: Mapping[str, Any]) -> str:
    """Returns the title of a score with its unit.

    >>> heading({"title": "NLL per word", "unit": "nats"}), heading({"title": "TER", "unit": "points"})
    ('NLL per word (nats)', 'TER')
    """
    plain = about["unit"] in ("", "points", "ratio")
    return str(about["title"]) if plain else f"{about['title']} ({about['unit']})"


def with_cells(frame: pd.DataFrame, comparison: Comparison) -> pd.DataFrame:
    """Sorts scores as the page shows them, and adds the columns `cell` and `title`."""
    about = comparison.about
    frame = frame.sort_values("key", key=lambda keys: keys.map(list(about).index), kind="stable")
    cells = [
        number(row.value, about[row.key]["digits"], row.low, row.high)
        for row in frame[["key", "value", "low", "high"]].itertuples()
    ]
    titles = [heading(about[key]) for key in frame["key"]]
    return frame.assign(title=titles, cell=pd.Series(cells, index=frame.index, dtype=object))


def scores_table(comparison: Comparison, test_set: str) -> Table:
    """Makes a table of all scores on a test set, like the paper's Table 1."""
    frame = pivot(with_cells(comparison.whole(test_set), comparison), {"run": "Run"}, "title")
    shown = len(comparison.retention.query("set == @test_set")) > 0
    notes = [
        each
        for each in comparison.notes.get(test_set, [])
        if not (shown and each.startswith(UNKNOWN))
    ]
    return Table(f"scores_{test_set}", f"Scores on {set_title(test_set)}", frame, notes)


def lengths_table(comparison: Comparison, test_set: str, keys: Sequence[str] = ()) -> Table:
    """Makes a table of the scores `keys` by length for every run; if `keys` is empty, of all scores."""
    frame = comparison.by_length(test_set)
    frame = with_cells(frame[frame["key"].isin(list(keys or comparison.about))], comparison)
    score = frame["title"].iloc[0] if len(keys) == 1 and len(frame) else "Scores"
    rows = {"run": "Run"} if len(keys) == 1 else {"title": "Score", "run": "Run"}
    unit, drawn = comparison.unit(test_set), resampled_words(frame)
    note = f"Scores by {axis_title(unit)}; {LEVEL} bootstrap intervals over {drawn}."
    by = dimension(unit) if in_documents(unit) else "length"
    title = f"{score} by {by} on {set_title(test_set)}"
    return Table(f"by_length_{test_set}", title, pivot(frame, rows, "bucket"), [note])


def seeds_table(comparison: Comparison, test_set: str) -> Table:
    """Makes a table of each score's mean and standard deviation over seeds; empty if no group has two runs."""
    names = {run.label: name for name, runs in comparison.groups.items() for run in runs}
    buckets = comparison.by_length(test_set).query("key == 'bleu'")
    frame = with_cells(comparison.whole(test_set), comparison)
    frame = pd.concat([frame, buckets.assign(title=buckets["bucket"])])
    frame = frame.assign(group=frame["run"].map(names))
    means = frame.groupby(["group", "title", "key"], sort=False)["value"]
    means = means.agg(["mean", "std", "size"]).reset_index()
    if not (means["size"] > 1).any():
        return Table(f"seeds_{test_set}", "", pd.DataFrame())
    cells = []
    for row in means.itertuples():
        digits = comparison.about[row.key]["digits"]
        beside = f"± {row.std:.{digits}f}" if row.size > 1 else ""
        cells.append(number(row.mean, digits)._replace(beside=beside))
    table = pivot(means.assign(cell=cells), {"group": "Runs that differ only in seed"}, "title")
    counts = frame.groupby("group", sort=False)["run"].nunique()
    table.insert(1, "Seeds", [number(count, 0) for count in counts])
    unit = comparison.unit(test_set)
    notes = [f"Mean ± standard deviation over seeds; last columns: BLEU by number of {unit}."]
    return Table(f"seeds_{test_set}", f"Over seeds, on {set_title(test_set)}", table, notes)


def cell_of(row: Any, digits: int) -> Cell:
    """Formats a statistic of retention.csv or against.csv, with its interval."""
    if row.statistic in RATES:
        cell = number(100 * row.value, 0, 100 * row.low, 100 * row.high)
        return cell._replace(text=f"{cell.text}\N{NO-BREAK SPACE}%")
    if row.statistic.endswith("lost at"):
        far = f"> {row.longest:.0f}"
        values = (row.value, row.low, row.high)
        text, low, high = (far if pd.isna(each) else f"{each:.0f}" for each in values)
        return Cell(text, "" if low == high else f"[{low}, {high}]", row.value)
    if row.statistic == FALLING:
        return number(row.value, 0)._replace(beside=f"of {row.systems}")
    plain = row.statistic == SPEARMAN or row.statistic.startswith("of the median")
    return number(row.value, 2 if plain else digits, row.low, row.high)


def retention_table(comparison: Comparison, test_set: str) -> Table:
    """Makes a table of the retention of each score; empty if there is no curve."""
    frame = comparison.retention.query("set == @test_set and domain == ''")
    frame = with_cells(frame, comparison)
    cells = [cell_of(row, comparison.about[row.key]["digits"]) for row in frame.itertuples()]
    unit = comparison.unit(test_set)
    columns = frame["statistic"]
    if in_documents(unit):
        for end in {*frame["from"], *frame["to"]}:
            columns = columns.str.replace(f"at {end:.0f} {unit}", f"at {at_length(end, unit)}")
    frame = frame.assign(cell=cells, column=columns.str.capitalize())
    table = pivot(frame, {"name": "Runs", "title": "Score"}, "column")
    _, long = short_and_long(unit)
    called = (
        f"the {dimension(unit)}, which is called length here" if in_documents(unit) else "length"
    )
    notes = [
        f"Values of the curves over {called}. Retention: the distance from the worst value of the score at "
        "the long length, divided by that at the short length. Error ratio: the score at the long length "
        f"divided by that at the short length, if 0 is its best value; above 100 %, {long} are worse. "
        "Retention at a constant error rate: that of simulated systems with the same score and the same "
        "error rate per word at every length. Excess retention: the first minus the second; if its "
        f"interval is below 0, {long} lose more than a constant error rate explains.",
        f"Lost: the first length, in {unit}, at which this share of the score at "
        "the short length is lost; > means: not reached within the curve. "
        f"Intervals: {LEVEL}, bootstrap over {resampled_words(frame)}.",
    ]
    simulated = set(frame.loc[frame["statistic"] == EXCESS, "title"])
    without = [title for title in frame["title"].unique() if title not in simulated]
    if simulated and without:
        notes.append(
            f"No excess retention of {', '.join(without)}: scores of detokenised text, of a model or from "
            "a file are not computed for the simulated systems, whose errors are in tokens."
        )
    notes += [each for each in comparison.notes.get(test_set, []) if each.startswith(UNKNOWN)]
    title = f"What {long} keep, on {set_title(test_set)}"
    return Table(f"retention_{test_set}", title, table, notes)


def domains_table(comparison: Comparison, test_set: str) -> Table:
    """Makes a table of the retention of each score by domain; empty if there are no domains."""
    frame = comparison.retention.query("set == @test_set and statistic == @RETAINED")
    frame = with_cells(frame if frame["domain"].any() else frame[:0], comparison)
    first, last = frame["from"].min(), frame["to"].max()
    cells = []
    for ends, row in zip(frame[["from", "to"]].to_numpy(), frame.itertuples(), strict=True):
        cell = cell_of(row, 0)
        if tuple(ends) != (first, last):  # the curve starts later or ends earlier than others
            cell = cell._replace(text="{} ({:.0f}–{:.0f})".format(cell.text, *ends))
        cells.append(cell)
    frame = frame.assign(cell=cells, column=frame["domain"].replace("", "all"))
    table = pivot(frame, {"name": "Runs", "title": "Score"}, "column")
    note = (
        "Retention: the score at the long length divided by the score at the short length; between "
        "other lengths where two are given. Adjusted: every domain has at all lengths its share of "
        "the whole set. Empty: too few sentences, or lengths closer than a factor of 2. "
        f"Intervals: {LEVEL}, bootstrap over {resampled_words(frame)}."
    )
    _, long = short_and_long(comparison.unit(test_set))
    title = f"What {long} keep, by domain, on {set_title(test_set)}"
    return Table(f"domains_{test_set}", title, table, [note])


def against_table(comparison: Comparison, test_set: str) -> Table:
    """Makes a table of what each score says of long sentences, a row per score; empty without scores from files."""
    frame = comparison.against.query("set == @test_set")
    frame = frame[~frame["statistic"].isin([LEAST, MOST])]
    about = comparison.about
    titles = {key: heading(each) for key, each in about.items()}
    frame = frame.assign(
        cell=[cell_of(row, about[row.score]["digits"]) for row in frame.itertuples()],
        title=frame["score"].map(titles),
        domain=frame["domain"].replace("", "as they are"),
        column=frame["statistic"].str.capitalize(),
    )
    rows = {"title": "Score"} | ({"domain": "Domains"} if frame["domain"].nunique() > 1 else {})
    bases = frame[["domain", "from", "to", "sentences", "systems"]].drop_duplicates("domain")
    notes = [
        f"{domain.capitalize()}: {first} to {last} {comparison.unit(test_set)}; the same {sentences:,} "
        f"sentences, which have all scores, and the same {systems} systems in each row."
        for domain, first, last, sentences, systems in bases.itertuples(index=False)
    ]
    if len(frame):
        against = titles[frame["against"].iloc[0]]
        notes.append(
            "Means over the systems. A system falls if the interval of its retention is below 100 % (else that "
            "of its error ratio above 100 %, or that of its change on the worse side of 0). Difference and "
            f"Spearman's correlation (over the systems; Bonett and Wright, 2000) are with {against}. A dash: the "
            f"score has no such number, since its worst (or best) value is not known. Other intervals: {LEVEL}, "
            f"paired bootstrap over {resampled_words(frame)}, for these systems."
        )
    title = f"Score against score, on {set_title(test_set)}"
    return Table(f"against_{test_set}", title, pivot(frame, rows, "column"), notes)


def headline(comparison: Comparison, test_set: str) -> str:
    """Returns one sentence with the retention of each group, the highest one first.

    "From 10 to 50 words, A keeps 97 % of its BLEU; B keeps 21 %." If there are more than `MAX_HEADLINES` groups,
    it names only those with the highest and the lowest retention. It is empty if there is no curve.
    """
    frame = comparison.retention.query(
        "set == @test_set and domain == '' and key == 'bleu' and statistic == @RETAINED"
    ).sort_values("value", ascending=False, kind="stable")
    if len(frame) > MAX_HEADLINES:
        frame = frame.iloc[[0, -1]]
    parts = []
    unit = comparison.unit(test_set)
    for (first, last), rows in frame.groupby(["from", "to"], sort=False):
        kept = [
            f"{row['name']} keeps {100 * row['value']:.0f}\N{NO-BREAK SPACE}%"
            for row in rows.to_dict("records")
        ]
        kept[0] += " of its BLEU"
        start = at_length(first, unit) if in_documents(unit) else f"{first:.0f}"
        parts.append(f"From {start} to {at_length(last, unit)}, {'; '.join(kept)}.")
    compared = comparison.against.query("set == @test_set")
    if len(compared):
        domain = compared["domain"].max()  # adjusted, if there are domains
        titles = {key: about["title"] for key, about in comparison.about.items()}
        parts += plain_sentences(compared[compared["domain"] == domain], titles)
    return " ".join(parts)


def paper_table() -> Table:
    """Makes a table of all rows of the paper (its Tables 1 and 2), as published."""

    def as_printed(text: Any) -> Cell:
        return Cell() if pd.isna(text) else number(float(text), len(text.partition(".")[2]))

    frame = pd.read_csv(Path(__file__).with_name("published.csv"), dtype=str)
    numbers = frame.columns.drop(["System", "Device"])
    frame = frame.fillna({"Device": NONE}).assign(**frame[numbers].map(as_printed))
    note = (
        "Bahdanau, Cho, Bengio (ICLR 2015), Tables 1 and 2: English to French, tokenised BLEU of "
        "multi-bleu, NLL in nats per sentence. "
        "Scores on another test set cannot be compared with them."
    )
    title = "Published in the paper, on newstest2014 (not measured here)"
    return Table("published", title, frame, [note])


def training_table(runs: Sequence[FinishedRun]) -> Table:
    """Makes a table like the paper's Table 2: updates, time, losses and memory of each training run."""
    rows = []
    for run in runs:
        if train := run.results.get("train"):
            memory = train.get("peak_memory")
            known = flatten(run.results) | {"run": run.label, "memory": memory and memory / 1e9}
            row: dict[str, Any] = {}
            for title, (key, digits) in TRAINING.items():
                value = known.get(key)
                row[title] = str(value or NONE) if digits is None else number(value, digits)
            rows.append(row)
    notes = ["NLL in nats per sentence; hours include the time before a resume."]
    return Table("training", "Training (as Table 2)", pd.DataFrame(rows), notes)


def settings_table(runs: Sequence[FinishedRun]) -> Table:
    """Makes a table of the configuration keys in which runs differ, one row per key."""
    frame = differing_settings([run for run in runs if not run.external]).T
    frame = frame.rename_axis("Key").reset_index()
    return Table("settings", "Where the configurations differ", frame)


def all_tables(comparison: Comparison) -> list[Table]:
    """Returns all tables that have rows, in the order of tables.md."""
    makers = (
        scores_table,
        retention_table,
        domains_table,
        against_table,
        seeds_table,
        lengths_table,
    )
    tables = [make(comparison, name) for name in comparison.sets for make in makers]
    tables.append(training_table(comparison.runs))
    tables += [] if all(run.external for run in comparison.runs) else [paper_table()]
    tables.append(settings_table(comparison.runs))
    return [table for table in tables if len(table.frame)]


def write_tables(comparison: Comparison, folder: Path) -> None:
    """Writes scores.csv and other CSV files, tables.md, and one LaTeX file per table."""
    scores = comparison.scores[["run", *COLUMNS]]
    write_text(folder / "scores.csv", scores.to_csv(index=False))
    for name in ("curves", "retention", "differences", "against"):
        write_text(folder / f"{name}.csv", getattr(comparison, name).to_csv(index=False))
    tables = all_tables(comparison)
    write_text(folder / "tables.md", "\n".join(table.markdown() for table in tables))
    for table in tables:
        write_text(folder / f"{table.name}.tex", table.latex())


def scores_by_length(comparison: Comparison) -> str:
    """Returns the first score (BLEU) by length on the first test set as a text table, or "" if there is none."""
    if not comparison.sets or not (keys := comparison.main(comparison.sets[0])):
        return ""
    name = comparison.sets[0]
    frame = comparison.scores.query("set == @name and key == @keys[0]")
    frame = frame.sort_values("from", na_position="first").assign(low=None, high=None)
    rows = pivot(with_cells(frame, comparison), {"run": "Run"}, "bucket")
    title = REGISTERED[keys[0]].title if keys[0] in REGISTERED else keys[0]
    return f"{title} by length on {set_title(name)}:\n{Table('terminal', '', rows).rows()}"


def names_of(runs: Iterable[str]) -> str:
    """Joins names for a title; of more than four, it names three and counts the others."""
    names = list(runs)
    *first, last = names if len(names) <= 4 else [*names[:3], f"{len(names) - 3} more"]
    return f"{', '.join(first)} and {last}" if first else last
