"""Compares runs, and other systems' translations, on one self-contained page.

python -m nmt.compare runs=[multirun/2026-01-31/12-00-00]
python -m nmt.compare runs=[outputs/*/*] output=mine +external.moses.newstest2014=moses.txt
python -m nmt.compare runs=[outputs/*/*] figures=pdf wandb=my-team/nmt
python -m nmt.compare runs=[multirun/*/*] claims=bahdanau
"""

from __future__ import annotations

import logging
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from nmt.cli.command import command
from nmt.cli.composition import chosen_file
from nmt.config import CompareConfig

log = logging.getLogger(__name__)


@command("compare")
def main(composed: DictConfig) -> None:
    from nmt.evaluation.scores import choose_scores
    from nmt.report.claims import decide_claims
    from nmt.report.comparison import compare_sets
    from nmt.report.disambiguation import disambiguate_test_sets
    from nmt.report.figures import draw_for_papers
    from nmt.report.finding import find_runs
    from nmt.report.outside import read_system
    from nmt.report.page import build_page
    from nmt.report.tables import write_tables
    from nmt.report.terminal import terminal_table
    from nmt.report.wandb import dashboards
    from nmt.utils.files import check_writable, remove_partial, write_text
    from nmt.utils.locks import locked
    from nmt.utils.progress import Stage, counted

    OmegaConf.resolve(composed)
    config = OmegaConf.to_object(composed)
    assert isinstance(config, CompareConfig)
    scores = None if config.scores is None else choose_scores(config.scores, "scores")
    output = Path(config.output)
    check_writable("output", output / "comparison.html")
    project = None if config.wandb is None else dashboards.check_project(config.wandb)
    found = find_runs(config.runs)
    runs = disambiguate_test_sets(found.runs, shown=True)
    others = [read_system(name, files, runs, config) for name, files in config.external.items()]
    everyone = [*runs, *others]
    formats = [config.figures] if isinstance(config.figures, str) else list(config.figures or ())
    with locked(output, "output"), Stage(f"comparing {counted(len(everyone), 'run')}"):
        remove_partial([output, output / "tables", output / "figures"])
        comparisons = compare_sets(everyone, config.resamples, scores, shown=True)
        write_tables(everyone, comparisons, output / "tables")
        if config.claims:
            decided = decide_claims(chosen_file("claims"), runs, config.resamples)
            write_text(output / "claims.md", decided.markdown())
            log.info("claims: %s: %s", decided.summary, output / "claims.md")
        if formats:
            draw_for_papers(comparisons, output / "figures", formats, config.report.sentence)
        page = build_page(
            everyone,
            output / "comparison.html",
            config.report,
            unfinished=found.unfinished,
            comparisons=comparisons,
        )
    table = terminal_table(everyone, comparisons, found.unfinished)
    log.info(
        "%s compared: %s\n%s:\n%s",
        counted(len(everyone), "run"), page, table.title, table.text(),
    )  # fmt: skip
    if project is not None:
        for run in found.runs:
            if dashboards.wandb_id(run) is None:
                log.warning("%s never logged to W&B: its panels there are empty", run.label)
        for address in dashboards.save_dashboards(project, found.runs, page):
            log.info("saved in W&B: %s", address)


if __name__ == "__main__":
    main()
