"""The words of figures, which pages need without the figures."""

from __future__ import annotations

import unicodedata

from nmt.evaluation.documents import dimension
from nmt.evaluation.length_curve import FEWEST, WIDTH
from nmt.report.comparison import LEVEL, Comparison
from nmt.report.retention import resampled_words

MANY = 8  # maximum number of curves in one panel


def caption(comparison: Comparison, test_set: str, score: str = "BLEU") -> str:
    """Returns a caption that explains a figure of a score by length."""
    totals = comparison.whole(test_set)
    totals = totals[totals["key"].isin(comparison.main(test_set))]
    counts = " or ".join(f"{count:,}" for count in dict.fromkeys(totals["sentences"]))
    curves = comparison.curves[comparison.curves["set"] == test_set]
    by = dimension(comparison.unit(test_set))
    what = by.partition(" ")[0]  # length or position
    text = f"How {score} depends on the {by} on {shown(test_set, 60)} ({counts} pairs). "
    if len(curves):
        text += (
            f"Line: {score} of sentences near that {what} (Gaussian kernel over its logarithm with "
            f"standard deviation {WIDTH}; at least {FEWEST} effective sentences). "
        )
        if drawn := resampled_words(curves[curves["kind"] == "score"]):
            text += f"Band: {LEVEL} confidence interval over {drawn}, at each {what}. "
        if "constant" in set(curves["kind"]):
            text += "Dashed: a system with the same error rate per word at every length. "
    else:
        text += f"No curve: fewer than {FEWEST} sentences of similar {what}. "
    text += f"Points: buckets of {what}s. "
    if training_caps(comparison):
        text += "Vertical line: the longest training sentence. "
    searches = dict.fromkeys(run.search for run in comparison.present(test_set))
    known = " or ".join(filter(None, searches))
    return text + (f"Search: {known}." if known else "")


def training_caps(comparison: Comparison) -> list[int]:
    """Returns the distinct maximum lengths of training sentences of the runs, in ascending order."""
    caps = {run.results.get("max_length") for run in comparison.runs}
    return sorted(filter(None, caps))


def shown(text: str, longest: int = 24) -> str:
    """Returns a token for a figure: control characters are replaced, and long tokens are cut."""
    visible = "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in ("Cc", "Cs", "Cn") else c
        for c in text
    )
    return visible if len(visible) <= longest else f"{visible[: longest - 1]}…"
