"""The launcher's parts, without processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from hydra_plugins.nmt_process_launcher._jobs import Job, environment, find_earlier, signature
from hydra_plugins.nmt_process_launcher._pool import Pool, visible_gpus
from nmt.utils.commands import quoted


@given(st.text(st.characters(blacklist_categories=["Cs", "Cc"])))
def test_a_quoted_value_is_read_back(text):
    (override,) = OverridesParser.create().parse_overrides([f"key={quoted(text)}"])
    assert override.value() == text


def test_earlier_jobs_are_known_by_their_parsed_overrides(tmp_path: Path):
    texts = ["- a=1e-3\n- b=[1,'x']\n", "- a=2\n- resume=auto\n", "- 'a="]
    for name, overrides in zip("012", texts, strict=True):
        (tmp_path / name / ".hydra").mkdir(parents=True)
        (tmp_path / name / ".hydra/overrides.yaml").write_text(overrides)
    earlier = find_earlier(tmp_path)
    assert earlier[signature(["b=[1, x]", "a=0.001"])] == tmp_path / "0"
    assert earlier[signature(["a=2"])] == tmp_path / "1"
    assert len(earlier) == 2
    assert signature(["a=1"]) != signature(["a='1'"])


@pytest.mark.parametrize(
    ("listed", "names"), [("0,2", ["0", "2"]), ("", []), ("MIG-a, GPU-b", ["MIG-a", "GPU-b"])]
)
def test_visible_gpus_are_those_the_variable_names(monkeypatch, listed, names):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
    assert visible_gpus() == names


def job(trainer=None, **fields) -> Job:
    return Job(4, Path("s/4"), ["a=1"], OmegaConf.create({"trainer": trainer or {}}), **fields)


def test_a_gpu_belongs_to_one_job():
    pool = Pool(3, ["0", "1", "2"], 1.0, lambda job: [], ".")
    jobs = [job({"devices": devices}) for devices in (2, 2, 1)] + [job({"accelerator": "cpu"})]
    assert [pool._may_start(each) for each in jobs] == [True, False, True, True]
    assert [each.given for each in jobs] == [["0", "1"], [], ["2"], []]


def test_the_environment_of_a_job(monkeypatch):
    for name in ("RANK", "TORCHELASTIC_RUN_ID", "SLURM_NTASKS", "SLURM_JOB_ID"):
        monkeypatch.setenv(name, "4")
    monkeypatch.setenv("OMP_NUM_THREADS", "")
    made = environment(job(given=["GPU-b", "3"]), threads=2)
    assert (made["CUDA_VISIBLE_DEVICES"], made["OMP_NUM_THREADS"]) == ("GPU-b,3", "2")
    assert made["SLURM_JOB_ID"] == "4"
    assert not {"RANK", "TORCHELASTIC_RUN_ID", "SLURM_NTASKS"} & set(made)
    monkeypatch.setenv("OMP_NUM_THREADS", "6")
    assert environment(job(), threads=2)["OMP_NUM_THREADS"] == "6"


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (1, "failed (exit code 1)"),
        (2, "refused (exit code 2)"),
        (-9, "stopped by SIGKILL"),
        (143, "stopped by SIGTERM"),
    ],
)
def test_the_outcome_says_what_the_exit_status_means(code, outcome):
    assert job(state="failed", code=code).outcome == outcome
