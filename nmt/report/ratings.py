"""Penalties from MQM ratings: a row per error that a rater marked, as in `google/wmt-mqm-human-evaluation`."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from nmt.utils.errors import InputError

# Freitag et al. (2021): weights by severity; of a minor error of punctuation; of a text that is no translation.
PUNCTUATION, NON_TRANSLATION = "punctuation", "non-translation"
WEIGHTS = {"major": 5.0, "minor": 1.0, PUNCTUATION: 0.1, NON_TRANSLATION: 25.0}
WEIGHTS |= {"no-error": 0.0, "neutral": 0.0}
CHECK = "hotw-test"  # severity of rows that check the raters' attention
SEGMENT = ("seg_id", "globalSegId")  # columns with the id of a segment
KEPT = ("system", "doc", "rater")
COLUMNS = {"system", "rater", "category", "severity"}  # all tables of ratings have them


def penalties(table: pd.DataFrame, name: str, weights: Mapping[str, float]) -> pd.DataFrame:
    """Returns the penalty of each rater for each segment and system: the sum of the weights of its errors.

    Args:
        name: name of the column of penalties.
        weights: replaces or adds weights, by severity, `punctuation` or `non-translation`.

    Raises:
        InputError: if a severity has no weight.
        ValueError: if no column has the ids of segments.
    """
    known = WEIGHTS | {each.lower(): value for each, value in weights.items()}
    segment = next((each for each in SEGMENT if each in table), None)
    if segment is None:
        raise ValueError("ratings without a column seg_id")
    severity, category = (table[each].str.strip().str.lower() for each in ("severity", "category"))
    for row in severity.index[~severity.isin([*known, CHECK])][:1]:
        raise InputError(
            f"scores.{name}: row {row + 2} has severity {table['severity'][row]!r}; type "
            f"+scores.{name}.weights.{severity[row] or 'NAME'}=NUMBER"
        )
    punctuation = (severity == "minor") & category.str.contains(PUNCTUATION)
    nothing = category.str.startswith(NON_TRANSLATION) & (severity.map(known) != 0)
    kind = severity.mask(punctuation, PUNCTUATION).mask(nothing, NON_TRANSLATION)
    marked = table[[each for each in KEPT if each in table]].assign(seg_id=table[segment])
    if "source" in table:
        marked["source"] = table["source"].str.replace("</?v>", "", regex=True)  # around an error
    marked[name] = kind.map(known)
    marked = marked[severity != CHECK]
    labels = [each for each in (*KEPT, "seg_id") if each in marked]
    sums = {each: "first" for each in marked if each not in labels} | {name: "sum"}
    return marked.groupby(labels, sort=False, as_index=False).agg(sums)
