"""The launcher's parts, without processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.utils import JobReturn, JobStatus
from hypothesis import given
from hypothesis import strategies as st

from hydra_plugins.nmt_process_launcher import _devices
from hydra_plugins.nmt_process_launcher._devices import Gpus, visible_gpus
from hydra_plugins.nmt_process_launcher._earlier import find_earlier, signature
from hydra_plugins.nmt_process_launcher._job import Job, State, environment, without
from hydra_plugins.nmt_process_launcher.launcher import UnfinishedJob
from nmt.utils.commands import quoted


@given(st.text(st.characters(blacklist_categories=["Cs", "Cc"])))
def test_a_quoted_value_is_read_back(text):
    (override,) = OverridesParser.create().parse_overrides([f"key={quoted(text)}"])
    assert override.value() == text


def test_overrides_are_dropped_by_key():
    lines = ["hydra.mode=MULTIRUN", "++hydra.run.dir='a,b'", "hydra.job.name=x", "~hydra.job.id"]
    assert without(lines, {"hydra.mode", "hydra.run.dir", "hydra.job.id"}) == ["hydra.job.name=x"]


def test_a_signature_is_the_parsed_overrides_in_any_order():
    assert signature(["a=1e-3", "b=[1,'x']", "resume=auto"]) == signature(["b=[1, x]", "a=0.001"])
    assert signature(["a=1"]) != signature(["a='1'"])
    assert signature(["a=1"]) != signature(["+a=1"])


def test_earlier_jobs_are_found_and_torn_files_passed_over(tmp_path: Path):
    for name, overrides in [("0", "- a=1\n"), ("1", "- a=2\n- resume=auto\n"), ("2", "- 'a=")]:
        (tmp_path / name / ".hydra").mkdir(parents=True)
        (tmp_path / name / ".hydra" / "overrides.yaml").write_text(overrides)
    (tmp_path / "1" / "results.json").touch()
    found = find_earlier(tmp_path, ".hydra", "results.json")
    assert [(job.folder.name, job.finished) for job in found] == [("0", False), ("1", True)]
    assert found[1].signature == signature(["a=2"])
    assert find_earlier(tmp_path, None, "results.json") == []


@pytest.mark.parametrize(
    ("listed", "names"),
    [("0,2", ["0", "2"]), ("", []), ("3,-1,4", ["3"]), ("MIG-a, GPU-b", ["MIG-a", "GPU-b"])],
)
def test_visible_gpus_are_those_the_variable_names(listed, names):
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": listed}) == names


def test_the_gpus_are_counted_by_torch_without_importing_it_here(monkeypatch, tmp_path):
    (tmp_path / "torch.py").write_text("class cuda: device_count = staticmethod(lambda: 3)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(_devices, "DEVICE_FILES", ("null",))
    assert visible_gpus({}) == ["0", "1", "2"]
    monkeypatch.setattr(_devices, "DEVICE_FILES", ("no-such-device",))
    monkeypatch.setattr(_devices.sys, "platform", "linux")
    assert visible_gpus({}) == []


def test_gpus_are_exclusive_while_there_are_enough():
    gpus = Gpus(["0", "1", "2"], n_jobs=3)
    assert gpus.take(2) == ["0", "1"]
    assert gpus.take(2) is None
    assert gpus.take(1) == ["2"]
    gpus.give_back(["0", "1"])
    assert gpus.take(9) is None
    gpus.give_back(["2"])
    assert gpus.take(9) == ["0", "1", "2"]


def test_fewer_gpus_than_jobs_are_shared_evenly():
    gpus = Gpus(["7", "8"], n_jobs=3)
    assert [gpus.take(1) for _ in range(5)] == [["7"], ["8"], ["7"], ["8"], None]
    assert Gpus([], n_jobs=4).take(1) == []


def job(**fields) -> Job:
    return Job(4, Path("s/4"), ["a=1"], None, **fields)


def test_the_environment_of_a_job():
    environ = {"RANK": "1", "TORCHELASTIC_RUN_ID": "x", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "9"}
    made = environment(job(given=["GPU-b", "3"]), environ, Path("r.json"), threads=2)
    assert made["CUDA_VISIBLE_DEVICES"] == "GPU-b,3"
    assert made["OMP_NUM_THREADS"] == "2"
    assert made["NMT_RETURN"] == str(Path("r.json").absolute())
    assert made["SLURM_JOB_ID"] == "9"
    assert not {"RANK", "TORCHELASTIC_RUN_ID", "SLURM_NTASKS"} & set(made)
    mine = environment(job(), {"OMP_NUM_THREADS": "6"}, Path("r.json"), threads=2)
    assert mine["OMP_NUM_THREADS"] == "6"
    assert "CUDA_VISIBLE_DEVICES" not in mine


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (1, "failed (exit code 1)"),
        (2, "refused (exit code 2)"),
        (-9, "stopped by SIGKILL"),
        (143, "stopped by SIGTERM"),
        (255, "failed (exit code 255)"),
    ],
)
def test_the_outcome_says_what_the_exit_status_means(code, outcome):
    assert job(state=State.FAILED, code=code).outcome == outcome


def test_an_unfinished_job_has_no_value_and_does_not_raise():
    ret = UnfinishedJob(status=JobStatus.FAILED)
    assert isinstance(ret, JobReturn)
    assert ret.return_value is None
