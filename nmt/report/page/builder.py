"""Builds the comparison page from finished runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.config import PageConfig
from nmt.evaluation.significance import FEWEST
from nmt.report.comparison import SetComparison, compare_sets, scored_sets
from nmt.report.disambiguation import renamed_sets
from nmt.report.headline import bleu_headline, names_of
from nmt.report.page import embed
from nmt.report.page.document import html_table, write_page
from nmt.report.page.fitting import fitted_alignments, fitted_translations, size
from nmt.report.page.live import LiveModels, fitted_models
from nmt.report.page.markup import Markup, element, filled, together
from nmt.report.page.overview import overview
from nmt.report.page.sentences import decoding, translation_rows, undecoded
from nmt.report.run_tables import differences_table, paper_table, training_table
from nmt.report.runs import FinishedRun
from nmt.report.table import Table
from nmt.report.tables import (
    lengths_table,
    scores_table,
    seeds_table,
    unknown_words_table,
)
from nmt.utils.progress import counted

LEAST_WORDS = 30
"""Shortest sentence that translations side by side show at first, in sets that have many as long."""

MANY = 100
"""Sentences that a length must have in every set, and a bucket to count as filled."""

_SECTIONS = {
    "length": "By length",
    "live": "Translate",
    "explorer": "Alignments",
    "scores": "Scores",
    "significance": "Significance",
    "training": "Training",
    "translations": "Translations",
    "configuration": "Configurations",
}
_COMPARING = ("significance",)


def build_page(
    runs: Sequence[FinishedRun],
    path: str | Path,
    report: PageConfig | None = None,
    *,
    title: str | None = None,
    unfinished: Sequence[Path] = (),
    resamples: int = 1000,
    comparisons: Sequence[SetComparison] | None = None,
) -> Path:
    """Writes the comparison page of some runs.

    Args:
        runs: with unique labels (`nmt.report.finding.find_runs`), and outside systems on the same
            test sets (`nmt.report.runs.outside_system`).
        path: the HTML file to write.
        report: `sentences` bounds the sentences a run and test set in the alignment explorer; `live` and
            `live_bits` say which models the page holds, and how.
        title: the names of the runs where none is given.
        unfinished: folders that were passed over, named on the page.
        resamples: bootstrap resamples behind the tests between runs; 0: no tests.
        comparisons: of `nmt.report.comparison.compare_set`, if they were made already.

    Returns:
        The path written.
    """
    report = report or PageConfig()
    if comparisons is None:
        comparisons = compare_sets(runs, resamples)
    comparisons = sorted(comparisons, key=_filled_buckets, reverse=True)
    pairable = {one.name: one.pairable() for one in comparisons}
    shown = {name: pairable.get(name, runs) for name in scored_sets(runs)}
    alignments, kept = fitted_alignments(shown, report.sentences)
    translations = {name: translation_rows(some, name) for name, some in shown.items()}
    models = fitted_models(runs, report)
    sections = together(
        _length_section(runs, comparisons, unfinished),
        _live_section(models),
        filled(embed.asset("explorer.html"), {"paired": _paired_notes(comparisons)}),
        _scores_sections(runs, comparisons),
        filled(
            embed.asset("translations.html"),
            {"least": _least_words(comparisons), "paired": _paired_notes(comparisons)},
        ),
        _configuration_section(runs),
    )
    library = embed.chart_library()
    payloads = [
        embed.packed("overview", overview(runs, comparisons)),
        alignments,
        embed.packed_text("library", library),
    ]
    beside = sum(map(size, (*payloads, sections)))
    payloads += [fitted_translations(translations, kept, beside), models.payloads]
    outside = sum(run.external for run in runs)
    subtitle = counted(len(runs) - outside, "run")
    if outside:
        subtitle += f" and {counted(outside, 'outside system')}"
    if translations:
        subtitle += f" on {', '.join(translations)}"
    left_out = [] if models.runs or models.left_out else ["live"]
    left_out += _COMPARING if len(runs) == 1 else []
    return write_page(
        path,
        title or names_of(runs),
        subtitle,
        sections,
        payloads,
        _navigation(left_out),
        library,
        alone=len(runs) == 1,
        workers=bool(models.runs),
    )


def build_explorer(
    rows: Sequence[Mapping[str, Any]],
    path: str | Path,
    *,
    title: str = "Alignments",
    label: str = "translation",
) -> Path:
    """Writes a page that holds the alignment explorer alone, for sentences of one's own.

    Args:
        rows: records as in `alignments/<set>.jsonl` (weights null without attention). Rows with the same `id` are the
            same source decoded several ways and need a `run` each, their name on the page.
        path: the HTML file to write.
        label: name of rows without `run`.
    """
    sentences: dict[Any, dict[str, Any]] = {}
    for row in rows:
        source = list(row["source"])
        sentence = sentences.setdefault(row["id"], undecoded(row))
        own = None if source == sentence["source"] else source
        sentence["by"][row.get("run", label)] = decoding(dict(row), None, own)
    ordered = sorted(sentences.values(), key=lambda sentence: sentence["length"])
    payloads = [embed.packed("alignments", {"text": ordered})]
    sections = filled(embed.asset("explorer.html"), {"paired": ""})
    return write_page(path, title, counted(len(ordered), "sentence"), sections, payloads, "")


def _navigation(left_out: Sequence[str]) -> Markup:
    links = (
        element("li", element("a", name, href=f"#{key}-section"))
        for key, name in _SECTIONS.items()
        if key not in left_out
    )
    return element("nav", element("ul", *links), aria_label="Sections")


def _filled_buckets(comparison: SetComparison) -> int:
    """Buckets with enough sentences for a curve: the set that shows most of it comes first."""
    tables = (comparison.rows(run.label) for run in comparison.runs)
    return max((sum(row["sentences"] >= MANY for row in rows) for rows in tables), default=0)


def _length_section(
    runs: Sequence[FinishedRun], comparisons: Sequence[SetComparison], unfinished: Sequence[Path]
) -> Markup:
    notes = list(renamed_sets(runs).values())
    if unfinished:
        folders = ", ".join("/".join(folder.parts[-2:]) for folder in unfinished)
        notes.append(f"Not finished, so not here: {folders}.")
    told = {one.name: bleu_headline(one) for one in comparisons}
    return filled(
        embed.asset("length.html"),
        {
            "verdict": together(
                *(
                    element("p", said, class_="verdict", data_set=name)
                    for name, said in told.items()
                    if said
                )
            ),
            "bands": "A band is where the score would lie on other sentences of the same kind.",
            "notes": together(*(element("p", note, class_="notes") for note in notes)),
            "lengths": _per_set(comparisons, lambda one: lengths_table(one, ["bleu"])),
        },
    )


def _live_section(models: LiveModels) -> Markup:
    """The panel of the models in the page, and why others are not; nothing where there are none."""
    if not models.runs and not models.left_out:
        return Markup("")
    lines = element("ul", *(element("li", line) for line in models.left_out), class_="notes")
    said = element("p", "Not in this page as models:", class_="notes")
    left_out = together(said, lines) if models.left_out else Markup("")
    return filled(embed.asset("live.html"), {"left_out": left_out})


def _scores_sections(runs: Sequence[FinishedRun], comparisons: Sequence[SetComparison]) -> Markup:
    scores = (
        _per_set(comparisons, scores_table),
        _per_set(comparisons, seeds_table),
        _per_set(comparisons, unknown_words_table),
    )
    paper = paper_table()
    return filled(
        embed.asset("scores.html"),
        {
            "scores": together(*scores),
            "published": element("details", element("summary", paper.title), html_table(paper)),
            "training": html_table(training_table(runs)),
            "fewest": FEWEST,
            "paired": _paired_notes(comparisons),
        },
    )


def _least_words(comparisons: Sequence[SetComparison]) -> int:
    """LEAST_WORDS, or 0 where a set has fewer than MANY sentences as long."""
    counts = [
        max(
            (
                sum(row["sentences"] for row in result["by_length"] if row["from"] >= LEAST_WORDS)
                for result in one.results.values()
            ),
            default=0,
        )
        for one in comparisons
    ]
    return LEAST_WORDS if min(counts, default=0) >= MANY else 0


def _paired_notes(comparisons: Sequence[SetComparison]) -> Markup:
    """Which runs pairs and sentences are of, where they are not of all."""
    return together(
        *(
            element("p", one.pairs_note, class_="notes", data_set=one.name)
            for one in comparisons
            if one.pairs_note
        )
    )


def _per_set(
    comparisons: Sequence[SetComparison], make: Callable[[SetComparison], Table]
) -> Markup:
    tables = {one.name: make(one) for one in comparisons}
    return together(
        *(
            element("div", html_table(table), data_set=name)
            for name, table in tables.items()
            if table.rows
        )
    )


def _configuration_section(runs: Sequence[FinishedRun]) -> Markup:
    differences = differences_table(runs)
    commands = [
        together(element("dt", run.label), element("dd", element("code", command)))
        for run in runs
        if (command := run.results.get("command"))
    ]
    alone = len(runs) == 1
    equal = Markup("") if alone else element("p", "The configurations are equal.")
    again = "How to make it again" if alone else "How to make them again"
    return filled(
        embed.asset("configuration.html"),
        {
            "heading": again if alone else "How the runs differ, and how to make them again",
            "commands_heading": "Command" if alone else "Commands",
            "differences": html_table(differences) if differences.rows else equal,
            "commands": together(*commands),
        },
    )
