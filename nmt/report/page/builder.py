"""Builds the pages: the comparison of runs, and the alignment explorer alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.config import PageConfig
from nmt.evaluation.significance import FEWEST
from nmt.report.claims import Decided
from nmt.report.comparison import LEVEL, Comparison
from nmt.report.page import embed
from nmt.report.page.live import fitted_models
from nmt.report.page.payload import decoding, fitted_sentences, overview, undecoded
from nmt.report.set_comparison import UNKNOWN_WORDS
from nmt.report.tables import (
    headline,
    lengths_table,
    names_of,
    paper_table,
    retention_table,
    scores_table,
    seeds_table,
    settings_table,
    subset_table,
    training_table,
)
from nmt.utils.progress import counted

FRAME_BYTES = 60_000  # of a page, about, without style, programs and data
LONG_WORDS = 30  # shortest sentence that translations side by side begin with, if sets have many
MANY = 100  # sentences that are many

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
        report: `sentences` bounds the sentences a test set in the alignment explorer; `live` and
            `live_bits` say which models the page holds, and how.
        title: the names of the runs if None.
        claims: that the runs decide.
    """
    report = report or PageConfig()
    runs = comparison.runs
    models = fitted_models(runs, report)
    library = embed.packed(embed.chart_library())
    data: dict[str, Any] = {"overview": overview(comparison), "live": models.about}
    beside = len(library) + len(embed.packed(data)) + FRAME_BYTES
    beside += len(embed.program("main.mjs")) + len(embed.stylesheet())
    data["alignments"], data["translations"] = fitted_sentences(
        comparison, report.sentences, beside
    )
    has_live = bool(models.payloads or models.left_out)
    hidden = {"live": not has_live, "significance": len(runs) == 1, "claims": claims is None}
    shown = [key for key in SECTIONS if not hidden.get(key)]
    trained = any(run.results.get("train") or run.results.get("history") for run in runs)
    outside = sum(run.external for run in runs)
    subtitle = counted(len(runs) - outside, "run") if outside < len(runs) else ""
    if outside:
        subtitle += (
            f" and {counted(outside, 'other system')}" if subtitle else counted(outside, "system")
        )
    if comparison.sets:
        subtitle += f" on {', '.join(comparison.sets)}"
    return embed.write_page(
        path,
        {"data": embed.packed(data), "library": library, **models.payloads},
        title=title or names_of(comparison.groups),
        subtitle=subtitle,
        navigation={key: SECTIONS[key] for key in shown if trained or key != "training"},
        sections=[key for key in shown if key not in WITHIN_SCORES],
        alone=len(runs) == 1,
        sets=[_tables(comparison, name) for name in comparison.sets],
        notes=_notes(comparison),
        left_out=models.left_out,
        fewest=FEWEST,
        level=LEVEL,
        least=_shortest_shown(comparison),
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
    sentences: dict[Any, dict[str, Any]] = {}
    for row in rows:
        source = list(row["source"])
        sentence = sentences.setdefault(row["id"], undecoded(row))
        own = None if source == sentence["source"] else source
        sentence["by"][row.get("run", label)] = decoding(row, None, own)
    ordered = sorted(sentences.values(), key=lambda sentence: sentence["length"])
    return embed.write_page(
        path,
        {"data": embed.packed({"alignments": {"text": ordered}})},
        title=title,
        subtitle=counted(len(ordered), "sentence"),
        navigation={},
        sections=["explorer"],
        alone=False,
        sets=[],
    )


def _tables(comparison: Comparison, test_set: str) -> dict[str, Any]:
    """What the templates show of a test set."""
    return {
        "name": test_set,
        "headline": headline(comparison, test_set),
        "retention": retention_table(comparison, test_set),
        "lengths": lengths_table(comparison, test_set, ["bleu"]),
        "scores": scores_table(comparison, test_set),
        "seeds": seeds_table(comparison, test_set),
        "unknown_words": subset_table(comparison, test_set, UNKNOWN_WORDS),
    }


def _notes(comparison: Comparison) -> list[str]:
    if not comparison.unfinished:
        return []
    folders = ", ".join("/".join(folder.parts[-2:]) for folder in comparison.unfinished)
    return [f"Not finished, so not here: {folders}."]


def _shortest_shown(comparison: Comparison) -> int:
    """LONG_WORDS, or 0 if a set has fewer than MANY sentences as long."""
    counts = []
    for name in comparison.sets:
        rows = comparison.by_length(name).query("key == 'bleu'")
        long = rows[rows["from"] >= LONG_WORDS].groupby("run")["sentences"].sum()
        counts.append(long.max() if len(long) else 0)
    return LONG_WORDS if min(counts, default=0) >= MANY else 0
