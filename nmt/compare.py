"""Compares runs and the output of other systems, and writes a self-contained HTML page.

python -m nmt.compare 'runs=[multirun/2026-01-31/12-00-00]'
python -m nmt.compare 'runs=[outputs/*/*]' output=mine +systems.moses.newstest2014=moses.txt
python -m nmt.compare 'runs=[outputs/*/*]' figures=pdf wandb=my-team/nmt
python -m nmt.compare source=news.de reference=news.en 'systems=[outputs/*.en]'
"""

from __future__ import annotations

import logging
from pathlib import Path

from nmt.cli.application import command
from nmt.config.commands import CompareConfig
from nmt.evaluation import results
from nmt.utils.errors import InputError

log = logging.getLogger(__name__)


@command("compare")
def main(config: CompareConfig) -> None:
    from nmt.report.comparison import build_comparison
    from nmt.report.write import write_comparison
    from nmt.utils.files import locked
    from nmt.utils.progress import Stage

    output = Path(config.output)
    for folder in (output.absolute(), *output.absolute().parents):
        if (folder / results.FILE).is_file():
            raise InputError(f"output={config.output}: {folder} is a run; choose another folder")
    if config.wandb is not None:
        from nmt.report.workspace import check_project, save_workspace

        check_project(config.wandb)
    formats = [config.figures] if isinstance(config.figures, str) else list(config.figures or ())
    comparison = build_comparison(config)
    with locked(output, "output"), Stage("writing the comparison"):
        write_comparison(comparison, output, config.report, figures=formats)
    if config.wandb is not None:
        log.info("W&B: %s", save_workspace(config.wandb, comparison, output))


if __name__ == "__main__":
    main()
