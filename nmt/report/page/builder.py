"""From run folders to one HTML file."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from nmt.config import PageConfig
from nmt.evaluation.significance import FEWEST
from nmt.report.comparison import SetComparison, compare_set, scored_sets
from nmt.report.disambiguation import renamed_sets
from nmt.report.page import embed
from nmt.report.page.fitting import fitted_alignments, fitted_translations, size
from nmt.report.page.overview import overview
from nmt.report.page.sentences import decoding, translation_rows
from nmt.report.run_tables import differences_table, paper_table, training_table
from nmt.report.runs import FinishedRun
from nmt.report.table import Column, MeanAndDeviation, Table, show
from nmt.report.tables import lengths_table, scores_table, seeds_table
from nmt.utils.files import write_text

LEAST_WORDS = 30
"""Shortest sentence that translations side by side show at first."""

_SECTIONS = {
    "length": "By length",
    "scores": "Scores",
    "significance": "Significance",
    "training": "Training",
    "explorer": "Alignments",
    "translations": "Translations",
    "configuration": "Configurations",
}


def build_page(
    runs: Sequence[FinishedRun],
    path: str | Path,
    report: PageConfig | None = None,
    external: Sequence[FinishedRun] = (),
    *,
    title: str = "Comparison of runs",
    unfinished: Sequence[Path] = (),
    resamples: int = 1000,
    comparisons: Sequence[SetComparison] | None = None,
) -> Path:
    """Writes the comparison page of some runs.

    Args:
        runs: with unique labels (`nmt.report.runs.find_runs`).
        path: the HTML file to write.
        report: `report.sentences` bounds the sentences a run and test set in the alignment explorer.
        external: outside systems on the same test sets (`nmt.report.runs.outside_system`).
        unfinished: folders that were passed over, named on the page.
        resamples: bootstrap resamples behind the tests between runs; 0: no tests.
        comparisons: of `nmt.report.comparison.compare_set`, if they were made already.

    Returns:
        The path written.
    """
    everyone = [*runs, *external]
    if comparisons is None:
        comparisons = [compare_set(everyone, name, resamples) for name in scored_sets(everyone)]
    alignments, kept = fitted_alignments(everyone, (report or PageConfig()).sentences)
    translations = {name: translation_rows(everyone, name) for name in scored_sets(everyone)}
    sections = "\n".join(
        [
            _overview_sections(everyone, comparisons, unfinished),
            embed.asset("explorer.html"),
            Template(embed.asset("translations.html")).substitute(least=_least_words(comparisons)),
            _configuration_section(everyone),
        ]
    )
    payloads = [
        embed.packed("overview", overview(everyone, comparisons)),
        alignments,
        embed.packed_text("library", embed.chart_library()),
    ]
    beside = sum(map(size, (*payloads, sections)))
    payloads.append(fitted_translations(translations, kept, beside))
    subtitle = _plural(len(runs), "run")
    if external:
        subtitle += f" and {_plural(len(external), 'outside system')}"
    if translations:
        subtitle += f" on {', '.join(translations)}"
    return _write(path, title, subtitle, sections, payloads, _navigation())


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
        sentence = sentences.setdefault(
            row["id"],
            {
                "id": row["id"],
                "length": row.get("length", len(source) - 1),
                "source": source,
                "reference": row.get("reference") or [],
                "by": {},
            },
        )
        own = None if source == sentence["source"] else source
        sentence["by"][row.get("run", label)] = decoding(dict(row), None, own)
    ordered = sorted(sentences.values(), key=lambda sentence: sentence["length"])
    payloads = [embed.packed("alignments", {"text": ordered})]
    return _write(
        path, title, _plural(len(ordered), "sentence"), embed.asset("explorer.html"), payloads, ""
    )


def _write(
    path: str | Path,
    title: str,
    subtitle: str,
    sections: str,
    payloads: Sequence[str],
    navigation: str,
) -> Path:
    page = Template(embed.asset("template.html")).substitute(
        title=escape(title),
        subtitle=escape(subtitle),
        style=embed.stylesheet(),
        navigation=navigation,
        sections=sections,
        payloads="\n".join(payloads),
        programs=embed.programs("main.mjs"),
    )
    write_text(Path(path), page)
    return Path(path)


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _navigation() -> str:
    links = "".join(
        f'<li><a href="#{key}-section">{name}</a></li>' for key, name in _SECTIONS.items()
    )
    return f'<nav aria-label="Sections"><ul>{links}</ul></nav>'


def _overview_sections(
    runs: Sequence[FinishedRun], comparisons: Sequence[SetComparison], unfinished: Sequence[Path]
) -> str:
    notes = list(renamed_sets(runs).values())
    if unfinished:
        folders = ", ".join("/".join(folder.parts[-2:]) for folder in unfinished)
        notes.append(f"Not finished, so not here: {folders}.")
    return Template(embed.asset("overview.html")).substitute(
        notes="".join(f'<p class="notes">{escape(note)}</p>' for note in notes),
        lengths=_per_set(comparisons, lambda one: lengths_table(one, ["bleu"])),
        scores=_per_set(comparisons, scores_table) + _per_set(comparisons, seeds_table, "group"),
        published=f"<details><summary>The paper's figures</summary>{_table(paper_table(), 'name')}</details>",
        training=_table(training_table(runs)),
        fewest=FEWEST,
    )


def _least_words(comparisons: Sequence[SetComparison]) -> int:
    """LEAST_WORDS, or 0 where no set has sentences as long."""
    starts = [
        row["from"]
        for one in comparisons
        for result in one.results.values()
        for row in result["by_length"]
    ]
    return LEAST_WORDS if max(starts, default=0) >= LEAST_WORDS else 0


def _per_set(comparisons: Sequence[SetComparison], make: Any, key: str = "run") -> str:
    tables = {one.name: make(one) for one in comparisons}
    return "".join(
        f'<div data-set="{escape(name)}">{_table(table, key)}</div>'
        for name, table in tables.items()
        if table.rows
    )


def _table(table: Table, key: str = "run") -> str:
    """A table in HTML whose numbers keep their full value for sorting."""
    head = "".join(f'<th scope="col">{escape(column.title)}</th>' for column in table.columns)
    body = []
    for row in table.rows:
        cells = [f'<th scope="row">{escape(show(row.get(key), table.columns[0]))}</th>']
        cells += [_cell(row.get(column.key), column.of(row)) for column in table.columns[1:]]
        name = f' data-run="{escape(str(row["run"]))}"' if "run" in row else ""
        body.append(f"<tr{name}>{''.join(cells)}</tr>")
    notes = "".join(f"<p>{escape(note)}</p>" for note in table.notes)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.title)}">'
        f'<table class="sortable" id="{escape(table.name)}-table"><caption>{escape(table.title)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
        f'<div class="notes">{notes}</div>'
    )


def _cell(value: Any, column: Column) -> str:
    if column.text:
        return f'<td class="text">{escape(show(value, column))}</td>'
    if isinstance(value, MeanAndDeviation):
        number, text = value.mean, escape(show(value.mean, column))
        text += f' <span class="interval">± {value.deviation:.{column.digits}f}</span>'
    elif isinstance(value, tuple):
        number, low, high = value
        text = escape(show(number, column))
        if low is not None and high is not None:
            text += f' <span class="interval">[{show(low, column)}, {show(high, column)}]</span>'
    else:
        number, text = value, escape(show(value, column))
    return f'<td data-value="{"" if number is None else number}">{text}</td>'


def _configuration_section(runs: Sequence[FinishedRun]) -> str:
    differences = differences_table(runs)
    table = (
        _table(differences, "key") if differences.rows else "<p>The configurations are equal.</p>"
    )
    commands = "".join(
        f"<dt>{escape(run.label)}</dt><dd><code>{escape(command)}</code></dd>"
        for run in runs
        if (command := command_of(run))
    )
    return Template(embed.asset("configuration.html")).substitute(
        differences=table, commands=commands
    )


def command_of(run: FinishedRun) -> str | None:
    """The command that makes the run again, from results.json or else from its overrides."""
    if run.results.get("command"):
        return str(run.results["command"])
    if run.external:
        return None
    return " ".join(["python -m nmt.train", *map(shlex.quote, run.overrides)])
