"""Compares runs, and the output of any other system, on one self-contained page.

python -m nmt.compare 'runs=[multirun/2026-01-31/12-00-00]'
python -m nmt.compare 'runs=[outputs/*/*]' output=mine +systems.moses.newstest2014=moses.txt
python -m nmt.compare 'runs=[outputs/*/*]' figures=pdf wandb=my-team/nmt
python -m nmt.compare source=news.de reference=news.en +systems.a=a.txt +systems.b=b.txt
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from types import ModuleType

from nmt.api import compare_runs
from nmt.cli.command import command
from nmt.cli.composition import chosen_file
from nmt.config.commands import CompareConfig

log = logging.getLogger(__name__)


class _Callable(ModuleType):
    """Makes this module callable, since importing it replaces the function `nmt.compare`."""

    __call__ = staticmethod(compare_runs)


sys.modules[__name__].__class__ = _Callable


@command("compare")
def main(config: CompareConfig) -> None:
    from nmt.report.claims import decide_claims
    from nmt.report.comparison import compare
    from nmt.report.write import write_comparison
    from nmt.utils.errors import RunError, first_line
    from nmt.utils.files import locked
    from nmt.utils.progress import Stage

    output = Path(config.output)
    if config.wandb is not None:
        from nmt.report.workspace import build_workspace, check_project

        check_project(config.wandb)
    formats = [config.figures] if isinstance(config.figures, str) else list(config.figures or ())
    comparison = compare(config, shown=True)
    decided = None
    if config.claims:
        runs = [run for run in comparison.runs if not run.external]
        decided = decide_claims(chosen_file("claims"), runs, config.resamples)
    with locked(output, "output"), Stage("writing the comparison"):
        write_comparison(comparison, output, config.report, figures=formats, claims=decided)
    if config.wandb is not None:
        try:
            log.info("W&B: %s", build_workspace(config.wandb, comparison).save().url)
        except Exception as error:  # network, key, rights, service
            problem = f"not saved ({first_line(error)}); the page is in {output}"
            raise RunError(f"wandb={config.wandb}: {problem}") from error


if __name__ == "__main__":
    main()
