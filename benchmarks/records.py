"""Writes the tables of docs/results.md from the records in docs/results, and decides claims.

    python -m benchmarks.records
    python -m benchmarks.records --claims benchmarks/claims/bahdanau.yaml --runs 'multirun/*/*' phrases
    python -m benchmarks.records --add table1 rnnsearch50=RUN phrase_based=phrases … --claims FILE

`--claims FILE` prints the verdicts on the claims of a file (`benchmarks.claims`), which may be one of your own.
`--runs` are run folders, sweep folders, globs of them, and folders of `benchmarks.phrase_based`.

`--add STUDY GROUP=RUN` adds runs to the records of a study. A folder of `benchmarks.phrase_based` is scored on
the test sets of the runs beside it. With `--add`, `--claims` also records the verdicts. These use all runs in the
parent folders of the added runs.

Two comments enclose each table. The first comment names a study, a type of table, a test set, the languages
and, optionally, patterns of groups:

    <!-- table: multi30k scores test2016 en-fr rnn* -->
    <!-- end of table -->

The type is `scores`, or `lengths` for BLEU by source length. `table: claims STUDY NAME ...` shows the
verdicts on the claims with these names.

docs/results/columns.csv explains the columns of the records.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.claims import claims_table, decided_rows, read_claims, verdict_words
from nmt.cli.errors import exiting
from nmt.config.commands import CompareConfig
from nmt.config.keys import CONFIDENCE
from nmt.config.schema import EvaluationConfig
from nmt.evaluation.buckets import bucket_name
from nmt.evaluation.measured import keep_statistics, score_set
from nmt.evaluation.scores import REGISTERED
from nmt.evaluation.scores_csv import COLUMNS, score_table
from nmt.evaluation.significance import holm
from nmt.report.runs import FinishedRun, find_runs, separate_texts
from nmt.report.systems import read_systems
from nmt.report.table import NONE, number

DOCS = Path(__file__).resolve().parents[1] / "docs"
RECORDS = DOCS / "results"
PAGE = DOCS / "results.md"
RESAMPLES = 1000
SYSTEM = "system.json"  # written by benchmarks.phrase_based
TABLE = re.compile(r"(<!-- table: ([^\n]*) -->\n)(.*?)(<!-- end of table -->)", re.DOTALL)
BY_SET = ("bleu", "bleu_no_unk", "sacrebleu", "chrf", "nll_per_sentence")
TITLES = {
    "bleu": "BLEU, tokens, cased",
    "bleu_no_unk": "no UNK",
    "sacrebleu": "sacreBLEU, detokenised",
}


class Records:
    """The records in docs/results, as the data frames `scores`, `runs` and `claims`."""

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

    def table(self, asked: str) -> str:
        """Returns the Markdown table that a comment `table: ...` asks for."""
        study, kind, *rest = asked.split()
        if study == "claims":
            return claims(self.claims[self.claims["study"] == kind], rest)
        name, languages, *patterns = rest
        scores = self.scores[(self.scores["study"] == study) & (self.scores["set"] == name)]
        runs = self.runs[(self.runs["study"] == study) & (self.runs["languages"] == languages)]
        runs = runs[runs["group"].isin(scores["group"])]
        wanted = [any(fnmatchcase(g, p) for p in patterns or ["*"]) for g in runs["group"]]
        runs = runs[wanted]
        scores = scores.merge(runs[["study", "group", "seed"]])
        scores.loc[scores["subset"] == "no_unk", "score"] += "_no_unk"
        return {"scores": set_scores, "lengths": bleu_by_length}[kind](runs, scores)


def read_runs(patterns: Iterable[str | Path]) -> list[FinishedRun]:
    """Reads finished runs, and systems of `benchmarks.phrase_based`, which are scored on the test sets of the runs.

    Args:
        patterns: run folders, sweep folders, globs of them, and folders of systems.

    Raises:
        InputError: if there is no run, or a file cannot be read.
    """
    folders = [Path(pattern) for pattern in patterns]
    systems = [folder for folder in folders if (folder / SYSTEM).is_file()]
    runs = find_runs([folder for folder in folders if folder not in systems])
    return [*runs, *(read_system(folder, runs) for folder in systems)]


def read_system(folder: Path, runs: Sequence[FinishedRun]) -> FinishedRun:
    """Reads a folder of `benchmarks.phrase_based`, and scores its translations on the test sets of the runs."""
    content = json.loads((folder / SYSTEM).read_text(encoding="utf-8"))
    files = {file.stem: str(file) for file in sorted(folder.glob("*.txt"))}
    [system] = read_systems(CompareConfig(systems={content["name"]: files}), runs)
    system.folder = folder
    system.results |= content
    rows = []
    for name, translations in system.records.items():
        keep_statistics(translations, EvaluationConfig(), system.language)
        rows += score_set(name, translations, EvaluationConfig(), system.language)
    system.scores = score_table(rows)
    return system


def add(study: str, named: Sequence[tuple[str, Path]], records: Path = RECORDS) -> None:
    """Adds finished runs, given as (group, folder), to the records of a study.

    The added runs replace recorded runs with the same group and seed.
    """
    groups = {folder: group for group, folder in named}
    runs, scores = [], []
    for run in read_runs(groups):
        content = run.results
        train = content["train"]
        assert run.folder is not None
        key = {"study": study, "group": groups[run.folder], "seed": content["seed"]}
        languages = run.flat.get("data.languages") or content["languages"]
        runs.append(
            key
            | {name: content.get(name) for name in ("name", "max_length", "parameters")}
            | {name: train.get(name) for name in ("updates", "epochs", "device", "precision")}
            | {name: content[name] for name in ("processor", "commit", "command")}
            | {name: content["versions"][name] for name in ("torch", "sacrebleu")}
            | {
                "languages": "-".join(languages),
                "minutes": 60 * train["hours"],
                "train_nll_per_sentence": train.get("nll_per_sentence"),
                "valid_nll_per_sentence": content["valid"].get("nll_per_sentence"),
            }
        )
        found = run.scores[list(COLUMNS)].astype(object)
        found = found.where(found.notna(), "").map(_text)
        scores.append(found.assign(**{name: str(value) for name, value in key.items()}))
    for name, rows in (
        ("runs.csv", pd.DataFrame(runs, dtype=object).fillna("").map(_text)),
        ("scores.csv.xz", pd.concat(scores)),
    ):
        old = pd.read_csv(records / name, dtype=str, keep_default_na=False)
        keys = ["study", "group", "seed"]
        replaced = old[keys].agg("/".join, axis=1).isin(set(rows[keys].agg("/".join, axis=1)))
        columns = [*old.columns, *rows.columns.difference(old.columns)]
        both = pd.concat([old[~replaced], rows]).reindex(columns=columns)
        both.to_csv(records / name, index=False)


def _text(value: Any) -> str:
    """Formats a value for the records; a float gets 8 significant digits."""
    return f"{value:.8g}" if isinstance(value, float) else str(value)


def add_claims(study: str, path: Path, folders: Sequence[Path], records: Path = RECORDS) -> None:
    """Checks the claims of a file against the runs in folders, and records the verdicts.

    A claim whose runs are missing is not recorded; if it has an earlier record, that record stays.
    """
    file = read_claims(path)
    decided = list(decided_rows(file, read_runs(folders), RESAMPLES))
    pairs = [(*item, row) for item, row in zip(file.claims.items(), decided, strict=True)]
    pairs = [(key, claim, row) for key, claim, row in pairs if "estimate" in row]
    runs = " ".join(map(str, folders))
    own = path.resolve().is_relative_to(DOCS.parent)
    shown = path.resolve().relative_to(DOCS.parent) if own else path.name
    command = f"python -m benchmarks.records --claims {shown} --runs {runs}"
    rows = []
    for key, claim, row in pairs:
        estimate = row["estimate"]
        low, high = estimate.interval(CONFIDENCE)
        ((rule, margin),) = claim.rule.items()
        rows.append(
            {"study": study, "name": key, "rule": f"{rule} {margin:g}", "range": claim.part}
            | {
                each: getattr(claim, each)
                for each in ("claim", "source", "statistic", "set", "score")
            }
            | {each: row[each] for each in ("verdict", "p", "seeds", "reason", "values")}
            | {"runs": " ".join(claim.runs), "confidence": CONFIDENCE, "command": command}
            | {"value": estimate.score, "low": low, "high": high}
            | {"sentences": estimate.sentences, "of": estimate.drawn}
        )
    old = pd.read_csv(records / "claims.csv", dtype=str, keep_default_na=False)
    new = pd.DataFrame(rows).reindex(columns=old.columns).astype(object).fillna("").map(_text)
    both = pd.concat([old[(old["study"] != study) | ~old["name"].isin(new["name"])], new])
    mine = both["study"] == study
    p_values = [float(p) if p else None for p in both.loc[mine, "p"]]
    both.loc[mine, "p_holm"] = ["" if p is None else _text(p) for p in holm(p_values)]
    both.to_csv(records / "claims.csv", index=False)


def with_tables(page: str, records: Records) -> str:
    """Replaces every table that stands between two comments of a page."""
    return TABLE.sub(lambda found: found[1] + records.table(found[2]) + found[4], page)


def claims(rows: pd.DataFrame, names: Sequence[str]) -> str:
    """Makes a table of a study's claims, with their verdicts and figures."""
    rows = rows.set_index("name", drop=False)
    cells = []
    for row in rows.loc[list(names)].itertuples():
        brevity = " (without the brevity penalty)" if row.score == "bleu_precisions" else ""
        p = "< 0.001" if row.p_holm < 0.001 else number(row.p_holm, 3).text
        cells.append([row.claim + brevity, verdict_words(row._asdict()), _verdict_figure(row), p])
    return markdown(["claim", "verdict", "figure", "p, Holm"], cells, texts=range(4))


def _verdict_figure(row: pd.Series) -> str:
    digits = 3 if row.statistic == "retention" else max(2, _digits(row.score))
    figure = number(row.value, digits, row.low, row.high)
    return str(figure) if row.confidence == 0.95 else f"{figure} ({100 * row.confidence:g} %)"


def set_scores(runs: pd.DataFrame, found: pd.DataFrame) -> str:
    """Makes a table of scores on a test set, with a row for each group."""
    whole = found[(found["aligner"] == "") & found["from"].isna()]
    whole = whole[whole["subset"] != "unknown_words"]
    keys = [key for key in BY_SET if (whole["score"] == key).any()]
    cells = [
        [name, seeds, *(_cell(mine[mine["score"] == key], _digits(key), count) for key in keys)]
        for name, seeds, count, mine in _groups(runs, whole)
    ]
    return markdown(
        ["", "seeds", *(TITLES.get(key) or REGISTERED[key].title for key in keys)], cells
    )


def bleu_by_length(runs: pd.DataFrame, found: pd.DataFrame) -> str:
    """Makes a table of each group's BLEU by source length."""
    rows = found[(found["score"] == "bleu") & found["from"].notna() & (found["subset"] == "all")]
    parts = rows[["from", "to"]].drop_duplicates().sort_values("from")
    heads = [bucket_name(int(a), None if pd.isna(b) else int(b)) for a, b in parts.to_numpy()]
    cells = [
        [name, seeds, *(_cell(mine[mine["from"] == n], 1, ends=False) for n in parts["from"])]
        for name, seeds, _, mine in _groups(runs, rows)
    ]
    return markdown(["", "seeds", *heads], cells)


def _groups(runs: pd.DataFrame, rows: pd.DataFrame) -> Iterator[tuple[str, str, int, pd.DataFrame]]:
    """Yields each group's title, seeds, number of runs, and part of `rows`, in the order of `runs`."""
    for group, mine in runs.groupby("group", sort=False):
        ensemble = "checkpoint=[" in mine["command"].iloc[0]
        seeds = NONE if ensemble else ", ".join(map(str, mine["seed"]))
        yield mine["name"].iloc[0], seeds, len(mine), rows[rows["group"] == group]


def _cell(rows: pd.DataFrame, digits: int, runs: int = 1, *, ends: bool = True) -> str:
    """Formats a score with its interval, or the mean and deviation over runs; a dash if a score is missing."""
    values = rows["value"].dropna()
    if values.empty or len(values) < runs:
        return NONE
    if len(values) > 1:
        return f"{values.mean():z.{digits}f} ± {values.std():.{digits}f}"
    return str(number(values.iloc[0], digits, *(rows[["low", "high"]].iloc[0] if ends else ())))


def markdown(heads: list[str], cells: list[list[str]], texts: Sequence[int] = range(2)) -> str:
    """Formats a table; the columns in `texts` are left-aligned."""
    rules = ["---" if place in texts else "---:" for place in range(len(heads))]
    lines = ["| " + " | ".join(row) + " |" for row in [heads, *cells]]
    lines.insert(1, "|" + "|".join(rules) + "|")
    return "\n" + "\n".join(lines).replace("</s>", "&lt;/s>") + "\n\n"


def _digits(score: str) -> int:
    known = REGISTERED.get(score.removesuffix("_no_unk"))
    return known.digits if known else 3  # 3 digits for scores that only old records have


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--add", nargs="+", metavar=("STUDY", "GROUP=RUN"))
    parser.add_argument("--claims", type=Path, help="file of claims to decide")
    parser.add_argument("--runs", nargs="+", metavar="RUN", help="runs that decide the claims")
    args = parser.parse_args()
    if bool(args.runs) != bool(args.claims and not args.add):
        parser.error("type --claims FILE --runs RUN …, or --add STUDY GROUP=RUN … [--claims FILE]")
    with exiting():
        if args.runs:
            file = read_claims(args.claims)
            runs = read_runs(args.runs)
            separate_texts(runs)
            rows = list(decided_rows(file, runs, RESAMPLES))
            print(claims_table(file, rows).markdown())
            return
        if args.add:
            study, *typed = args.add
            named = [(group, Path(run)) for group, run in (each.split("=", 1) for each in typed)]
            add(study, named)
            if args.claims:
                folders = [run if (run / SYSTEM).is_file() else run.parent for _, run in named]
                add_claims(study, args.claims, list(dict.fromkeys(folders)))
        PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), Records()), encoding="utf-8")


if __name__ == "__main__":
    main()
