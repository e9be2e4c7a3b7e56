"""Makes the runs that claims need, as far as they are missing, and decides the claims.

python -m nmt.study +study=tiny
python -m nmt.study +study=bahdanau study.plan_only=true
python -m nmt.study +study=bahdanau hydra.launcher.n_jobs=2
python -m nmt.study +study=bahdanau study.only=[attention-wins] study.take=[multirun/2026-01-31/12-00-00]
"""

from __future__ import annotations

import logging

from omegaconf import DictConfig

from nmt.cli.command import command
from nmt.utils.environment import output_folder

log = logging.getLogger(__name__)


@command("study")
def main(composed: DictConfig) -> None:
    """The claims are hashed before the first run; the same command goes on where it was stopped."""
    from nmt.studies.cost import say_plan
    from nmt.studies.existing import count_runs, find_existing
    from nmt.studies.launch import check_models, check_texts, check_trainings, make_missing
    from nmt.studies.page import write_report
    from nmt.studies.plan import plan_of
    from nmt.studies.registration import register_claims, registrations_of
    from nmt.studies.report import StudyReport
    from nmt.studies.verdicts import decide
    from nmt.utils.errors import RunError
    from nmt.utils.files import remove_partial
    from nmt.utils.progress import counted

    study, folder = plan_of(composed), output_folder()
    registrations_of(study.name, folder)  # refuses a folder that is not this study's
    found = find_existing(study, folder)
    ahead = found.missing() if study.section.missing == "run" else []
    check_trainings(ahead)
    check_models(ahead)
    say_plan(found, folder)
    if study.section.plan_only:
        return
    check_texts(ahead)  # which may download
    remove_partial([folder])
    registrations = register_claims(study.section, folder, count_runs(folder), study.name)
    log.info("claims and rules: sha256 %s", registrations[-1].sha256)
    if study.section.missing == "run":
        found = make_missing(found, folder)
    report = StudyReport(found, decide(found), registrations)
    page = write_report(report, folder)
    log.info("%s: %s\n%s", report.summary, page, report.table(study.section.only).text())
    if study.section.missing == "run" and found.missing():
        raise RunError(
            f"{counted(len(found.missing()), 'run')} could not be finished, see console.log in "
            f"{folder / 'runs'}; the same command tries again"
        )


if __name__ == "__main__":
    main()
