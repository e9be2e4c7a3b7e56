"""Tables of the documentation, written from docs/results/*.json between two comments.

    <!-- table: multi30k scores test2016 en-fr -->
    <!-- end of table -->

The first says which: a record, what it shows, a test set, a direction, and of which groups of the study,
if not of all (`rnnsearch50*`: those whose names begin so); `lengths:nll_per_word` shows another score
than BLEU by length. `claims` alone is the table of all records'
verdicts; `claims multi30k` is that of one, with who says it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from nmt.config.keys import CONFIDENCE
from nmt.evaluation.scores import score_of_name
from nmt.report.table import Column, MeanAndDeviation, Table, show
from nmt.utils.progress import counted

DOCS = Path(__file__).resolve().parents[2] / "docs"
RECORDS = DOCS / "results"
PAGES = (DOCS / "results.md", DOCS / "paper.md")
MARKED = re.compile(r"(<!-- table: ([^\n]*) -->\n)(.*?)(<!-- end of table -->)", re.DOTALL)
SCORES = ("bleu", "bleu_no_unk", "sacrebleu", "chrf", "nll_per_sentence")
ALIGNED = ("alignment_error_rate", "precision", "recall", "eos_weight", "eos_share")
TITLES = {
    "bleu": "BLEU, tokens, cased",
    "bleu_no_unk": "no UNK",
    "sacrebleu": "sacreBLEU, detokenised",
}
NAME = Column("name", "", text=True)
DECIDED = {"verdict": "verdict", "figure": "figure"}
Record = Mapping[str, Any]


def read_records() -> dict[str, Record]:
    """The records, by the name of their text."""
    files = sorted(RECORDS.glob("*.json"))
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}


def with_tables(page: str, records: Mapping[str, Record]) -> str:
    """A page with every marked table written anew.

    Raises:
        ValueError: for a table that there is not.
    """
    return MARKED.sub(lambda found: found[1] + table_of(found[2], records) + found[4], page)


def table_of(asked: str, records: Mapping[str, Record]) -> str:
    """The table of a mark, in Markdown."""
    words = asked.split()
    if words == ["claims"]:
        return _markdown(*claims(records))
    if len(words) == 2 and words[0] == "claims" and words[1] in records:
        return _markdown(*claims_and_sources(records[words[1]]))
    if len(words) >= 4:
        text, asked_kind, name, direction, *groups = words
        kind, *score = asked_kind.split(":")
        if kind in KINDS and (not score or kind == "lengths"):
            rows = chosen_rows(records, text, name, direction, groups)
            return _markdown(*KINDS[kind](rows, name, *score))
    raise ValueError(f"<!-- table: {asked} -->: no such table")


def chosen_rows(
    records: Mapping[str, Record], text: str, name: str, direction: str, groups: Sequence[str]
) -> list[Record]:
    """The rows of a record that have a test set, in one direction; without groups those of all.

    Raises:
        ValueError: where there is no record, or no row of a group.
    """
    rows = [
        row
        for row in records.get(text, {"rows": []})["rows"]
        if "-".join(row["languages"]) == direction and name in row["runs"][0]["test"]
    ]
    asked = groups or ["*"]
    for group in asked:
        if not any(fnmatchcase(row["group"], group) for row in rows):
            raise ValueError(f"{text} {name} {direction} {group}: no such rows")
    return [row for row in rows if any(fnmatchcase(row["group"], group) for group in asked)]


def claims(records: Mapping[str, Record]) -> tuple[list[Column], list[dict[str, Any]]]:
    """Claim, verdict and figure of all records."""
    rows = [
        {"text": f"{text}, {claim['set']}", **_decided(claim)}
        for text, record in records.items()
        for claim in record["claims"]
    ]
    return _text_columns(claim="claim", text="on", **DECIDED), rows


def claims_and_sources(record: Record) -> tuple[list[Column], list[dict[str, Any]]]:
    """Claim, who says it, verdict and figure of one record."""
    rows = [{"source": claim["source"], **_decided(claim)} for claim in record["claims"]]
    return _text_columns(claim="claim", source="who says it", **DECIDED), rows


def _text_columns(**titles: str) -> list[Column]:
    return [Column(key, title, text=True) for key, title in titles.items()]


def _decided(claim: Mapping[str, Any]) -> dict[str, str]:
    return {
        "claim": claim["claim"],
        "verdict": claim["verdict"],
        "figure": claim_figure(claim),
    }


def claim_figure(claim: Mapping[str, Any]) -> str:
    """The figure of a claim with its interval, of 95 % unless it says otherwise, and its seeds."""
    length = claim["statistic"] not in ("score", "slope")
    digits = 1 if length else max(2, score_of_name(claim["score"], "score").digits)
    measured = claim["value"], claim["low"], claim["high"]
    column = Column("figure", "figure", digits)
    value, low, high = (None if each is None else show(each, column) for each in measured)
    unit = " words" if length else ""
    if value is not None:
        figure = f"{value}{unit} [{low or '…'}, {high or '…'}]"
    else:  # the length lies outside the data, beyond the end that is known
        figure = f"before {high}{unit}" if low is None else f"beyond {low}{unit}"
    if claim["confidence"] != CONFIDENCE:
        figure += f" ({100 * claim['confidence']:g} %)"
    return f"{figure}, {counted(claim['seeds'], 'seed')}"


def scores(rows: Sequence[Record], name: str) -> tuple[list[Column], list[dict[str, Any]]]:
    """A row for each system: its scores on a test set."""
    return _scores(rows, name, SCORES)


def alignment(rows: Sequence[Record], name: str) -> tuple[list[Column], list[dict[str, Any]]]:
    """A row for each system with attention, and for each aligner beside its first run: links against gold ones."""
    attending = [row for row in rows if ALIGNED[0] in _known(row, name)]
    columns, cells = _scores(attending, name, ALIGNED)
    beside = [
        {"name": f"{row['name']}: {system}"} | {key: _triple(each) for key, each in found.items()}
        for row in attending
        for system, found in row["runs"][0]["test"][name]["aligners"].items()
    ]
    return columns, [*cells, *beside]


def _scores(
    rows: Sequence[Record], name: str, keys: Sequence[str]
) -> tuple[list[Column], list[dict[str, Any]]]:
    kept = [key for key in keys if any(key in _known(row, name) for row in rows)]
    columns = [NAME, Column("seeds", "seeds", text=True)]
    columns += [Column(key, _title(key), score_of_name(key, "score").digits) for key in kept]
    cells = [
        {"name": row["name"], "seeds": seeds_of(row)}
        | {key: figure(row, name, key) for key in kept}
        for row in rows
    ]
    return columns, cells


def lengths(
    rows: Sequence[Record], name: str, score: str = "bleu"
) -> tuple[list[Column], list[dict[str, Any]]]:
    """A score of each system by source length, a digit less than of the whole set."""
    digits = score_of_name(score, "score").digits - 1
    return _in_parts(rows, name, "by_length", digits, lambda part: part.get(score))


def unknown(rows: Sequence[Record], name: str) -> tuple[list[Column], list[dict[str, Any]]]:
    """BLEU of each system by the number of words of a pair that its shortlists lack."""
    return _in_parts(rows, name, "by_unknown_words", 1, lambda part: part)


def _in_parts(
    rows: Sequence[Record],
    name: str,
    key: str,
    digits: int,
    score: Callable[[Record], Record | None],
) -> tuple[list[Column], list[dict[str, Any]]]:
    """A figure of each system for each part, `from` and `to`, that a test set is cut into."""
    ends = [(part["from"], part["to"]) for part in rows[0]["runs"][0]["test"][name][key]]
    columns = [NAME, Column("seeds", "seeds", text=True)]
    columns += [
        Column(
            f"{low}", f"{low}" if low == high else f"{low}-{high}" if high else f"{low}+", digits
        )
        for low, high in ends
    ]
    cells = []
    for row in rows:
        found: dict[str, Any] = {"name": row["name"], "seeds": seeds_of(row)}
        for low, _ in ends:
            values = [
                value["score"]
                for run in row["runs"]
                for part in run["test"][name][key]
                if part["from"] == low and (value := score(part))
            ]
            found[f"{low}"] = _of_several(values)
        cells.append(found)
    return columns, cells


def runs(rows: Sequence[Record], name: str) -> tuple[list[Column], list[dict[str, Any]]]:
    """A row for each run: its BLEU with its interval, and how it was made."""
    columns = [
        NAME,
        Column("seed", "seed", 0),
        Column("bleu", _title("bleu")),
        Column("updates", "updates", 0),
        Column("epochs", "epochs", 1),
        Column("minutes", "minutes", 0),
        Column("train", "train NLL"),
        Column("valid", "dev. NLL"),
        Column("processor", "processor", text=True),
        Column("commit", "commit", text=True),
    ]
    cells = []
    for row in rows:
        for run in row["runs"]:
            trained = run["minutes"] is not None
            cells.append(
                {
                    "name": row["name"],
                    "seed": run["seed"] if trained else None,
                    "bleu": _triple(run["test"][name]["scores"]["bleu"]),
                    **{
                        key: (run[key] or None) if trained else None
                        for key in ("updates", "epochs", "minutes")
                    },
                    "train": run["train_nll_per_sentence"] if trained else None,
                    "valid": run["valid_nll_per_sentence"] if trained else None,
                    "processor": run["processor"],
                    "commit": run["commit"] and re.sub(r"^(.{7})[0-9a-f]*", r"\1", run["commit"]),
                }
            )
    return columns, cells


KINDS = {
    "scores": scores,
    "alignment": alignment,
    "lengths": lengths,
    "unknown": unknown,
    "runs": runs,
}


def seeds_of(row: Record) -> str | None:
    """The seeds of a row's runs; none of an ensemble, which has several."""
    if "checkpoint=[" in row["command"]:
        return None
    return ", ".join(str(run["seed"]) for run in row["runs"])


def figure(row: Record, name: str, key: str) -> Any:
    """A score of a row: mean and deviation over its runs, or with its interval; None without it."""
    spread = row["over_seeds"].get(name, {}).get(key)
    if spread is not None:
        return MeanAndDeviation(spread["mean"], spread["sd"])
    found = _known(row, name).get(key)
    return None if found is None or len(row["runs"]) > 1 else _triple(found)


def _known(row: Record, name: str) -> Mapping[str, Any]:
    known: Mapping[str, Any] = row["runs"][0]["test"][name]["scores"]
    return known


def _triple(found: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    return found["score"], found.get("low"), found.get("high")


def _of_several(values: Sequence[float]) -> Any:
    import statistics

    if len(values) < 2:
        return values[0] if values else None
    return MeanAndDeviation(statistics.fmean(values), statistics.stdev(values))


def _title(key: str) -> str:
    return TITLES.get(key) or score_of_name(key, "score").title


def _markdown(columns: list[Column], rows: list[dict[str, Any]]) -> str:
    """A table alone, between empty lines as Markdown wants them."""
    return "\n" + Table("", "", columns, rows).markdown().split("\n", 2)[2] + "\n"
