"""Builds the page of a comparison of runs, or of a single run.

Text enters a page in only two ways. Text in the templates is escaped by jinja2. Text in the data (deflated
JSON in base64) is put into text nodes and attributes by the page's script. The content security policy lists
the hashes of the page's own scripts, so no other script can run.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from nmt.config.schema import PageConfig
from nmt.evaluation.documents import dimension
from nmt.evaluation.significance import FEWEST
from nmt.report import result_tables
from nmt.report.captions import MANY
from nmt.report.comparison import LEVEL, Comparison
from nmt.report.page import embed
from nmt.report.page.payload import fitted_models, fitted_sentences, overview
from nmt.report.table import Table
from nmt.utils.files import write_text
from nmt.utils.text import counted, printable

SECTIONS = {
    "live": "Translate",
    "length": "By length",
    "explorer": "Alignments",
    "scores": "Scores",
    "significance": "Significance",
    "training": "Training",
    "translations": "Translations",
    "configuration": "Configurations",
}

TEMPLATES = Environment(
    loader=PackageLoader(__package__),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
    finalize=lambda value: printable(value) if type(value) is str else value,
)
GISTS = {
    "RNNencdec": "reads the whole sentence into one fixed vector, and writes the translation from it alone.",
    "RNNsearch": "looks back at every word of the sentence for each word it writes (attention).",
}
MAX_COLUMNS = 4  # maximum number of runs in a table with a column per run


def build_page(
    comparison: Comparison,
    path: str | Path,
    report: PageConfig | None = None,
    *,
    title: str | None = None,
) -> Path:
    """Writes the page of a comparison, or of a single run, and returns its path.

    Args:
        report: `sentences` is the maximum number of sentences per test set in the alignment explorer. `live`
            selects the models that the page contains.
        title: title of the page; None: the names of the runs.
    """
    report = report or PageConfig()
    runs, sets = comparison.runs, comparison.sets
    models, live = fitted_models(runs, report)
    alignments, translations = fitted_sentences(comparison, report.sentences)
    data = {
        "overview": overview(comparison),
        "live": live,
        "alignments": alignments,
        "translations": translations,
    }
    by = dimension(comparison.unit(sets[0]) if sets else "words")
    program = embed.program("main.mjs")
    library = embed.chart_library()
    digests = [hashlib.sha256(text.encode()).digest() for text in (program, library)]
    scripts = (f"'sha256-{base64.b64encode(digest).decode('ascii')}'" for digest in digests)
    missing = {
        "live": not models,
        "explorer": all(run.external for run in runs),
        "translations": not any(each["systems"] for each in translations.values()),
        "significance": len(runs) == 1,
        "training": not any(r.results.get("train") or r.results.get("history") for r in runs),
    }
    text = TEMPLATES.get_template("page.html").render(
        scripts=Markup(" ".join(scripts)),
        workers="blob:" if models else Markup("'none'"),
        style=Markup(embed.asset("style.css")),
        program=Markup(program),
        payloads={"data": embed.packed(data), "library": embed.packed(library), **models},
        title=title or result_tables.names_of(comparison.groups),
        subtitle=counted(len(runs), "system")
        + (f" on {' and '.join(map(result_tables.set_title, sets))}" if sets else ""),
        sections={
            key: name
            for key, name in (SECTIONS | {"length": f"By {by.partition(' ')[0]}"}).items()
            if not missing.get(key)
        },
        gists=gists(comparison),
        alone=len(runs) == 1,
        stranger=all(run.external for run in runs),
        many=len(comparison.groups) > MANY,
        sets=[
            {
                "name": name,
                "headline": result_tables.headline(comparison, name),
                "retention": result_tables.retention_table(comparison, name),
                "domains": result_tables.domains_table(comparison, name),
                "against": result_tables.against_table(comparison, name),
                "lengths": result_tables.lengths_table(comparison, name, comparison.main(name)),
                "scores": turned(result_tables.scores_table(comparison, name)),
                "seeds": result_tables.seeds_table(comparison, name),
            }
            for name in sets
        ],
        by=by,
        fewest=FEWEST,
        level=LEVEL,
        training=result_tables.training_table(runs),
        published=result_tables.paper_table(),
        settings=result_tables.settings_table(runs),
        commands={r.label: r.results["command"] for r in runs if r.results.get("command")},
    )
    write_text(Path(path), text)
    return Path(path)


def gists(comparison: Comparison) -> dict[str, str]:
    """Returns a sentence for each of the paper's two models that the runs have, by the name of the model."""
    models = {run.results.get("model") for run in comparison.runs}
    return {name: text for name, text in GISTS.items() if name in models}


def turned(table: Table) -> Table:
    """Transposes a table of at most `MAX_COLUMNS` runs: one row per score, one column per run."""
    if len(table.frame) > MAX_COLUMNS:
        return table
    frame = table.frame.set_index("Run").T.rename_axis(index="Score", columns=None).reset_index()
    return dataclasses.replace(table, frame=frame)
