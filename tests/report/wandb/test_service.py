"""What is known of W&B's own process, and a run whose process a signal has ended."""

from __future__ import annotations

import os

import pytest

from nmt.report.wandb.rows import read_rows
from tests.helpers.processes import start

# Logs rows 0 to 49, of which those of a checkpoint are waited for; W&B's process dies before row 30.
LOG = """
import logging, signal, sys
from pathlib import Path
from nmt.config.validation import load
from nmt.report.wandb import service
from nmt.training.loggers import logging_to
from tests.helpers.composition import compose
logging.basicConfig(format="%(message)s")
config = load(compose("train", ["regime=tiny", "logger.mode=offline"]))
from wandb.sdk import wandb_setup
assert not service.has_died()
folder = Path(sys.argv[1])
folder.mkdir()
with logging_to(config, folder) as logger:
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
    (tmp_path / "log_rows.py").write_text(LOG)
    # a process of W&B that another test has started in this one is not to be used
    hook = "import os; os.environ.pop('WANDB_SERVICE', None)"
    ended = start("log_rows", "run", str(row), when, cwd=tmp_path, hook=hook, timeout=200).wait()
    assert ended.code == 0, ended.err
    assert "Traceback" not in ended.err
    files = sorted((tmp_path / "run").glob("wandb/offline-run-*/run-*.wandb"), key=os.path.getmtime)
    assert len(files) == 2, ended.err
    found = [
        (row["_step"], row["train/nll_per_word"])
        for file in files
        for _, row in read_rows(file)
        if "train/nll_per_word" in row
    ]
    assert found == [(step, float(step)) for step in range(50)], ended.err
