"""What is known of W&B's own process, and a run whose process a signal has ended."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.report.wandb.rows import read_rows
from tests.helpers import ROOT
from tests.helpers.server import ENVIRONMENT

# Logs rows 0 to 49, of which those of a checkpoint are waited for; W&B's process dies before row 30.
LOG = """
import logging, os, signal, sys
from pathlib import Path
from nmt.report.wandb import service
from nmt.training.loggers import logging_to
from tests.helpers.run_folders import make_run
from nmt.config.validation import load
from hydra import compose, initialize_config_dir
from nmt.cli.composition import conf_folder, register_configs
logging.basicConfig(format="%(message)s")
register_configs(["train"])
from omegaconf import OmegaConf
OmegaConf.register_new_resolver("about", lambda: "", replace=True)
OmegaConf.register_new_resolver("command", lambda: "train", replace=True)
with initialize_config_dir(str(conf_folder()), version_base="1.3"):
    config = load(compose("train", ["regime=tiny", "logger.mode=offline"]))
from wandb.sdk import wandb_setup
assert not service.has_died()
with logging_to(config, Path(sys.argv[1])) as logger:
    for row in range(50):
        if row == int(sys.argv[2]):
            process = wandb_setup.singleton()._connection._proc._process
            assert not service.has_died()
            process.send_signal(signal.SIGTERM)
            if sys.argv[3] == "dead":
                process.wait()
                assert service.has_died()
        logger.log_metrics({"train/nll_per_word": float(row)}, row)
        if row % 20 == 19:
            logger.save()
"""


@pytest.mark.parametrize(
    ("row", "when"),
    [
        (30, "dying"),
        pytest.param(30, "dead", marks=pytest.mark.slow),
        pytest.param(49, "dying", marks=pytest.mark.slow),
    ],
)
def test_no_row_is_lost(tmp_path, row, when):
    # a process of W&B that another test has started in this one is not to be used
    done = subprocess.run(
        [sys.executable, "-c", LOG, str(tmp_path), str(row), when],
        env={k: v for k, v in os.environ.items() if k != "WANDB_SERVICE"} | ENVIRONMENT,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    files = sorted(Path(tmp_path).glob("wandb/offline-run-*/run-*.wandb"), key=os.path.getmtime)
    assert len(files) == 2, done.stderr
    found = [
        (row["_step"], row["train/nll_per_word"])
        for file in files
        for _, row in read_rows(file)
        if "train/nll_per_word" in row
    ]
    assert found == [(step, float(step)) for step in range(50)], done.stderr
