"""What a command imports before there is work to do: nothing that takes seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.helpers import ROOT

HEAVY = (
    "torch",
    "pytorch_lightning",
    "lightning_fabric",
    "torchmetrics",
    "datasets",
    "wandb",
    "transformers",
    "tokenizers",
    "huggingface_hub",
    "pandas",
    "pyarrow",
)
FOR_REPORTS = ("numpy", "matplotlib", "sacrebleu", "vl_convert", "PIL")

# Runs a module as `python -m` does, and lists what it has imported when the process ends.
RUN = f"""
import atexit, json, runpy, sys
module, listing, *sys.argv[1:] = sys.argv[1:]
found = lambda: [name for name in {HEAVY + FOR_REPORTS} if name in sys.modules]
atexit.register(lambda: open(listing, "w").write(json.dumps(found())))
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


@pytest.fixture
def start(tmp_path):
    """start(module, *typed): exit code, what was printed, and the libraries that were imported."""

    def started(module: str, *typed: str) -> tuple[int, str, set[str]]:
        listing = tmp_path / "imported.json"
        done = subprocess.run(
            [sys.executable, "-c", RUN, module, str(listing), *typed],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        return done.returncode, done.stdout, set(json.loads(listing.read_text()))

    return started


def test_what_is_imported_is_seen(start):
    assert start("tests.helpers")[2] == set()
    assert start("nmt.layers")[2] >= {"torch"}


@pytest.mark.parametrize(
    "command", ["train", "evaluate", "translate", "compare", "prepare", "baseline"]
)
def test_help_and_refusals_start_no_library(start, command):
    code, said, imported = start("nmt", command, "--help")
    assert (code, imported) == (0, set()), said
    assert f"python -m nmt.{command}: " in said
    code, said, imported = start(f"nmt.{command}", "seeed=1")
    assert (code, imported) == (2, set()), said


@pytest.mark.parametrize(
    ("typed", "expected", "said"),
    [
        ("train --cfg job", 0, "max_steps: ${updates.${experiment}}"),
        ("train trainer.max_steps=many", 2, "trainer.max_steps takes: whole number"),
        ("train model=seq2seq", 2, "model=seq2seq: no such; available: rnnencdec, rnnsearch"),
        ("train data.batch_size=0", 2, "data.batch_size=0: must be at least 1"),
        ("train model=rnnencdec scoring=dot", 2, "RNNencdec has no attention"),
        ("train data.batch_size=81 trainer.devices=2", 2, "data.batch_size=81: must be a multiple"),
        ("baseline data.languages=[en]", 2, "data.languages=[en]: must be a source and a target"),
        ("evaluate", 2, "checkpoint: must be given"),
        ("evaluate checkpoint=f search.beam_size=0", 2, "search.beam_size=0: must be at least 1"),
        ("translate checkpoint=f nbest=0", 2, "nbest=0: must be at least 1"),
        ("compare runs=[a] figures=gif", 2, "figures=gif: must be one of png, svg, pdf"),
    ],
)
def test_what_is_wrong_is_known_without_libraries(start, typed, expected, said):
    command, *typed = typed.split()
    code, output, imported = start(f"nmt.{command}", *typed)
    assert (code, imported) == (expected, set()), output
    assert said in output


def test_the_parent_of_a_sweep_starts_no_library(start, tmp_path):
    """Both jobs are refused; the page of none is not made, but what makes it is looked for."""
    typed = ("-m", "data.batch_size=0,-1", "hydra.sweep.dir=s", "hydra.launcher.n_jobs=2")
    code, output, imported = start("nmt.train", *typed)
    assert code == 1
    assert "job 1 refused (exit code 2)" in output
    assert imported & set(HEAVY) == set(), output
    said = (tmp_path / "s/1/console.log").read_text().splitlines()
    assert said[1:] == ["nmt: data.batch_size=-1: must be at least 1"]


@pytest.mark.parametrize(
    "module",
    [
        "nmt.cli.command",
        "nmt.cli.sweep",
        "nmt.cli.reference",
        "nmt.config.validation",
        "nmt.config.overrides",
    ]
    + [f"nmt.utils.{name}" for name in ("cores", "environment", "errors", "files", "optional")]
    + ["nmt.training.signals", "hydra_plugins.nmt_process_launcher.launcher"],
)
def test_modules_that_every_start_imports(start, module, tmp_path):
    (tmp_path / "only.py").write_text(f"import {module}")
    assert start("only")[2] == set()
