"""How run folders are named where several processes must agree on the name."""

from __future__ import annotations

import re
import sys

import pytest

from nmt.cli.command import no_early_exit
from nmt.cli.composition import run_folder
from nmt.utils.errors import RunError

TORCHRUN = {"TORCHELASTIC_RUN_ID": "lengths-1"}
SLURM = {"SLURM_JOB_ID": "77", "SLURM_NTASKS": "4"}
BY_TIME = r"outputs/\d{4}-\d\d-\d\d/\d\d-\d\d-\d\d"


@pytest.mark.parametrize(
    ("environment", "command", "folder"),
    [
        ({}, "train", BY_TIME),
        ({}, "evaluate", BY_TIME),
        (TORCHRUN, "train", "outputs/torchrun-lengths-1"),
        (TORCHRUN, "evaluate", "outputs/torchrun-lengths-1-evaluate"),
        (SLURM, "train", "outputs/slurm-77"),
        ({**SLURM, "SLURM_STEP_ID": "2"}, "train", "outputs/slurm-77"),
        ({**SLURM, "SLURM_STEP_ID": "2"}, "evaluate", r"outputs/slurm-77\.2-evaluate"),
        (SLURM, "evaluate", BY_TIME),
        ({"SLURM_JOB_ID": "77"}, "train", BY_TIME),
    ],
)
def test_run_folders(monkeypatch, environment, command, folder):
    for name in (*TORCHRUN, *SLURM, "SLURM_STEP_ID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert re.fullmatch(folder, run_folder(command))
    assert re.fullmatch(folder, run_folder(command, "auto"))
    assert run_folder(command, "runs/mine") == "runs/mine"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("seed=1", "-m", "size.hidden=8,9"),
         "size.hidden=8,9: stands apart from the other overrides; options, such as -m, come before or "
         "after all of them"),
        (("seed=1", "--multi-run"), "--multi-run: no such option; --help lists all"),
        (("--shell-completion",), "Expecting one subcommand from ['install', 'uninstall', 'query'] to be set"),
    ],
)  # fmt: skip
def test_what_hydra_does_not_read_is_said_in_a_line(program, typed, said):
    ended = program("train", *typed)
    assert (ended.code, ended.err) == (2, f"nmt: {said}\n")


@pytest.mark.parametrize("typed", ["root.level=LOUD", "handlers.file.filename=/no/such/folder/x"])
def test_a_log_that_cannot_be_is_said_in_a_line(program, typed):
    ended = program("train", f"hydra.job_logging.{typed}", "hydra.run.dir=unlogged")
    assert ended.code == 2
    assert ended.err.startswith(
        "nmt: hydra.job_logging or hydra.hydra_logging: Unable to configure "
    )
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize("command", ["translate", "score", "compare"])
def test_a_folder_that_a_command_has_not_is_not_made(program, command):
    ended = program(command, "hydra.run.dir=nobodys")
    assert ended.code == 2
    assert ended.err.startswith(f"nmt: hydra.run.dir=nobodys: nmt.{command} has no run folder;")
    assert not (program.folder / "nobodys").exists()


@pytest.mark.parametrize("code", [0, 3, "done"])
def test_who_calls_exit_has_not_done_the_work(code):
    said = rf"^ended early by {re.escape(__file__)}:\d+, SystemExit\({code!r}\)$"
    with pytest.raises(RunError, match=said), no_early_exit():
        sys.exit(code)


def test_lightnings_exit_after_an_interrupt_names_who_has_raised_it():

    def fit():
        try:
            raise KeyboardInterrupt("mine")
        except KeyboardInterrupt:
            sys.exit(1)

    said = rf"^ended early by {re.escape(__file__)}:\d+, KeyboardInterrupt\('mine'\)$"
    with pytest.raises(RunError, match=said), no_early_exit():
        fit()
