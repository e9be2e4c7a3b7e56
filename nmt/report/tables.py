"""The tables of a comparison: scores as in the paper's Table 1, seeds, lengths, training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from nmt.config.schema import INITIAL_CHECKPOINT
from nmt.evaluation.curves import LOST
from nmt.evaluation.paper import ROWS, SOURCE, TEST_SET
from nmt.evaluation.table import COLUMNS
from nmt.report.comparison import MAX_PAIRED, Comparison, only
from nmt.report.curves import resampled_words
from nmt.report.runs import MISSING, FinishedRun, differing_keys
from nmt.utils.files import write_text
from nmt.utils.printable import printable
from nmt.utils.progress import enumeration

NONE = "–"
MAX_HEADLINES = 6  # groups with a sentence each in the headline
TERMINAL_WIDTH = 70  # columns for the scores; names of runs stand behind them


class Cell(NamedTuple):
    """A number as people read it.

    Attributes:
        text: the number; a dash if there is none.
        beside: its interval or deviation.
        value: the number by which a page sorts; None if there is none.
    """

    text: str = NONE
    beside: str = ""
    value: float | None = None

    def __str__(self) -> str:
        return f"{self.text} {self.beside}".strip()


@dataclass(frozen=True)
class Table:
    """A table for people.

    Attributes:
        frame: texts and `Cell`s; a column of cells is set to the right.
        notes: what a reader must know to read the numbers, a sentence each.
    """

    name: str
    title: str
    frame: pd.DataFrame
    notes: list[str] = field(default_factory=list)

    @property
    def texts(self) -> pd.DataFrame:
        """The cells as text."""
        return self.frame.map(lambda cell: printable(str(cell)))

    def is_text(self, column: str) -> bool:
        return not any(isinstance(cell, Cell) for cell in self.frame[column])

    def markdown(self) -> str:
        """The table with its title and notes in Markdown."""
        signs = {"\\": "\\\\", "|": "\\|", "<": "&lt;", "\n": " "}
        rules = ["---" if self.is_text(column) else "---:" for column in self.frame]
        rows = [list(self.frame), *self.texts.to_numpy().tolist()]
        lines = ["| " + " | ".join(_escaped(str(c), signs) for c in row) + " |" for row in rows]
        lines.insert(1, f"|{'|'.join(rules)}|")
        notes = [f"\n{_escaped(note, signs)}" for note in self.notes]
        return "\n".join([f"### {_escaped(self.title, signs)}", "", *lines, *notes]) + "\n"

    def latex(self) -> str:
        """The table as a LaTeX `tabular` with the rules of booktabs; notes are comments."""
        columns = "".join("l" if self.is_text(column) else "r" for column in self.frame)
        body = self.texts.to_latex(index=False, escape=True, column_format=columns)
        comments = "".join(f"% {' '.join(line.split())}\n" for line in (self.title, *self.notes))
        signs = {"\N{MINUS SIGN}": "$-$", "±": r"$\pm$", "–": "--", "\u202f": r"\,"}
        return printable(comments) + _escaped(body, signs)

    def terminal(self) -> str:
        """The table for a terminal: text to the left, numbers to the right."""
        rows = [list(self.frame), *self.texts.to_numpy().tolist()]
        widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        forms = [
            f"{{:{'<' if self.is_text(column) else '>'}{width}}}"
            for column, width in zip(self.frame, widths, strict=True)
        ]
        return "\n".join("  ".join(forms).format(*row).rstrip() for row in rows)


def number(value: Any, digits: int = 2, low: Any = None, high: Any = None) -> Cell:
    """A number, and its interval if it has one, with a true minus sign and thin spaces.

    >>> str(number(-1234.5, 1)), str(number(None)), str(number(2, 1, 1.5, 2.5))
    ('−1\u202f234.5', '–', '2.0 [1.5, 2.5]')
    """
    if value is None or pd.isna(value):
        return Cell()
    text = f"{value:z,.{digits}f}".replace(",", "\u202f").replace("-", "\N{MINUS SIGN}")
    if low is None or high is None or pd.isna(low) or pd.isna(high):
        return Cell(text, value=float(value))
    ends = f"[{number(low, digits).text}, {number(high, digits).text}]"
    return Cell(text, ends, float(value))


def heading(about: dict[str, Any]) -> str:
    """The title of a score with its unit.

    >>> heading({"title": "NLL per word", "unit": "nats"}), heading({"title": "TER", "unit": "points"})
    ('NLL per word (nats)', 'TER')
    """
    plain = about["unit"] in ("", "points", "ratio")
    return str(about["title"]) if plain else f"{about['title']} ({about['unit']})"


def pivot(
    frame: pd.DataFrame, comparison: Comparison, index: dict[str, str], columns: str = "key"
) -> pd.DataFrame:
    """A frame of scores as a table of cells: a row for each value of the columns `index`.

    Args:
        frame: scores with `value`, `low`, `high` and `key`.
        index: the titles of the columns that name the rows.
        columns: the column whose values become columns, in the order in which they come; scores in
            the order of the page, with their titles.
    """
    digits = {key: about["digits"] for key, about in comparison.about.items()}
    cells = [
        number(row.value, digits[row.key], row.low, row.high)
        for row in frame[["value", "low", "high", "key"]].itertuples()
    ]
    rows = frame[list(index)].drop_duplicates().set_index(list(index)).index
    order = [key for key in digits if key in set(frame["key"])] if columns == "key" else None
    table = (
        frame.assign(cell=pd.Series(cells, index=frame.index, dtype=object))
        .pivot(index=list(index), columns=columns, values="cell")
        .reindex(columns=order or list(dict.fromkeys(frame[columns])))
        .reindex(rows)
        .map(lambda cell: cell if isinstance(cell, Cell) else Cell())
    )
    if columns == "key":
        table.columns = [heading(comparison.about[key]) for key in table]
    return table.reset_index().rename(columns=index).rename_axis(columns=None)


def scores_table(comparison: Comparison, test_set: str) -> Table:
    """A table like the paper's Table 1, with more scores."""
    table = pivot(comparison.whole(test_set), comparison, {"run": "Run"})
    return Table(
        f"scores_{test_set}", f"Scores on {test_set}", table, comparison.notes.get(test_set, [])
    )


def lengths_table(comparison: Comparison, test_set: str, keys: Sequence[str] = ()) -> Table:
    """Every run in every bucket.

    Args:
        keys: of the scores; all that are given by length if empty.
    """
    frame = comparison.by_length(test_set)
    frame = frame[frame["key"].isin(list(keys or comparison.about))]
    titles = {key: heading(about) for key, about in comparison.about.items()}
    frame = frame.assign(title=frame["key"].map(titles))
    table = pivot(frame, comparison, {"title": "Score", "run": "Run"}, "bucket")
    table.insert(0, "Run", table.pop("Run"))
    title = f"Scores by length on {test_set}"
    if len(keys) == 1:
        table = table.drop(columns="Score")
        title = f"{titles[keys[0]]} by length on {test_set}"
    notes = [f"Scores by number of words; {comparison.level} bootstrap intervals over sentences."]
    return Table(f"by_length_{test_set}", title, table, notes)


def seeds_table(comparison: Comparison, test_set: str) -> Table:
    """Mean and standard deviation over the seeds of each group; empty without a group of two."""
    names = {run.label: name for name, runs in comparison.groups.items() for run in runs}
    buckets = comparison.by_length(test_set)
    buckets = buckets[buckets["key"] == "bleu"]
    whole = comparison.whole(test_set)
    frame = pd.concat(
        [
            whole.assign(column=whole["key"].map(lambda k: heading(comparison.about[k]))),
            buckets.assign(column=buckets["bucket"]),
        ]
    )
    frame = frame.assign(group=frame["run"].map(names))
    means = frame.groupby(["group", "column", "key"], sort=False)["value"]
    means = means.agg(["mean", "std", "size"]).reset_index()
    if not (means["size"] > 1).any():
        return Table(f"seeds_{test_set}", "", pd.DataFrame())
    cells = []
    for row in means.itertuples():
        digits = comparison.about[row.key]["digits"]
        beside = f"± {row.std:.{digits}f}" if row.size > 1 else ""
        cells.append(number(row.mean, digits)._replace(beside=beside))
    order = list(dict.fromkeys(frame["column"]))
    table = means.assign(cell=cells).pivot(index="group", columns="column", values="cell")
    table = table.reindex(index=list(dict.fromkeys(frame["group"])), columns=order)
    table = table.map(lambda cell: cell if isinstance(cell, Cell) else Cell())
    counts = frame.groupby("group")["run"].nunique()
    table.insert(0, "Seeds", [number(counts[name], 0) for name in table.index])
    table = table.rename_axis("Runs that differ by their seed", axis=0).reset_index()
    notes = ["Mean ± standard deviation over seeds; on the right, BLEU by number of words."]
    return Table(f"seeds_{test_set}", f"Over seeds, on {test_set}", table, notes)


def unknown_words_table(comparison: Comparison, test_set: str) -> Table:
    """BLEU of every run by the number of unknown words of a pair."""
    frame = comparison.unknown_words
    frame = frame[frame["set"] == test_set].assign(key="bleu")
    counts = frame.groupby("unknown", sort=False)["sentences"].max()
    listed = enumeration([f"{count:,} with {name}" for name, count in counts.items()])
    return Table(
        f"by_unknown_words_{test_set}",
        f"BLEU by unknown words on {test_set}",
        pivot(frame, comparison, {"run": "Run"}, "unknown"),
        [
            f"BLEU with {comparison.level} bootstrap intervals over sentences, by the number of words "
            "of a pair, source and reference together, that the run's own shortlists lack.",
            f"Pairs, at most: {listed}.",
        ],
    )


def positions_table(comparison: Comparison, test_set: str) -> Table:
    """BLEU that sentences lose as parts of longer inputs, by their position."""
    frame = pd.concat([run.position_losses for run in comparison.runs])
    frame = frame[frame["set"] == test_set].rename(columns={"from": "start"})
    rows: dict[str, dict[str, Any]] = {}
    for row in frame.itertuples():
        place = "all positions" if pd.isna(row.start) else f"position {row.start}"
        cells = rows.setdefault(row.run, {"Run": row.run})
        cells[place] = number(row.value, 2, row.low, row.high)
    return Table(
        f"positions_{test_set}",
        f"Loss by position in {test_set}",
        pd.DataFrame(list(rows.values())),
        [
            "BLEU of sentences alone less BLEU of the same sentences in inputs, by position in the input."
        ],
    )


def paper_table() -> Table:
    """Every row of the paper, as published."""
    columns = {
        **{"bleu_all": ("BLEU all", 2), "bleu_no_unk": ("BLEU no UNK", 2)},
        **{"updates": ("Updates", 0), "epochs": ("Epochs", 1), "hours": ("Hours", 0)},
        **{"train_nll": ("Train NLL", 1), "valid_nll": ("Dev. NLL", 1)},
    }
    rows = [
        {"System": row["name"], "Device": row["device"] or NONE}
        | {title: number(row[key], digits) for key, (title, digits) in columns.items()}
        for row in map(asdict, ROWS)
    ]
    notes = [
        f"{SOURCE}: English to French, tokenised BLEU of multi-bleu, NLL in nats per sentence. "
        "Scores on another test set cannot be compared with them."
    ]
    title = f"Published by the paper, on {TEST_SET} (not measured here)"
    return Table("published", title, pd.DataFrame(rows), notes)


def training_table(runs: Sequence[FinishedRun]) -> Table:
    """A table like the paper's Table 2: what the training took."""
    rows = []
    for run in runs:
        train, valid = run.results.get("train") or {}, run.results.get("valid") or {}
        if not train:
            continue
        memory = train.get("peak_memory")
        rows.append(
            {
                "Run": run.label,
                "Updates": number(train.get("updates") or None, 0),
                "Epochs": number(train.get("epochs"), 1),
                "Hours": number(train.get("hours")),
                "Device": train.get("device") or NONE,
                "Train NLL": number(train.get("nll_per_sentence")),
                "Dev. NLL": number(valid.get("nll_per_sentence")),
                "Target words/s": number(train.get("target_words_per_second"), 0),
                "Parameters": number(run.results.get("parameters"), 0),
                "Peak memory, GB": number(None if memory is None else memory / 1e9),
                "Started from": run.flat.get(INITIAL_CHECKPOINT, NONE),
            }
        )
    frame = pd.DataFrame(rows)
    if rows and (frame["Started from"] == NONE).all():
        frame = frame.drop(columns="Started from")
    notes = ["NLL in nats per sentence; hours add up over resumes."]
    return Table("training", "Training (as Table 2)", frame, notes)


def settings_table(runs: Sequence[FinishedRun]) -> Table:
    """The configuration keys in which runs differ, one row a key."""
    rows = [
        {"Key": key}
        | {
            run.label: NONE if value is MISSING else "null" if value is None else str(value)
            for run, value in zip(runs, values, strict=True)
            if not run.external
        }
        for key, values in differing_keys(runs).items()
    ]
    return Table("settings", "Where the configurations differ", pd.DataFrame(rows))


def all_tables(comparison: Comparison) -> list[Table]:
    """Every table that has rows, in the order people read them."""
    makers = [scores_table, retention_table, seeds_table, lengths_table]
    makers += [unknown_words_table, positions_table]
    tables = [make(comparison, name) for name in comparison.sets for make in makers]
    tables += [training_table(comparison.runs), paper_table(), settings_table(comparison.runs)]
    return [table for table in tables if len(table.frame)]


def write_tables(comparison: Comparison, folder: Path) -> None:
    """Writes scores.csv, differences.csv, tables.md for reading, and a LaTeX file a table."""
    folder.mkdir(parents=True, exist_ok=True)
    scores = comparison.scores[["run", *COLUMNS]]
    write_text(folder / "scores.csv", scores.to_csv(index=False))
    for name in ("curves", "retention", "differences"):
        write_text(folder / f"{name}.csv", getattr(comparison, name).to_csv(index=False))
    tables = all_tables(comparison)
    write_text(folder / "tables.md", "\n".join(table.markdown() for table in tables))
    for table in tables:
        write_text(folder / f"{table.name}.tex", table.latex())


def terminal_table(comparison: Comparison) -> Table:
    """BLEU of every run on each set and, where there is room, by length on the first."""
    frame = comparison.scores[comparison.scores["key"] == "bleu"]
    whole = frame[frame["bucket"] == "all"]
    whole = whole.assign(column=whole["set"] + " ")  # a set may be named after a bucket
    title = "BLEU on each test set"
    parts = [whole[whole["set"] == name] for name in comparison.sets]
    if comparison.sets:
        first = comparison.by_length(comparison.sets[0])
        first = first[first["key"] == "bleu"]
        columns = {*whole["column"], *first["bucket"]}
        if sum(2 + max(5, len(column)) for column in columns) <= TERMINAL_WIDTH:
            parts.append(first.assign(column=first["bucket"]))
            title += f" and, by number of words, on {comparison.sets[0]}"
    shown = pd.DataFrame(index=pd.Index([run.label for run in comparison.runs], name="Run"))
    if parts:
        values = pd.concat(parts).assign(low=None, high=None)
        shown = shown.join(pivot(values, comparison, {"run": "Run"}, "column").set_index("Run"))
    hours = [(run.results.get("train") or {}).get("hours") for run in comparison.runs]
    shown["minutes"] = [number(h and 60 * h, 1) for h in hours]
    shown.insert(0, "folder", [run.folder.name if run.folder else NONE for run in comparison.runs])
    rows = [{"folder": each.name, "Run": "not finished"} for each in comparison.unfinished]
    shown = pd.concat([shown.reset_index(), pd.DataFrame(rows)]).fillna(NONE)
    shown["Run"] = shown.pop("Run")  # the last column: names are long
    return Table("terminal", f"{title}; minutes of training", shown)


def headline(comparison: Comparison, test_set: str) -> str:
    """A sentence a group of seeds, such as "A: BLEU 43 at 10 words, 9 at 50: 21 % [19, 23] left."

    Of many groups those that keep the least and the most; empty without a curve.
    """
    frame = comparison.retention
    frame = frame[frame["set"] == test_set]
    precisions = frame[frame["key"] == "bleu_precisions"].set_index("name")
    frame = frame[frame["key"] == "bleu"]
    if len(frame) > MAX_HEADLINES:
        frame = frame.sort_values("value").iloc[[0, -1]]
    sentences = []
    for row in frame.itertuples():
        text = (
            f"{row.name}: BLEU {row.score_short:.0f} at {row.short:.0f} words, {row.score_long:.0f} at "
            f"{row.long:.0f}: {share(row)} left"
        )
        if row.name in precisions.index:
            text += f" (without the brevity penalty {share(precisions.loc[row.name])})"
        sentences.append(f"{text}.")
    if frame["low"].notna().any():
        over = resampled_words(frame)
        sentences.append(f"In brackets: {comparison.level} intervals over {over}.")
    return " ".join(sentences)


def share(row: Any) -> str:
    """A ratio with its interval in per cent.

    >>> share(pd.Series({"value": 0.214, "low": 0.19, "high": 0.23}))
    '21\xa0% [19, 23]'
    """
    text = f"{100 * row.value:.0f}\N{NO-BREAK SPACE}%"
    return text if pd.isna(row.low) else f"{text} [{100 * row.low:.0f}, {100 * row.high:.0f}]"


def retention_table(comparison: Comparison, test_set: str) -> Table:
    """What long sentences keep of each score; empty without a curve."""
    frame = comparison.retention
    frame = frame[frame["set"] == test_set]
    rows = []
    for row in frame.itertuples():
        about = comparison.about[row.key]
        digits = about["digits"]
        left = number(100 * row.value, 0, 100 * row.low, 100 * row.high)
        entry = {
            "Runs": row.name,
            "Score": heading(about),
            f"At {row.short:.0f} words": number(row.score_short, digits),
            f"At {row.long:.0f} words": number(row.score_long, digits),
            "Left, %": left,
            "Constant error rate, %": number(100 * row.constant, 0),
            "Left less that": number(100 * row.above, 0, 100 * row.above_low, 100 * row.above_high),
            "Points": number(row.score_long - row.score_short, digits),
        }
        for lost in LOST:
            name = f"lost_{lost:.2f}".replace(".", "_")
            parts = (getattr(row, name + end) for end in ("", "_low", "_high"))
            value, low, high = (f"> {row.longest:.0f}" if pd.isna(x) else f"{x:.0f}" for x in parts)
            beside = "" if low == high else f"[{low}, {high}]"
            entry[f"{lost:.0%} lost at"] = Cell(value, beside, getattr(row, name))
        rows.append(entry)
    notes = [
        "Scores read off the curves over length. Left: the score of the long sentences divided by "
        "that of the short ones. Constant error rate: what is left of a system with the same score "
        "and the same error rate per word at every length; where the interval in the next column is "
        "below 0, the run falls more than that.",
        "Lost: the first length, in words, at which that share of the score at the short length is "
        "lost; > says that it is not reached where the curve is known. "
        f"Intervals: {comparison.level}, bootstrap over {resampled_words(frame)}.",
    ]
    title = f"What is left in long sentences, on {test_set}"
    return Table(f"retention_{test_set}", title, pd.DataFrame(rows).fillna(NONE), notes)


def length_curve(run: FinishedRun) -> str:
    """BLEU by length for the terminal, on the set with the fullest buckets; empty without any."""
    comparison = only(run)
    if not comparison.sets:
        return ""
    test_set = comparison.sets[0]
    frame = comparison.by_length(test_set).query("key == 'bleu'")
    if len(frame) < 2:
        return ""
    most = max(frame["value"].max(), 1e-9)
    shown = pd.DataFrame(
        {
            "words": frame["bucket"],
            "sentences": [number(count, 0) for count in frame["sentences"]],
            "BLEU": [number(r.value, 1, r.low, r.high) for r in frame.itertuples()],
            "": ["█" * round(30 * value / most) for value in frame["value"]],
        }
    )
    return f"BLEU by length on {test_set}:\n{Table('curve', '', shown).terminal()}"


def paired_note(comparison: Comparison, test_set: str) -> list[str]:
    """Which runs are compared in pairs, where they are not all."""
    count = len(comparison.present(test_set))
    if count <= MAX_PAIRED:
        return []
    return [
        f"Of the {count} runs these are the {MAX_PAIRED} of the highest BLEU on the set (other "
        "systems first); runs= takes others."
    ]


def names_of(runs: Iterable[str]) -> str:
    """Names as a title has them, four at most."""
    names = list(runs)
    return enumeration(names if len(names) <= 4 else [*names[:3], f"{len(names) - 3} more"])


def _escaped(text: str, signs: dict[str, str]) -> str:
    return "".join(signs.get(character, character) for character in printable(text))
