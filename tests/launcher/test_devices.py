"""Jobs of several processes: Lightning re-runs a job's command line for its other ranks."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.helpers import ROOT

APP = """
import json, os
from pathlib import Path
import hydra, torch
import pytorch_lightning as pl
from hydra.core.hydra_config import HydraConfig

class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)
    def training_step(self, batch, index):
        return self.layer(batch).sum()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

@hydra.main(version_base=None, config_path=".", config_name="app")
def main(cfg):
    folder = Path(HydraConfig.get().runtime.output_dir)
    trainer = pl.Trainer(
        max_steps=2, accelerator="cpu", devices=cfg.trainer.devices, logger=False,
        strategy="ddp" if cfg.trainer.devices > 1 else "auto", enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )
    trainer.fit(Model(), torch.utils.data.DataLoader(torch.rand(8, 3), 2))
    rank = trainer.global_rank
    (folder / f"rank{rank}").write_text(json.dumps([trainer.world_size, os.getpid()]))
    if rank == 0:
        (folder / "results.json").write_text("{}")
    return trainer.world_size

if __name__ == "__main__":
    main()
"""

CONFIG = "defaults: [{override hydra/launcher: process}]\ntrainer: {devices: 1}\n"


@pytest.mark.slow
def test_a_sweep_over_devices_starts_each_rank_once(tmp_path):
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "app.yaml").write_text(CONFIG)
    done = subprocess.run(
        [sys.executable, "app.py", "-m", "trainer.devices=1,2", "hydra.sweep.dir='an odd, name'"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    sweep = tmp_path / "an odd, name"
    ranks = {str(file.relative_to(sweep)): file for file in sweep.glob("*/rank*")}
    worlds = {name: json.loads(file.read_text())[0] for name, file in ranks.items()}
    assert worlds == {"0/rank0": 1, "1/rank0": 2, "1/rank1": 2}
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["an odd, name"]
    assert (sweep / "1/return.json").read_text() == "2"
