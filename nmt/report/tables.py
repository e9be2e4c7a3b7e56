"""The tables of a comparison: scores as in the paper's Table 1, seeds, lengths, differences."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from nmt.config.schema import INITIAL_CHECKPOINT
from nmt.evaluation.paper import ROWS, SOURCE, TEST_SET
from nmt.report.comparison import MAX_PAIRED, Comparison, bleu_by_length, only
from nmt.report.runs import MISSING, FinishedRun, differing_keys, sets_of
from nmt.utils.files import write_text
from nmt.utils.printable import printable
from nmt.utils.progress import enumeration

RUN = "Run"
NONE = "–"
LONG = 50  # words: end of the bucket that the headline compares with the first one
MAX_SAID = 6  # groups with a sentence each in the headline
TERMINAL_WIDTH = 70  # columns that the figures may take; names of runs stand behind them


class Cell(NamedTuple):
    """A number as people read it.

    Attributes:
        text: the number; a dash for none.
        beside: its interval or deviation.
        value: by which a page sorts; None for none.
    """

    text: str
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
        escapes = {"\\": "\\\\", "|": "\\|", "<": "&lt;", "\n": " "}
        rules = ["---" if self.is_text(column) else "---:" for column in self.frame]
        rows = [list(self.frame), *self.texts.to_numpy().tolist()]
        lines = ["| " + " | ".join(_escaped(str(c), escapes) for c in row) + " |" for row in rows]
        lines.insert(1, f"|{'|'.join(rules)}|")
        notes = [f"\n{_escaped(note, escapes)}" for note in self.notes]
        return "\n".join([f"### {_escaped(self.title, escapes)}", "", *lines, *notes]) + "\n"

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


def number(value: Any, digits: int = 2) -> Cell:
    """A number with a true minus sign and thin spaces between thousands.

    >>> str(number(-1234.5, 1)), str(number(None))
    ('−1\u202f234.5', '–')
    """
    if value is None or pd.isna(value):
        return Cell(NONE)
    text = f"{value:z,.{digits}f}".replace(",", "\u202f").replace("-", "\N{MINUS SIGN}")
    return Cell(text, value=float(value))


def measured(row: Any, digits: int, value: str = "value") -> Cell:
    """The cell of a row with `value`, `low` and `high`."""
    cell = number(row[value], digits)
    if pd.isna(row["low"]) or pd.isna(row["high"]):
        return cell
    ends = (number(row[end], digits).text for end in ("low", "high"))
    return cell._replace(beside=f"[{', '.join(ends)}]")


def deviation(values: Sequence[float], digits: int) -> Cell:
    """Mean and standard deviation of several values; of a single one the value."""
    if len(values) < 2:
        return number(values[0] if len(values) else None, digits)
    cell = number(statistics.mean(values), digits)
    return cell._replace(beside=f"± {statistics.stdev(values):.{digits}f}")


def heading(about: dict[str, Any]) -> str:
    """The title of a score with its unit.

    >>> heading({"title": "NLL a word", "unit": "nats"}), heading({"title": "TER", "unit": "points"})
    ('NLL a word (nats)', 'TER')
    """
    plain = about["unit"] in ("", "points", "ratio")
    return str(about["title"]) if plain else f"{about['title']} ({about['unit']})"


def scores_table(comparison: Comparison, test_set: str) -> Table:
    """A table like the paper's Table 1, with more scores."""
    frame = comparison.on(test_set)
    whole = frame[frame["bucket"] == "all"]
    rows = {run.label: {RUN: run.label} for run in comparison.present(test_set)}
    return Table(
        f"scores_{test_set}",
        f"Scores on {test_set}",
        _pivoted(rows, "run", whole, _titles(comparison, whole), comparison),
        comparison.notes.get(test_set, []),
    )


def lengths_table(comparison: Comparison, test_set: str, keys: Sequence[str] = ()) -> Table:
    """Every run in every bucket.

    Args:
        keys: of the scores; all that are given by length if empty.
    """
    frame = comparison.on(test_set)
    frame = frame[frame["bucket"] != "all"].sort_values("from", kind="stable")
    keys = list(keys) or [key for key in comparison.about if key in set(frame["key"])]
    names = {name: name for name in dict.fromkeys(frame["bucket"])}
    parts = []
    for key in keys:
        of_score = frame[frame["key"] == key]
        rows = {}
        for run in comparison.present(test_set):
            head: dict[str, Any] = {RUN: run.label, "Score": heading(comparison.about[key])}
            curve = bleu_by_length(of_score[of_score["run"] == run.label], test_set)
            if len(curve):
                best = curve.loc[curve["value"].idxmax()]
                head["Best bucket"] = frame.loc[best.name, "bucket"]
                head["Fall, best to last"] = number(best["value"] - curve["value"].iloc[-1])
            if (of_score["run"] == run.label).any():
                rows[run.label] = head
        parts.append(_pivoted(rows, "run", of_score, names, comparison, "bucket"))
    table = pd.concat(parts).fillna(NONE) if parts else pd.DataFrame()
    title = f"Scores by length on {test_set}"
    if len(keys) == 1:
        table = table.drop(columns="Score", errors="ignore")
        title = f"{comparison.about[keys[0]]['title']} by length on {test_set}"
    notes = [f"Scores by number of words, with {comparison.level} intervals; the fall is BLEU's."]
    return Table(f"by_length_{test_set}", title, table, notes)


def seeds_table(comparison: Comparison, test_set: str) -> Table:
    """Mean and standard deviation over the seeds of each group; empty without a group of two."""
    frame = comparison.on(test_set)
    present = {run.label for run in comparison.present(test_set)}
    groups = {
        name: [run.label for run in runs if run.label in present]
        for name, runs in comparison.groups.items()
    }
    whole = frame[frame["bucket"] == "all"]
    buckets = frame[(frame["bucket"] != "all") & (frame["key"] == "bleu")]
    buckets = buckets.sort_values("from", kind="stable")
    rows = []
    for name, labels in groups.items():
        if not labels:
            continue
        row: dict[str, Any] = {"Runs that differ by their seed": name}
        row["Seeds"] = number(len(labels), 0)
        for key, title in _titles(comparison, whole).items():
            of_score = whole[(whole["key"] == key) & whole["run"].isin(labels)]
            row[title] = deviation(of_score["value"].tolist(), comparison.about[key]["digits"])
        for bucket in dict.fromkeys(buckets["bucket"]):
            inside = buckets[(buckets["bucket"] == bucket) & buckets["run"].isin(labels)]
            row[bucket] = deviation(inside["value"].tolist(), 1)
        rows.append(row)
    several = any(len(labels) > 1 for labels in groups.values())
    return Table(
        f"seeds_{test_set}",
        f"Over seeds, on {test_set}",
        pd.DataFrame(rows if several else []),
        [
            "Mean ± standard deviation over seeds; BLEU by number of words in the columns on the right."
        ],
    )


def unknown_words_table(comparison: Comparison, test_set: str) -> Table:
    """BLEU of every run by the number of unknown words of a pair."""
    frame = comparison.unknown_words
    frame = frame[frame["set"] == test_set]
    rows = {label: {RUN: label} for label in dict.fromkeys(frame["run"])}
    names = {name: name for name in sorted(set(frame["unknown"]))}
    counts = frame.groupby("unknown")["sentences"].max()
    said = enumeration([f"{count:,} with {name}" for name, count in counts.items()])
    return Table(
        f"by_unknown_words_{test_set}",
        f"BLEU by unknown words on {test_set}",
        _pivoted(rows, "run", frame.assign(key="bleu"), names, comparison, "unknown"),
        [
            f"BLEU with {comparison.level} intervals by the number of words of a pair, source and "
            "reference together, that the run's own shortlists lack.",
            f"Pairs, at most: {said}.",
        ],
    )


def paired_note(comparison: Comparison, test_set: str) -> list[str]:
    """Which runs are compared in pairs, where they are not all."""
    count = len(comparison.present(test_set))
    if count <= MAX_PAIRED:
        return []
    return [
        f"Of the {count} runs these are the {MAX_PAIRED} of the highest BLEU on the set (outside "
        "systems first); runs= takes others."
    ]


def paper_table() -> Table:
    """Every row of the paper, as published."""
    columns = {
        **{"bleu_all": ("BLEU all", 2), "bleu_no_unk": ("BLEU no UNK", 2)},
        **{"updates": ("Updates", 0), "epochs": ("Epochs", 1), "hours": ("Hours", 0)},
        **{"train_nll": ("Train NLL", 1), "valid_nll": ("Dev. NLL", 1)},
    }
    rows = [
        {
            "System": row["name"],
            "Device": row["device"] or NONE,
            **{title: number(row[key], digits) for key, (title, digits) in columns.items()},
        }
        for row in map(asdict, ROWS)
    ]
    notes = [
        f"{SOURCE}: English to French, tokenised BLEU of multi-bleu, NLL in nats a sentence. "
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
                RUN: run.label,
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
    notes = ["NLL in nats a sentence; hours add up over resumes."]
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
    makers: list[Callable[[Comparison, str], Table]] = [
        *(scores_table, seeds_table, lengths_table, unknown_words_table)
    ]
    tables = [make(comparison, name) for name in comparison.sets for make in makers]
    tables += [training_table(comparison.runs), paper_table(), settings_table(comparison.runs)]
    return [table for table in tables if len(table.frame)]


def write_tables(comparison: Comparison, folder: Path) -> None:
    """Writes scores.csv, differences.csv, tables.md for reading, and a LaTeX file a table."""
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "scores.csv", comparison.scores.to_csv(index=False))
    write_text(folder / "differences.csv", comparison.differences.to_csv(index=False))
    tables = all_tables(comparison)
    write_text(folder / "tables.md", "\n".join(table.markdown() for table in tables))
    for table in tables:
        write_text(folder / f"{table.name}.tex", table.latex())


def terminal_table(comparison: Comparison) -> Table:
    """BLEU of every run on each set and, where there is room, by length on the first."""
    titles = {name: f"{name} " for name in comparison.sets}  # a set may be named after a bucket
    columns = {("all", name): title for name, title in titles.items()}
    if comparison.sets:
        first = comparison.sets[0]
        rows = comparison.on(first)
        rows = rows[(rows["key"] == "bleu") & (rows["bucket"] != "all")].sort_values("from")
        more = {(name, first): name for name in dict.fromkeys(rows["bucket"])}
        if (
            sum(2 + max(5, len(title)) for title in [*columns.values(), *more.values()])
            <= TERMINAL_WIDTH
        ):
            columns |= more
    frame = (
        pd.concat([comparison.on(name) for name in comparison.sets]) if comparison.sets else None
    )
    shown = []
    for run in comparison.runs:
        hours = (run.results.get("train") or {}).get("hours")
        row: dict[str, Any] = {"folder": run.folder.name if run.folder else NONE}
        for (bucket, name), title in columns.items():
            assert frame is not None
            found = frame[
                (frame["run"] == run.label)
                & (frame["set"] == name)
                & (frame["bucket"] == bucket)
                & (frame["key"] == "bleu")
            ]
            row[title] = number(found["value"].iloc[0] if len(found) else None)
        row["minutes"] = number(None if hours is None else 60 * hours, 1)
        shown.append(row | {"run": run.label})
    shown += [{"folder": f.name, "run": "not finished"} for f in comparison.unfinished]
    title = "BLEU on each test set"
    if len(columns) > len(titles):
        title += f" and, by number of words, on {comparison.sets[0]}"
    return Table("terminal", f"{title}; minutes of training", pd.DataFrame(shown).fillna(NONE))


def headline(comparison: Comparison, test_set: str) -> str:
    """A sentence a group of seeds, such as "A: BLEU 43 at 10 words, 9 at 50: 21 % left."

    Of many groups those that keep the least and the most; empty without two closed buckets.
    """
    found = []
    for name, runs in comparison.groups.items():
        curve = bleu_by_length(comparison.scores, test_set)
        curve = curve[curve["run"].isin([run.label for run in runs])].dropna(subset="to")
        means = curve.groupby("to")["value"].mean()
        if len(means) < 2 or means.iloc[0] <= 0:
            continue
        short, long = means.index[0], LONG if LONG in means.index[1:] else means.index[-1]
        share = means[long] / means[short]
        bleu = f"BLEU {means[short]:.0f} at {short} words, {means[long]:.0f} at {long}"
        found.append((share, f"{name}: {bleu}: {100 * share:.0f} % left."))
    if len(found) > MAX_SAID:
        found = [min(found), max(found)]
    return " ".join(sentence for _, sentence in found)


def names_of(runs: Iterable[str]) -> str:
    """Names as a title has them, four at most."""
    names = list(runs)
    return enumeration(names if len(names) <= 4 else [*names[:3], f"{len(names) - 3} more"])


def length_curve(run: FinishedRun) -> str:
    """The curve of a run for the terminal: BLEU by length on the set with the fullest buckets.

    Empty without such a set.
    """
    comparison = only(run)
    sets = comparison.sets if sets_of([run]) else []
    rows = bleu_by_length(run.scores, sets[0]) if sets else pd.DataFrame()
    if len(rows) < 2:
        return ""
    frame = comparison.on(sets[0]).loc[rows.index]
    most = max(frame["value"].max(), 1e-9)
    shown = pd.DataFrame(
        {
            "words": frame["bucket"],
            "sentences": [number(count, 0) for count in frame["sentences"]],
            "BLEU": [measured(row, 1) for row in frame.to_dict("records")],
            "": ["█" * round(30 * value / most) for value in frame["value"]],
        }
    )
    return f"BLEU by length on {sets[0]}:\n{Table('curve', '', shown).terminal()}"


def _titles(comparison: Comparison, frame: pd.DataFrame) -> dict[str, str]:
    """Headings of the scores that a frame has, by key."""
    present = set(frame["key"])
    return {key: heading(a) for key, a in comparison.about.items() if key in present}


def _pivoted(
    rows: dict[str, dict[str, Any]],
    index: str,
    frame: pd.DataFrame,
    titles: dict[str, str],
    comparison: Comparison,
    columns: str = "key",
) -> pd.DataFrame:
    """A frame with a row for each of `rows`, to which the scores of a frame are added.

    Args:
        rows: first cells by the value of the column `index`.
        frame: rows of scores.
        titles: of the columns by the value of the column `columns`.
    """
    found: dict[tuple[str, str], Cell] = {}
    for row in frame.to_dict("records"):
        found[row[index], row[columns]] = measured(row, comparison.about[row["key"]]["digits"])
    return pd.DataFrame(
        {**head, **{title: found.get((name, key), Cell(NONE)) for key, title in titles.items()}}
        for name, head in rows.items()
    )


def _escaped(text: str, signs: dict[str, str]) -> str:
    return "".join(signs.get(character, character) for character in printable(text))
