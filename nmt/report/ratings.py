"""Penalties from MQM ratings: a row per error that a rater marked, as in `google/wmt-mqm-human-evaluation`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from nmt.utils.errors import InputError

# Freitag et al. (2021): weights by severity; of a minor error of punctuation; of a text that is no translation.
PUNCTUATION, NON_TRANSLATION = "punctuation", "non-translation"
WEIGHTS = {"major": 5.0, "minor": 1.0, PUNCTUATION: 0.1, NON_TRANSLATION: 25.0}
WEIGHTS |= {"no-error": 0.0, "neutral": 0.0}
CHECKS = ("hotw-test",)  # severity of rows that check the raters' attention
RATERS = ("rater", "annotator", "user")
SEGMENT = ("seg_id", "globalSegId")  # columns with the id of a segment
MARK = re.compile("</?v>")  # around an error


def is_ratings(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    """Whether rows are ratings of errors, without a column of the score itself."""
    first = rows[0] if rows else {}
    return {"system", "rater", "category", "severity"} <= first.keys() and name not in first


def penalties(
    rows: Sequence[Mapping[str, Any]], name: str, weights: Mapping[str, Any]
) -> pd.DataFrame:
    """Returns the penalty of each segment and system: the sum of its errors' weights, as a mean over its raters.

    Args:
        name: name of the column of penalties.
        weights: replaces or adds weights, by severity, `punctuation` or `non-translation`.

    Returns:
        A row per segment and system, with `system`, `doc`, `seg_id`, `source` (if known) and the penalty.

    Raises:
        InputError: if a severity has no weight.
        ValueError: if no column has the ids of segments.
    """
    known = WEIGHTS | {str(key).lower(): float(value) for key, value in weights.items()}
    segment = next((each for each in SEGMENT if each in rows[0]), None)
    if segment is None:
        raise ValueError("ratings without a column seg_id")
    kept = []
    for number, row in enumerate(rows, 2):
        severity, category = row["severity"].strip().lower(), row["category"].strip().lower()
        if severity in CHECKS:
            continue
        if severity not in known:
            raise InputError(
                f"scores.{name}: row {number} has severity {row['severity']!r}; type "
                f"+scores.{name}.weights.{severity or 'NAME'}=NUMBER"
            )
        kind = severity
        if category.startswith(NON_TRANSLATION) and known[severity]:
            kind = NON_TRANSLATION
        elif severity == "minor" and PUNCTUATION in category:
            kind = PUNCTUATION
        found = {each: row[each] for each in ("system", "doc", "rater") if each in row}
        found |= {"source": MARK.sub("", row["source"])} if "source" in row else {}
        kept.append(found | {"seg_id": row[segment], name: known[kind]})
    table = pd.DataFrame(kept)
    labels = [each for each in ("system", "doc", "seg_id") if each in table]
    by_rater = table.groupby([*labels, "rater"], sort=False)[name].sum()
    means = by_rater.groupby(level=labels, sort=False).mean().reset_index()
    return means.merge(table.drop(columns=["rater", name]).drop_duplicates(labels), on=labels)
