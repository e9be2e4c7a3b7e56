"""AER, precision and recall of given links, and which aligners were scored on a test set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from nmt.evaluation.alignment import Gold, Link, link_counts
from nmt.evaluation.resampling import scored
from nmt.evaluation.scores import REGISTERED

LINK_SCORES = ("alignment_error_rate", "precision", "recall")
BESIDE = ("systems", "statistical_aligners", "symmetrised")
"""Sections of `test.<set>.alignment` that hold the scores of links beside the model's own."""


class ScoredLinks(NamedTuple):
    """Scores of one aligner's links against the gold links of a test set.

    Attributes:
        made_by: `attention` for the model's own, or the section of `BESIDE` that they stand in.
        name: in that section, such as `hmm`; the model's own have none.
        scores: `sentences`, and those of `LINK_SCORES` that are known, as `alignment_scores` has them.
    """

    made_by: str
    name: str | None
    scores: Mapping[str, Any]


def alignment_scores(
    pairs: Iterable[tuple[Iterable[Link], Gold, int]], resamples: int, confidence: float
) -> dict[str, Any]:
    """`sentences`, and AER, precision and recall, each `score`, `low` and `high`.

    Args:
        pairs: links, gold links and number of target words of each sentence.
        resamples, confidence: of the bootstrap intervals.
    """
    counts = [link_counts(links, gold, words=words) for links, gold, words in pairs]
    rows = np.array(counts, np.int64)
    return {"sentences": len(rows)} | {
        key: scored(rows, REGISTERED[key].combine, resamples, confidence) for key in LINK_SCORES
    }


def links_beside(result: Mapping[str, Any]) -> list[ScoredLinks]:
    """The scores of other aligners' links, section by section.

    Args:
        result: `test.<set>` of results.json.
    """
    aligned = result.get("alignment") or {}
    return [
        ScoredLinks(section, name, scores)
        for section in BESIDE
        for name, scores in (aligned.get(section) or {}).items()
        if isinstance(scores, Mapping)  # `training_pairs` stands among the statistical aligners
    ]


def scored_links(result: Mapping[str, Any]) -> list[ScoredLinks]:
    """The scores of the model's own links, if it has attention, then those of other aligners.

    Args:
        result: as for `links_beside`.
    """
    aligned = result.get("alignment") or {}
    attends = any(aligned.get(key) for key in LINK_SCORES)
    own = [ScoredLinks("attention", None, aligned)] if attends else []
    return own + links_beside(result)
