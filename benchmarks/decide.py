"""Decides the claims about Europarl again, from the recorded statistics of sentences.

    python -m benchmarks.decide

Verdicts, figures and p go into docs/results/claims.csv. The column `before` keeps the verdict of an
earlier statistic or rule. A claim that needs the text of the references (`constant_error`) is not
decided here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.records import RECORDS
from nmt.cli.composition import conf_folder
from nmt.config.keys import CONFIDENCE
from nmt.evaluation.significance import holm
from nmt.report.claims import Claim, decide, read_claims
from nmt.report.runs import FinishedRun

STUDY = "europarl"
LINKS = ("links", "sure", "hits_sure", "hits_possible", "on_eos", "words")


def runs_of(rows: pd.DataFrame) -> dict[str, list[FinishedRun]]:
    """Reads the recorded runs by group, with the records of their sentences."""
    groups: dict[str, dict[Any, dict[str, list[dict[str, Any]]]]] = {}
    correct = rows[[f"bleu_correct_{n}" for n in range(1, 5)]].to_numpy()
    known = rows[[f"no_unk_correct_{n}" for n in range(1, 5)]].to_numpy()
    links = rows[list(LINKS)].to_numpy()
    for place, row in enumerate(rows.itertuples()):
        record = {"id": row.sentence, "length": row.length}
        ends = row.hypothesis_words, row.reference_words
        record["bleu_stats"] = [*correct[place], *_totals(ends[0]), *ends]
        if row.no_unk == 1:
            ends = row.no_unk_words, row.reference_words
            record["bleu_stats_no_unk"] = [*known[place], *_totals(ends[0]), *ends]
        if not np.isnan(links[place]).any():
            record["alignment_counts"] = links[place].tolist()
        sets = groups.setdefault(row.group, {}).setdefault(row.seed, {})
        sets.setdefault(row.set, []).append(record)
    return {
        group: [
            FinishedRun(f"{group} {seed}", {"seed": seed}, records=sets)
            for seed, sets in seeds.items()
        ]
        for group, seeds in groups.items()
    }


def _totals(words: float) -> list[float]:
    return [max(words - order, 0) for order in range(4)]


def decided(claim: Claim, runs: dict[str, list[FinishedRun]]) -> dict[str, Any] | None:
    """Returns the columns of a claim; None if its groups or its statistic are not recorded."""
    if claim.statistic == "constant_error" or not set(claim.runs) <= set(runs):
        return None
    replaced = any(name.endswith("_replaced") for name in claim.runs)  # the same models again
    row = decide(claim, [runs[name] for name in claim.runs], 1000, paired=replaced)
    row.pop("figure", None)
    return row | {
        "statistic": claim.statistic,
        "range": claim.part,
        "score": claim.score,
        "rule": " ".join(f"{kind} {value:g}" for kind, value in claim.rule.items()),
        "confidence": CONFIDENCE,
    }


def main(folder: Path = RECORDS) -> None:
    table = pd.read_csv(folder / "claims.csv", dtype=object, keep_default_na=False)
    runs = runs_of(pd.read_csv(folder / "sentences" / f"{STUDY}.csv.xz"))
    old = {row["name"]: row for row in table[table["study"] == STUDY].to_dict("records")}
    rows = []
    for name, claim in read_claims(conf_folder() / "claims" / f"{STUDY}.yaml").claims.items():
        columns = decided(claim, runs)
        if columns is None:
            continue
        first = old.get(name, {})
        before = first.get("before", "")
        if first and first["statistic"] != claim.statistic:
            before = f"{first['statistic']}: {first['verdict']}"
        row = first | {"study": STUDY, "name": name, "claim": claim.claim, "source": claim.source}
        row |= {"runs": " ".join(claim.runs), "set": claim.set, "before": before} | columns
        rows.append(row)
    kept = table[table["study"] != STUDY].to_dict("records")
    names = {row["name"] for row in rows}
    rows += [row for name, row in old.items() if name not in names]
    frame = pd.DataFrame([*kept, *rows])
    p_holm = pd.Series(np.nan, index=frame.index)
    for _, study in frame.groupby("study"):
        p_values = [None if p in ("", None) else float(p) for p in study["p"]]
        p_holm[study.index] = np.array(holm(p_values), dtype=np.float64)
    frame["p_holm"] = p_holm
    frame.to_csv(folder / "claims.csv", index=False, lineterminator="\n", float_format="%.8g")


if __name__ == "__main__":
    main()
