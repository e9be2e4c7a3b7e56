"""A sweep ends with a comparison page, with every launcher, and with the default one even if jobs have failed."""

from __future__ import annotations

import pytest

from tests.helpers.processes import start

# An app with a fake `nmt.report`, which appends the names of the compared runs to the page.
APP = """
import sys, types
from pathlib import Path
import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf

def module(name, **content):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(content)

def build_comparison(config):
    return sorted(f.parent.name for folder in map(Path, config.runs) for f in folder.glob("*/results.json"))

def write_comparison(runs, folder, title):
    with (folder / "comparison.html").open("a") as file:
        file.write(" ".join(runs) + ";")
    if "3" in runs:
        raise RuntimeError("no page of this")

module("nmt.report.comparison", build_comparison=build_comparison)
module("nmt.report.write", write_comparison=write_comparison)

@hydra.main(version_base=None, config_path=None, config_name="app")
def main(cfg):
    if cfg.fail:
        raise RuntimeError("no luck")
    from nmt.utils.environment import sweep_folder
    print("sweep:", sweep_folder())
    (Path(HydraConfig.get().runtime.output_dir) / "results.json").write_text("{}")

if __name__ == "__main__":
    from hydra.core.config_store import ConfigStore
    callbacks = {"page": {"_target_": "nmt.cli.sweep.ComparisonPage"}}
    config = {"fail": False, "n": 0, "hydra": {"callbacks": callbacks}}
    ConfigStore.instance().store("app", config)
    main()
"""


@pytest.fixture
def sweep(tmp_path):
    (tmp_path / "app.py").write_text(APP)

    def run(*arguments: str, mode: str = "-m") -> tuple[int, str]:
        path = {"PYTHONPATH": str(tmp_path)}
        ended = start("app", mode, *arguments, cwd=tmp_path, env=path).wait()
        return ended.code, ended.out + ended.err

    return run


@pytest.mark.parametrize(
    "launcher",
    [
        pytest.param("basic", marks=pytest.mark.slow),
        "process",
        pytest.param("joblib", marks=pytest.mark.slow),
        pytest.param("submitit_local", marks=pytest.mark.slow),
    ],
)
def test_sweep_writes_one_page_of_the_finished_jobs(sweep, tmp_path, launcher):
    if launcher not in ("basic", "process"):
        plugin = f"hydra_plugins.hydra_{launcher.partition('_')[0]}_launcher"
        pytest.importorskip(plugin, reason="extra sweeps is missing")
    code, output = sweep(f"hydra/launcher={launcher}", "hydra.sweep.dir=s", "n=1,2")
    assert code == 0, output
    assert (tmp_path / "s/comparison.html").read_text() == "0 1;"
    logs = "".join(log.read_text() for log in (tmp_path / "s").glob(".submitit/*/*.out"))
    assert (output + logs).count("sweep: s\n") == 2


@pytest.mark.slow
def test_sweep_with_a_failed_job_writes_the_page_and_exits_1(sweep, tmp_path):
    code, output = sweep("hydra/launcher=process", "hydra.sweep.dir=s", "fail=false,true")
    assert code == 1
    assert (tmp_path / "s/comparison.html").read_text() == "0;", output


def test_sweep_ignores_errors_of_the_page(sweep, tmp_path):
    code, output = sweep("hydra/launcher=basic", "hydra.sweep.dir=s", "n=1,2,3,4")
    assert code == 0
    assert "no page of this" in output
    assert f"python -m nmt.compare 'runs=[{tmp_path}/s]'" in output


def test_single_run_and_refused_sweep_write_no_page(sweep, tmp_path):
    code, output = sweep("hydra.run.dir=r", mode="--run")
    assert code == 0, output
    assert "sweep: None" in output
    code, output = sweep("hydra/launcher=basic", "hydra.sweep.dir=s", "m=1,2")
    assert code == 1
    assert "Could not override 'm'" in output
    assert "comparison" not in output
    assert not list(tmp_path.rglob("comparison.html"))
