"""Builds the pages: the comparison of runs, and the alignment explorer alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from nmt.config import PageConfig
from nmt.evaluation.significance import FEWEST
from nmt.report.claims import Decided
from nmt.report.comparison import LEVEL, Comparison
from nmt.report.page import embed
from nmt.report.page.live import fitted_models
from nmt.report.page.payload import aligned_sentences, fitted_sentences, overview
from nmt.report.tables import (
    headline,
    lengths_table,
    names_of,
    paper_table,
    retention_table,
    scores_table,
    seeds_table,
    settings_table,
    training_table,
)
from nmt.utils.text import counted

FRAME_BYTES = 160_000  # of a page, about, without data and the chart library
LONG_WORDS = (
    30  # shortest sentence that translations side by side begin with, if sets have longer ones
)

SECTIONS = {
    "length": "By length",
    "claims": "Claims",
    "live": "Translate",
    "explorer": "Alignments",
    "scores": "Scores",
    "significance": "Significance",
    "training": "Training",
    "translations": "Translations",
    "configuration": "Configurations",
}
OF_EACH_SET: dict[str, Callable[[Comparison, str], Any]] = {
    "headline": headline,
    "retention": retention_table,
    "lengths": partial(lengths_table, keys=["bleu"]),
    "scores": scores_table,
    "seeds": seeds_table,
}
WITHIN_SCORES = ("significance", "training")  # sections of the same template


def build_page(
    comparison: Comparison,
    path: str | Path,
    report: PageConfig | None = None,
    *,
    title: str | None = None,
    claims: Decided | None = None,
) -> Path:
    """Writes the page of a comparison, or of a run by itself, and returns its path.

    Args:
        path: the HTML file to write.
        report: `sentences` bounds the sentences a test set in the alignment explorer; `live` says
            which models the page holds.
        title: the names of the runs if None.
        claims: that the runs decide.
    """
    report = report or PageConfig()
    runs = comparison.runs
    models, live, left_out = fitted_models(runs, report)
    library = embed.packed(embed.chart_library())
    data: dict[str, Any] = {"overview": overview(comparison), "live": live}
    beside = len(library) + len(embed.packed(data)) + FRAME_BYTES
    data["alignments"], data["translations"] = fitted_sentences(
        comparison, report.sentences, beside
    )
    has_live = bool(models or left_out)
    hidden = {"live": not has_live, "significance": len(runs) == 1, "claims": claims is None}
    shown = [key for key in SECTIONS if not hidden.get(key)]
    longest = [comparison.by_length(name)["from"].max() for name in comparison.sets]
    trained = any(run.results.get("train") or run.results.get("history") for run in runs)
    outside = sum(run.external for run in runs)
    counts = [counted(len(runs) - outside, "run")] * (outside < len(runs))
    if outside:
        counts.append(counted(outside, "other system" if counts else "system"))
    subtitle = " and ".join(counts)
    if comparison.sets:
        subtitle += f" on {', '.join(comparison.sets)}"
    return embed.write_page(
        path,
        {"data": embed.packed(data), "library": library, **models},
        title=title or names_of(comparison.groups),
        subtitle=subtitle,
        navigation={key: SECTIONS[key] for key in shown if trained or key != "training"},
        sections=[key for key in shown if key not in WITHIN_SCORES],
        alone=len(runs) == 1,
        sets=[
            {"name": name} | {key: make(comparison, name) for key, make in OF_EACH_SET.items()}
            for name in comparison.sets
        ],
        unfinished=["/".join(folder.parts[-2:]) for folder in comparison.unfinished],
        left_out=left_out,
        fewest=FEWEST,
        level=LEVEL,
        least=LONG_WORDS if longest and min(longest) > LONG_WORDS else 0,
        training=training_table(runs),
        published=paper_table(),
        settings=settings_table(runs),
        claims=claims and claims.table,
        commands={r.label: r.results["command"] for r in runs if r.results.get("command")},
    )


def build_explorer(
    rows: Sequence[Mapping[str, Any]],
    path: str | Path,
    *,
    title: str = "Alignments",
    label: str = "translation",
) -> Path:
    """Writes a page that holds the alignment explorer alone, for any sentences.

    Args:
        rows: records as in `alignments/<set>.jsonl` (weights null without attention). Rows with the
            same `id` are the same source decoded several ways and need a `run` each.
        path: the HTML file to write.
        label: name of rows without `run`.
    """
    sentences = aligned_sentences((row.get("run", label), row, None) for row in rows)
    return embed.write_page(
        path,
        {"data": embed.packed({"alignments": {"text": sentences}})},
        title=title,
        subtitle=counted(len(sentences), "sentence"),
        navigation={},
        sections=["explorer"],
        alone=False,
        sets=[],
    )
