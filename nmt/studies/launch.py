"""Makes the runs that are missing: a sweep of each command, under whatever launcher was chosen."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig

from nmt.config.study import COMMANDS
from nmt.data.sources.open import open_corpus, text_sections
from nmt.run.early_checks import check_anywhere, check_training
from nmt.run.initial import initial_checkpoint
from nmt.studies.existing import RUNS, FoundRuns, find_existing
from nmt.studies.planned import PlannedEvaluation, PlannedRun
from nmt.utils.commands import override, override_key
from nmt.utils.errors import InputError, Interrupted
from nmt.utils.files import write_json
from nmt.utils.locks import FolderInUse, FolderLock
from nmt.utils.processes import on_stopping_signals, signal_at_parents_death
from nmt.utils.progress import counted

log = logging.getLogger(__name__)

JOBS = "jobs.json"
PASSED_ON = ("hydra/launcher", "hydra.launcher.", "hydra.searchpath")  # of what was typed
PATIENCE = 600.0  # seconds that runs of an earlier start have to end


def check_texts(runs: Sequence[PlannedRun]) -> None:
    """Opens each text that runs are trained or tested on. Raises as `open_corpus`."""
    different = {repr(run.config.data): run.config.data for run in runs}
    for data in different.values():
        for key, text in text_sections(data).items():
            split = key.split(".")[1]
            if split != "in_domain":  # of filters alone
                open_corpus(text, data, key, split)


def check_trainings(runs: Sequence[PlannedRun]) -> None:
    """Refuses what `nmt.train` would refuse at its start on any machine.

    Raises:
        InputError: naming the group.
    """
    different = {(run.group, run.identity): run for run in runs if run.made_by == "train"}
    for run in different.values():
        try:
            check_anywhere(run.config)
            check_training(run.config)
            initial_checkpoint(run.config)
            if run.config.trainer.lightning.get("fast_dev_run"):
                raise InputError(
                    "trainer.lightning.fast_dev_run: a trial, of which nothing is kept; leave it out"
                )
        except InputError as refusal:
            raise InputError(f"study.runs.{run.group}: {refusal}") from refusal


def check_models(runs: Sequence[PlannedRun]) -> None:
    """Refuses evaluations of models that are gone, of runs that were kept for their scores.

    Raises:
        InputError: naming the group and the model's run.
    """
    for run in runs:
        for checkpoint in (*run.models, *run.reverse) if isinstance(run, PlannedEvaluation) else ():
            if not checkpoint.is_file():
                folder = checkpoint.parents[1]
                raise InputError(
                    f"study.runs.{run.group}: {folder} has no checkpoint to evaluate; "
                    "delete the folder, and the model is trained again"
                )


def make_missing(found: FoundRuns, folder: Path) -> FoundRuns:
    """Makes the missing runs, and then those that depend on them.

    Returns:
        The runs that there are then; some may still be missing.

    Raises:
        Interrupted: when a signal has stopped them.
    """
    tried: set[str] = set()  # each once; what has failed is told
    while missing := [run for run in found.missing() if run.identity not in tried]:
        tried |= {run.identity for run in missing}
        for command in COMMANDS:
            runs = [run for run in missing if run.made_by == command]
            if runs:
                make_runs(runs, folder)
        found = find_existing(found.study, folder)
    return found


def make_runs(runs: Sequence[PlannedRun], folder: Path) -> None:
    """Makes or resumes runs of one command, each in its own folder below `folder/runs`.

    A run that fails is not reported here; its folder then has no results.json.

    Raises:
        Interrupted: when a signal has stopped them.
    """
    where = folder / RUNS
    where.mkdir(parents=True, exist_ok=True)
    jobs = [[*run.typed, override("hydra.sweep.subdir", run.folder_name)] for run in runs]
    for run in runs:
        _await(where / run.folder_name)
    write_json(folder / JOBS, jobs)
    command = runs[0].made_by
    log.info("%s: %s in %s", command, counted(len(runs), "run"), where)
    process = subprocess.Popen(
        sweep_command(command, folder / JOBS, where),
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: signal_at_parents_death(signal.SIGTERM),
    )
    received: list[int] = []

    def pass_on(number: int) -> None:  # to the sweep, which stops its runs
        received.append(number)
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)

    with on_stopping_signals(pass_on):
        code = process.wait()
    (folder / JOBS).unlink(missing_ok=True)
    if received:
        number = received[0]
        raise Interrupted(
            f"stopped by {signal.Signals(number).name}; the same command continues it", number
        )
    if code:
        log.warning("some runs have not finished (exit code %d)", code)


def sweep_command(command: str, jobs: Path, where: Path) -> list[str]:
    """The sweep as a command line, with the launcher and the search path that were typed."""
    typed = get_args_parser().parse_args()
    folder = ["--config-dir", typed.config_dir] if typed.config_dir else []
    passed = [
        word
        for word in HydraConfig.get().overrides.hydra
        if override_key(word).startswith(PASSED_ON)
    ]
    return [
        *(sys.executable, "-m", f"nmt.{command}", "-m", *folder, *passed),
        "hydra/sweeper=listed",
        override("hydra.sweeper.jobs", str(jobs)),
        override("hydra.sweep.dir", str(where)),
        "~hydra.callbacks.comparison",
    ]


def _await(folder: Path) -> None:
    """Waits for the process of an earlier start that still works in a run's folder."""
    end = time.monotonic() + PATIENCE
    said = False
    while _is_busy(folder) and time.monotonic() < end:
        if not said:
            log.info("waiting for a run of an earlier start to end: %s", folder)
        said = True
        time.sleep(0.5)


def _is_busy(folder: Path) -> bool:
    """Whether a process works in a run's folder: a training, or one of the process launcher's jobs.

    A job of that launcher holds its `console.log` from the moment that it is started, and the lock
    of its folder when its libraries are imported.
    """
    if not folder.is_dir():
        return False
    with contextlib.suppress(FileNotFoundError), (folder / "console.log").open("rb") as console:
        try:
            fcntl.flock(console, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    try:
        FolderLock.take(folder).release()
    except FolderInUse:
        return True
    return False
