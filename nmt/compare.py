"""Sets runs, and other systems' translations, side by side on one self-contained page.

python -m nmt.compare runs=[multirun/2026-01-31/12-00-00]
python -m nmt.compare runs=[outputs/*/*] output=mine +external.moses.newstest2014=moses.txt
python -m nmt.compare runs=[outputs/*/*] figures=pdf wandb=my-team/nmt
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from omegaconf import DictConfig, OmegaConf

from nmt.cli.command import command
from nmt.config.schema import CompareConfig, EvaluationConfig
from nmt.utils.errors import InputError

if TYPE_CHECKING:
    from nmt.report.runs import Run
    from nmt.report.wandb import dashboards

log = logging.getLogger(__name__)


@command("compare")
def main(composed: DictConfig) -> None:
    from nmt.report.comparison import compare_set, test_sets
    from nmt.report.disambiguation import disambiguate_test_sets
    from nmt.report.figures import draw_for_papers
    from nmt.report.page import build_page
    from nmt.report.runs import find_runs
    from nmt.report.tables import write_tables
    from nmt.report.wandb import dashboards

    OmegaConf.resolve(composed)
    config = OmegaConf.to_object(composed)
    assert isinstance(config, CompareConfig)
    project = None if config.wandb is None else check_wandb(config.wandb)
    found = find_runs(config.runs)
    runs = disambiguate_test_sets(found.runs)
    others = [
        read_system(name, files, runs, config.resamples) for name, files in config.external.items()
    ]
    everyone = [*runs, *others]
    comparisons = [compare_set(everyone, name, config.resamples) for name in test_sets(everyone)]
    output = Path(config.output)
    write_tables(everyone, comparisons, output / "tables")
    formats = [config.figures] if isinstance(config.figures, str) else list(config.figures or ())
    if formats:
        draw_for_papers(comparisons, output / "figures", formats, config.report.sentence)
    page = build_page(
        runs,
        output / "comparison.html",
        config.report,
        others,
        unfinished=found.unfinished,
        resamples=config.resamples,
        comparisons=comparisons,
    )
    log.info("%d runs compared: %s", len(everyone), page)
    if project is not None:
        for run in found.runs:
            if dashboards.wandb_id(run) is None:
                log.warning("%s never logged to W&B: its panels there are empty", run.label)
        for address in dashboards.save(project, found.runs, page):
            log.info("saved in W&B: %s", address)


def check_wandb(text: str) -> dashboards.Project:
    """Where the dashboards go; refuses at the start what would be found missing at the end.

    Raises:
        InputError: for what is not ENTITY/PROJECT, without the extra, and without a login.
    """
    from nmt.report.wandb import dashboards
    from nmt.training.loggers import has_key  # brings Lightning, which nothing else here needs

    project = dashboards.Project.parse(text)
    dashboards.check_installed()
    if not has_key():
        raise InputError(
            f"wandb={text}: W&B has no key here; run `wandb login` or set WANDB_API_KEY"
        )
    return project


def read_system(name: str, files: dict[str, str], runs: list[Run], resamples: int) -> Run:
    """Another system's hypotheses, a file a test set, scored as the runs' are.

    Of the runs on a set the first that has a shortlist says how it was scored: which sentences are
    without unknown words is not known of subwords.

    Args:
        name: the system's.
        files: by test set.
        runs: those that the system stands beside.
        resamples: bootstrap resamples behind its intervals.

    Raises:
        InputError: for the name of a run, a system without files, a test set that no run was scored
            on, or a file that does not fit it.
    """
    from nmt.data.tokenise import tokeniser
    from nmt.evaluation.external import read_external
    from nmt.report.comparison import edges, test_sets
    from nmt.report.runs import outside_system

    if name in {run.label for run in runs}:
        raise InputError(f"external.{name}: a run has this name; give the system another")
    if not files:
        raise InputError(f"external.{name}: names no file; give external.{name}.<test set>=FILE")
    sentences, settings = {}, {}
    for test_set, path in files.items():
        key = f"external.{name}.{test_set}"
        scored = [run for run in runs if test_set in run.sets and run.translations(test_set)]
        if not scored:
            known = ", ".join(test_sets(runs)) or "none"
            raise InputError(f"{key}: no run was tested on {test_set}; the runs have: {known}")
        run = max(scored, key=lambda run: has_shortlist(run, test_set))
        moses = tokeniser(run.flat["data.languages"][1], run.flat["tokenizer.normalise"])
        sentences[test_set] = read_external(
            path,
            run.translations(test_set),
            tokenise=moses.tokenise,
            detokenise=moses.detokenise,
            key=key,
        )
        settings[test_set] = EvaluationConfig(
            edges=edges([run], test_set),
            bucket_by=run.results["test"][test_set]["bucket_by"],
            resamples=resamples,
            confidence=run.confidence(test_set),
        )
    return outside_system(name, sentences, settings)


def has_shortlist(run: Run, test_set: str) -> bool:
    """Whether a run's records of a test set tell which sentences have unknown words."""
    return any(row.get("no_unk") is not None for row in run.translations(test_set))


if __name__ == "__main__":
    main()
