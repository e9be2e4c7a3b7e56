"""A machine without W&B and without the library of charts trains all the same."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.helpers import ROOT
from tests.helpers.processes import TINY

# `None` in sys.modules is how Python says that there is no such module
WITHOUT = """
import importlib, pkgutil, runpy, sys
for name in ("wandb", "vl_convert"):
    sys.modules[name] = None
import nmt
for module in pkgutil.walk_packages(nmt.__path__, "nmt."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ImportError as error:  # of a package that an extra, or a GPU, brings
            assert error.name not in ("wandb", "vl_convert"), module.name
sys.modules.pop("nmt.train")
runpy.run_module("nmt.train", run_name="__main__", alter_sys=True)
"""


@pytest.mark.slow
def test_a_training_without_wandb_and_charts(tmp_path):
    typed = [word for word in TINY if not word.startswith("logger")]
    options = (
        "logger=csv",
        "report.figures=[]",
        "trainer.max_steps=2",
        "trainer.val_check_interval=2",
    )
    run = "hydra.run.dir=run"
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *typed, *options, run, "evaluation.train_sample=0"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert "report.html is left out: vl_convert is not installed" in done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "run/results.json").is_file()
    assert (tmp_path / "run/csv/version_0/metrics.csv").is_file()
