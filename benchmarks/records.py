"""Writes the tables of docs/results.md from the records in docs/results.

    python -m benchmarks.records
    python -m benchmarks.records --add table1 rnnsearch50=RUN rnnsearch50=RUN … --claims bahdanau

`--add STUDY GROUP=RUN` first adds runs to the records of a study. `--claims` also records the verdicts on the
claims of a file in conf/claims. The verdicts use all runs in the parent folders of the added runs.

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
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pandas as pd

from nmt.cli.composition import conf_folder
from nmt.config.keys import CONFIDENCE
from nmt.evaluation.buckets import bucket_name
from nmt.evaluation.scores import REGISTERED
from nmt.evaluation.significance import holm
from nmt.report.claims import decided_rows, read_claims, verdict_words
from nmt.report.runs import find_runs
from nmt.report.table import NONE, number

DOCS = Path(__file__).resolve().parents[1] / "docs"
RECORDS = DOCS / "results"
PAGE = DOCS / "results.md"
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


def add(study: str, named: Sequence[tuple[str, Path]], records: Path = RECORDS) -> None:
    """Adds finished runs, given as (group, folder), to the records of a study.

    The added runs replace recorded runs with the same group and seed.
    """
    runs, scores = [], []
    for group, folder in named:
        content = json.loads((folder / "results.json").read_text(encoding="utf-8"))
        train = content["train"]
        key = {"study": study, "group": group, "seed": content["seed"]}
        runs.append(
            key
            | {name: content.get(name) for name in ("name", "max_length", "parameters")}
            | {name: train.get(name) for name in ("updates", "epochs", "device", "precision")}
            | {name: content[name] for name in ("processor", "commit", "command")}
            | {name: content["versions"][name] for name in ("torch", "sacrebleu")}
            | {
                "languages": "-".join(content["config"]["data"]["languages"]),
                "minutes": 60 * train["hours"],
                "train_nll_per_sentence": train.get("nll_per_sentence"),
                "valid_nll_per_sentence": content["valid"].get("nll_per_sentence"),
            }
        )
        found = pd.read_csv(folder / "scores.csv", dtype=str, keep_default_na=False)
        for name in ("value", "low", "high"):
            found[name] = [_text(float(text)) if text else "" for text in found[name]]
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


def add_claims(study: str, name: str, folders: Sequence[Path], records: Path = RECORDS) -> None:
    """Checks the claims of `conf/claims/NAME.yaml` against the runs in folders, and records the verdicts.

    A claim whose runs are missing is not recorded; if it has an earlier record, that record stays.
    """
    file = read_claims(conf_folder() / "claims" / f"{name}.yaml")
    decided = list(decided_rows(file, find_runs(folders), 1000))
    pairs = [(*item, row) for item, row in zip(file.claims.items(), decided, strict=True)]
    pairs = [(key, claim, row) for key, claim, row in pairs if "estimate" in row]
    command = f"nmt compare 'runs=[{','.join(map(str, folders))}]' claims={name}"
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
    parser.add_argument("--claims", help="file in conf/claims to decide from the runs beside them")
    args = parser.parse_args()
    if args.claims and not args.add:
        parser.error("--claims needs --add")
    if args.add:
        study, *typed = args.add
        named = [(group, Path(run)) for group, run in (each.split("=", 1) for each in typed)]
        add(study, named)
        if args.claims:
            add_claims(study, args.claims, list(dict.fromkeys(run.parent for _, run in named)))
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), Records()), encoding="utf-8")


if __name__ == "__main__":
    main()
