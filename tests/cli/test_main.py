"""`python -m nmt` and `nmt`: the list of commands, and what is started under their names."""

from __future__ import annotations

import sys
from importlib import metadata

import pytest

import nmt
import nmt.__main__ as program
from hydra_plugins.nmt_process_launcher import _job
from nmt.cli import command
from tests.helpers import ROOT


@pytest.fixture
def run(monkeypatch, capsys):
    """run(*typed): exit code of the program, what it printed, what it said on stderr."""

    def ran(*typed: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["nmt", *typed])
        code = 0
        try:
            program.main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        said = capsys.readouterr()
        return code, said.out, said.err

    return ran


def test_the_list_has_every_command_with_what_it_does(run):
    code, out, _ = run()
    assert code == 0
    assert run("--help") == (0, out, "")
    lines = dict(line.split(maxsplit=1) for line in out.splitlines()[2:])
    files = {path.stem for path in (ROOT / "nmt").glob("*.py")} - {"__init__", "__main__"}
    assert set(lines) == files
    assert lines["evaluate"] == "Runs the whole test protocol on a trained model."
    assert all(line.endswith(".") for line in lines.values())


def test_versions_are_those_of_this_program_and_of_what_results_depend_on(run):
    code, out, err = run("--version")
    assert (code, err) == (0, "")
    assert out.startswith(f"nmt {nmt.__version__}\npython ")
    assert f"\ntorch {metadata.version('torch')}\npytorch-lightning 2" in out
    assert run("train", "--version") == (0, out, "")


def test_another_name_is_refused_with_the_names_there_are(run):
    code, out, err = run("trian", "seed=1")
    assert (code, out) == (2, "")
    assert err.startswith("nmt: trian: no such command; there are: baseline, compare, evaluate")


def test_a_command_is_started_again_as_itself(run, monkeypatch):
    """Lightning starts its other ranks, and the launcher its jobs, by what `__main__` is."""
    from pytorch_lightning.strategies.launchers.subprocess_script import _basic_subprocess_cmd

    seen = {}

    def look(application, name, typed):
        seen.update(name=name, typed=typed, rank=_basic_subprocess_cmd(), job=_job.program())
        seen.update(again=_job.again("s"))
        return 7

    monkeypatch.setattr(command, "exit_code", look)
    assert run("train", "+experiment=rnnsearch30", "seed=2")[0] == 7
    typed = ["+experiment=rnnsearch30", "seed=2"]
    assert seen["rank"] == [sys.executable, "-m", "nmt.train", *typed]
    assert seen["job"] == [sys.executable, "-m", "nmt.train"]
    assert seen["again"] == "python -m nmt.train +experiment=rnnsearch30 seed=2 hydra.sweep.dir=s"
    assert (seen["name"], list(seen["typed"])) == ("train", typed)
