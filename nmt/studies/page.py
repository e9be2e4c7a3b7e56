"""Writes study.html, study.md and study.json."""

from __future__ import annotations

from pathlib import Path

from nmt.report.page.document import html_table, write_page
from nmt.report.page.markup import Markup, element, together
from nmt.studies.report import StudyReport
from nmt.utils.files import write_json, write_text


def write_report(report: StudyReport, folder: Path) -> Path:
    """Writes study.md, study.html and study.json into a study's folder; returns the page."""
    write_json(folder / "study.json", report.content())
    write_text(folder / "study.md", report.markdown())
    return build_study_page(report, folder / "study.html")


def build_study_page(report: StudyReport, path: Path) -> Path:
    """Writes the page: a table of verdicts, what decided each claim, sweeps and runs."""
    notes = element("div", *(element("p", note) for note in report.notes()), class_="notes")
    overview = _section("verdicts", report.summary, notes, html_table(report.table()))
    claims = [
        _section(f"claim-{each.name}", f"{each.name}: {each.verdict}", _facts(report.facts(each)))
        for each in report.verdicts
    ]
    tables = map(html_table, (*report.sweeps(), report.runs_table()))
    runs = _section("runs", "Runs", *tables)
    return write_page(
        path,
        report.title,
        f"study {report.found.study.name}",
        together(overview, *claims, runs),
        program="study.mjs",
    )


def _section(identity: str, title: str, *children: Markup) -> Markup:
    heading = element("h2", title, id=f"{identity}-title")
    return element(
        "section", heading, *children, id=f"{identity}-section", aria_labelledby=f"{identity}-title"
    )


def _facts(facts: list[tuple[str, str]]) -> Markup:
    rows = (
        together(
            element("dt", name),
            element("dd", element("code", text) if name == "command" else text),
        )
        for name, text in facts
    )
    return element("dl", *rows, class_="commands")
