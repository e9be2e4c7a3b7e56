"""Writes the tables of docs/results.md from the records in docs/results.

    python -m benchmarks.records

A table stands between two comments. The first names a study, what to show, a test set, the
languages and, where not all are wanted, groups of runs by pattern:

    <!-- table: multi30k scores test2016 en-fr rnn* -->
    <!-- end of table -->

What to show is `scores`, `alignment`, `runs`, `unknown` (BLEU by number of unknown words) or
`lengths` (BLEU by source length; `lengths:nll_per_word` another score). `claims STUDY NAME ...` is
a table of verdicts, without names of all of the study's.

docs/results/columns.csv explains the columns of the files.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import pandas as pd

from nmt.evaluation.estimate import FEWEST_SEEDS
from nmt.evaluation.scores import REGISTERED

DOCS = Path(__file__).resolve().parents[1] / "docs"
RECORDS = DOCS / "results"
PAGE = DOCS / "results.md"
TABLE = re.compile(r"(<!-- table: ([^\n]*) -->\n)(.*?)(<!-- end of table -->)", re.DOTALL)
BY_SET = ("bleu", "bleu_no_unk", "sacrebleu", "chrf", "nll_per_sentence")
BY_LINKS = ("alignment_error_rate", "precision", "recall", "eos_weight", "eos_share")
TITLES = {
    "bleu": "BLEU, tokens, cased",
    "bleu_no_unk": "no UNK",
    "sacrebleu": "sacreBLEU, detokenised",
}
NOTHING = "–"
OLD_STATISTICS = ("slope", "tenth", "breakpoint")  # straight lines through buckets
Cells = list[list[str]]


class Records:
    """What docs/results holds: `scores`, `runs` and `claims`, a frame each."""

    def __init__(self, folder: Path = RECORDS) -> None:
        text = {
            "keep_default_na": False,
            "na_values": {name: [""] for name in ("value", "low", "high", "p_holm")},
        }
        self.runs = pd.read_csv(folder / "runs.csv")
        self.claims = pd.read_csv(folder / "claims.csv", **text)
        self.scores = pd.read_csv(folder / "scores.csv.xz", **text)
        for end in ("from", "to", "sentences"):
            self.scores[end] = pd.to_numeric(self.scores[end])

    def chosen(self, study: str, name: str, languages: str, groups: Sequence[str]) -> pd.DataFrame:
        """The runs of a study that have a test set, in groups that match one of the patterns.

        Raises:
            ValueError: for a pattern that matches none.
        """
        tested = self.scores[(self.scores["study"] == study) & (self.scores["set"] == name)]
        runs = self.runs[(self.runs["study"] == study) & (self.runs["languages"] == languages)]
        runs = runs[runs["group"].isin(tested["group"])]
        for pattern in groups or ["*"]:
            if not any(fnmatchcase(group, pattern) for group in runs["group"]):
                raise ValueError(f"{study} {name} {languages} {pattern}: no such runs")
        wanted = [any(fnmatchcase(g, p) for p in groups or ["*"]) for g in runs["group"]]
        return runs[wanted]

    def of(self, runs: pd.DataFrame, name: str) -> pd.DataFrame:
        """The scores of some runs on a test set, `bleu_no_unk` as a score of its own."""
        found = self.scores[self.scores["set"] == name].merge(runs[["study", "group", "seed"]])
        found.loc[found["subset"] == "no_unk", "score"] += "_no_unk"
        return found


def with_tables(page: str, records: Records) -> str:
    """A page with every marked table written anew.

    Raises:
        ValueError: for a table that cannot be made.
    """
    return TABLE.sub(lambda found: found[1] + table_of(found[2], records) + found[4], page)


def table_of(asked: str, records: Records) -> str:
    """The table of a mark, in Markdown."""
    words = asked.split()
    if words[:1] == ["claims"] and len(words) > 1:
        return claims(records.claims, *words[1:])
    if len(words) < 4 or words[1].partition(":")[0] not in KINDS:
        raise ValueError(f"<!-- table: {asked} -->: no such table")
    study, kind, name, languages, *groups = words
    kind, _, score = kind.partition(":")
    runs = records.chosen(study, name, languages, groups)
    return KINDS[kind](runs, records.of(runs, name), *([score] if score else []))


def claims(rows: pd.DataFrame, study: str, *names: str) -> str:
    """Claim, verdict and figure of a study's claims.

    Raises:
        ValueError: for a name that no claim of the study has.
    """
    rows = rows[rows["study"] == study].set_index("name", drop=False)
    unknown_names = [name for name in names if name not in rows.index]
    if rows.empty or unknown_names:
        raise ValueError(f"{study} {unknown_names}: no such claims")
    cells = []
    for row in rows.loc[list(names) or list(rows.index)].itertuples():
        few = int(row.seeds) < FEWEST_SEEDS and row.verdict in ("supported", "refuted")
        verdict = f"{row.verdict}, of these models" if few else row.verdict
        values = "" if pd.isna(row.values) or not row.values else f" ({row.values})"
        figure = f"{_verdict_figure(row)}, {row.seeds} seed{'' if row.seeds == 1 else 's'}{values}"
        before = row.before
        if row.statistic in OLD_STATISTICS:
            before = f"decided by the old statistic ({row.statistic})"
        brevity = " (without the brevity penalty)" if row.score == "bleu_precisions" else ""
        cells.append([row.claim + brevity, verdict, figure, _holm(row.p_holm), before])
    return markdown(["claim", "verdict", "figure", "p, Holm", "before"], cells, texts=5)


def _holm(value: float) -> str:
    return NOTHING if pd.isna(value) else "< 0.001" if value < 0.001 else number(value, 3)


def _verdict_figure(row: pd.Series) -> str:
    words = row.statistic in ("tenth", "breakpoint")
    retention = row.statistic == "retention"
    digits, unit = (1, " words") if words else (3 if retention else max(2, _digits(row.score)), "")
    low, high = (None if pd.isna(end) else number(end, digits) for end in (row.low, row.high))
    if not pd.isna(row.value):
        said = f"{number(row.value, digits)}{unit} [{low or '…'}, {high or '…'}]"
    else:
        said = f"before {high}{unit}" if low is None else f"beyond {low}{unit}"
    return said if row.confidence == 0.95 else f"{said} ({100 * row.confidence:g} %)"


def set_scores(runs: pd.DataFrame, found: pd.DataFrame) -> str:
    """A row for each group: its scores on a test set."""
    return _by_score(runs, found[found["aligner"] == ""], BY_SET)


def alignment(runs: pd.DataFrame, found: pd.DataFrame) -> str:
    """A row for each group with attention, and for each aligner beside its first run."""
    own = found[(found["aligner"] == "") & found["score"].isin(BY_LINKS)]
    attending = runs[runs["group"].isin(own["group"])]
    others = found[found["aligner"] != ""]
    extra = []
    for (group, aligner), rows in others.groupby(["group", "aligner"], sort=False):
        name = attending.loc[attending["group"] == group, "name"].iloc[0]
        first = rows[rows["seed"] == rows["seed"].iloc[0]]
        cells = [_cell(first[first["score"] == key], _digits(key)) for key in BY_LINKS]
        extra.append([f"{name}: {aligner}", NOTHING, *cells])
    return _by_score(attending, own, BY_LINKS, extra)


def _by_score(
    runs: pd.DataFrame, found: pd.DataFrame, keys: Sequence[str], extra: Cells | None = None
) -> str:
    whole = found[found["from"].isna() & (found["subset"] != "unknown_words")]
    keys = [key for key in keys if (whole["score"] == key).any()]
    cells = [
        [name, seeds, *(_cell(mine[mine["score"] == key], _digits(key), count) for key in keys)]
        for name, seeds, count, mine in _groups(runs, whole)
    ]
    heads = [TITLES.get(key) or REGISTERED[key].title for key in keys]
    return markdown(["", "seeds", *heads], cells + (extra or []))


def lengths(runs: pd.DataFrame, found: pd.DataFrame, score: str = "bleu") -> str:
    """A score of each group by source length, a digit less than of the whole set."""
    rows = found[(found["score"] == score) & found["from"].notna() & (found["subset"] == "all")]
    return _by_part(runs, rows, _digits(score) - 1)


def unknown(runs: pd.DataFrame, found: pd.DataFrame) -> str:
    """BLEU of each group by the number of words of a pair that its shortlists lack."""
    return _by_part(runs, found[found["subset"] == "unknown_words"], 1)


def _by_part(runs: pd.DataFrame, rows: pd.DataFrame, digits: int) -> str:
    parts = rows[["from", "to"]].drop_duplicates().sort_values("from")
    heads = [bucket_name(first, last) for first, last in parts.itertuples(index=False)]
    cells = [
        [
            name,
            seeds,
            *(_cell(mine[mine["from"] == first], digits, ends=False) for first in parts["from"]),
        ]
        for name, seeds, _, mine in _groups(runs, rows)
    ]
    return markdown(["", "seeds", *heads], cells)


def bucket_name(first: float, last: float) -> str:
    if pd.isna(last):
        return f"{first:.0f}+"
    return f"{first:.0f}" if first == last else f"{first:.0f}-{last:.0f}"


def single_runs(runs: pd.DataFrame, found: pd.DataFrame) -> str:
    """A row for each run: its BLEU with its interval, and how it was trained."""
    whole = found[(found["score"] == "bleu") & found["from"].isna()]
    cells = []
    for run in runs.itertuples():
        bleu = whole[(whole["group"] == run.group) & (whole["seed"] == run.seed)]
        trained = [
            (run.updates, 0),
            (run.epochs, 1),
            (run.minutes, 0),
            (run.train_nll_per_sentence, 2),
            (run.valid_nll_per_sentence, 2),
        ]
        evaluated = pd.isna(run.minutes)
        shown = [
            NOTHING if evaluated or pd.isna(v) or not v else number(v, digits)
            for v, digits in trained
        ]
        seed = NOTHING if evaluated else str(run.seed)
        commit = re.sub(r"^(.{7})[0-9a-f]*", r"\1", run.commit)
        cells.append([run.name, seed, _cell(bleu, 2), *shown, run.processor, commit])
    heads = ["", "seed", TITLES["bleu"], "updates", "epochs", "minutes", "train NLL", "dev. NLL"]
    return markdown([*heads, "processor", "commit"], cells, texts=(0, 8, 9))


KINDS: dict[str, Callable[..., str]] = {
    "scores": set_scores,
    "alignment": alignment,
    "lengths": lengths,
    "unknown": unknown,
    "runs": single_runs,
}


def _groups(runs: pd.DataFrame, rows: pd.DataFrame):  # type: ignore[no-untyped-def]
    """Title, seeds, number of runs and rows of each group, in the order of `runs`."""
    for (study, group), mine in runs.groupby(["study", "group"], sort=False):
        ensemble = "checkpoint=[" in mine["command"].iloc[0]
        seeds = NOTHING if ensemble else ", ".join(map(str, mine["seed"]))
        chosen = rows[(rows["study"] == study) & (rows["group"] == group)]
        yield mine["name"].iloc[0], seeds, len(mine), chosen


def _cell(rows: pd.DataFrame, digits: int, runs: int = 1, *, ends: bool = True) -> str:
    """A score with its interval, or the mean and standard deviation over runs; a dash unless all have it."""
    values = rows["value"].dropna()
    if values.empty or len(values) < runs:
        return NOTHING
    if len(values) > 1:
        return f"{values.mean():z.{digits}f} ± {values.std():.{digits}f}"
    low, high = rows[["low", "high"]].iloc[0]
    if not ends or pd.isna(low):
        return number(values.iloc[0], digits)
    return f"{number(values.iloc[0], digits)} [{number(low, digits)}, {number(high, digits)}]"


def number(value: float, digits: int) -> str:
    """A number with a true minus sign, and thin spaces between thousands."""
    return f"{value:z,.{digits}f}".replace(",", "\u202f").replace("-", "\N{MINUS SIGN}")


def markdown(heads: list[str], cells: Cells, texts: int | Sequence[int] = 2) -> str:
    """A table; the columns `texts` (or the first so many) are set to the left."""
    left = range(texts) if isinstance(texts, int) else texts
    rules = ["---" if place in left else "---:" for place in range(len(heads))]
    lines = ["| " + " | ".join(heads) + " |", "|" + "|".join(rules) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in cells]
    escaped = "\n".join(lines).replace("</s>", "&lt;/s>")
    return f"\n{escaped}\n\n"


def _digits(score: str) -> int:
    known = REGISTERED.get(score.removesuffix("_no_unk"))
    return known.digits if known else 3  # of a score that was recorded and is no more


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    records = Records()
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), records), encoding="utf-8")


if __name__ == "__main__":
    main()
