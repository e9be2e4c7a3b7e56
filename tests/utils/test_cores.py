"""How many threads `trainer.threads=auto` stands for."""

from __future__ import annotations

import math
import os
import platform
import sys
from pathlib import Path

import pytest

import nmt.train
from nmt.utils import cores

SLURM = ("SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE", "SLURM_NTASKS")
SETTINGS = (*cores.SPIN, *cores.COMPILED, cores.WAIT, "OMP_NUM_THREADS", *SLURM)


@pytest.fixture
def machine(monkeypatch):
    """machine(cores, **environment): a Linux machine without other settings."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(cores, "cgroup_quota", lambda: math.inf)
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)

    def make(count: int, **environment: str) -> None:
        monkeypatch.setattr(cores, "physical_cores", lambda: count)
        for name, value in {**cores.SPIN, **environment}.items():
            monkeypatch.setenv(name, value)

    return make


@pytest.mark.parametrize(
    ("units", "count", "processes", "threads"),
    [
        (256, 2, 1, 2),
        (256, 64, 1, 4),
        (1000, 64, 1, 16),
        (1000, 6, 1, 6),
        (1000, 6, 4, 1),
        (1000, 3, 8, 1),
        (127, 64, 1, 1),
        (128, 64, 1, 2),
    ],
)
def test_threads_by_cores_and_layers(machine, units, count, processes, threads):
    machine(count)
    assert cores.choose_threads(units, processes) == threads


def test_one_thread_where_waiting_threads_would_spin_or_none_was_tried(machine, monkeypatch):
    machine(8)
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert cores.choose_threads(1000, 1) == 1
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cores.choose_threads(1000, 1) == 1
    monkeypatch.setattr(sys, "platform", "linux")
    assert cores.choose_threads(1000, 1) == 8
    monkeypatch.delenv("GOMP_SPINCOUNT")
    assert cores.choose_threads(1000, 1) == 1
    monkeypatch.setenv(cores.WAIT, "PASSIVE")
    assert cores.choose_threads(1000, 1) == 8


@pytest.mark.parametrize(
    ("environment", "processes", "threads"),
    [
        ({"OMP_NUM_THREADS": "3"}, 1, 3),
        ({"OMP_NUM_THREADS": "3,2"}, 1, 3),
        ({"OMP_NUM_THREADS": "99"}, 1, 16),
        ({"OMP_NUM_THREADS": "none"}, 2, 8),
        ({"SLURM_CPUS_PER_TASK": "6"}, 1, 6),
        ({"SLURM_CPUS_PER_TASK": "6"}, 2, 3),  # the ranks share the one task
        ({"SLURM_CPUS_PER_TASK": "6", "SLURM_NTASKS": "2"}, 2, 6),  # a task each
        ({"SLURM_CPUS_ON_NODE": "8"}, 1, 8),
        ({"SLURM_CPUS_ON_NODE": "8", "SLURM_NTASKS": "4"}, 4, 2),
    ],
)
def test_shares(machine, environment, processes, threads):
    machine(16, **environment)
    assert cores.shared_cores(processes) == threads


def test_hardware_threads_of_a_core_count_once(machine, monkeypatch, tmp_path):
    siblings = {0: "0,4\n", 1: "1,5\n", 4: "0,4\n", 5: "1,5\n", 7: ""}  # of 7 nothing is known
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(siblings), raising=False)
    monkeypatch.setattr(cores, "_read", lambda file: siblings[int(file.parts[5][3:])])
    assert cores.physical_cores() == 3
    for quota, usable in ((2.5, 2), (0.5, 1), (9.0, 3)):
        monkeypatch.setattr(cores, "cgroup_quota", lambda quota=quota: quota)
        assert cores.physical_cores() == usable


V2 = {"cpu.max": "max 100000", "a/cpu.max": "350000 100000\n", "a/b/cpu.max": "500000 100000"}
V1 = {
    "cpu,cpuacct/cpu.cfs_quota_us": "-1",
    "cpu,cpuacct/cpu.cfs_period_us": "100000",
    "cpu,cpuacct/a/cpu.cfs_quota_us": "150000",
    "cpu,cpuacct/a/cpu.cfs_period_us": "100000",
}


def cgroup(folder: Path, membership: str, files: dict[str, str]) -> None:
    """Writes what a process in control groups finds: its membership, and their file system."""
    (folder / "cgroup").write_text(membership)
    for name, text in files.items():
        (folder / "fs" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "fs" / name).write_text(text)


@pytest.mark.parametrize(
    ("membership", "files", "quota"),
    [
        ("0::/a/b", V2, 3.5),
        ("0::/", V2, math.inf),
        ("0::/host/c", {"cpu.max": "200000 100000"}, 2.0),  # a container shows its own at the top
        ("8:pids:/\n4:cpu,cpuacct:/a\n", V1, 1.5),
        ("8:pids:/a\n4:cpu,cpuacct:/\n", V1, math.inf),
        ("1:cpu:/x", {"cpu/cpu.cfs_quota_us": "100000", "cpu/cpu.cfs_period_us": "50000"}, 2.0),
        ("", {}, math.inf),
    ],
)
def test_quotas_of_cgroups(tmp_path, membership, files, quota):
    cgroup(tmp_path, membership, files)
    assert cores.cgroup_quota(tmp_path / "fs", tmp_path / "cgroup") == quota
    assert cores.cgroup_quota(tmp_path / "none", Path("no-such-file")) == math.inf


@pytest.mark.parametrize(
    ("membership", "files", "bytes_"),
    [
        ("0::/a/b", {"a/memory.max": "4096\n", "a/b/memory.max": "max\n"}, 4096),
        ("0::/job", {"memory.max": "8192", "job/memory.max": "9000"}, 8192),
        ("3:memory:/x\n2:cpu:/y", {"memory/x/memory.limit_in_bytes": "77\n"}, 77),
        ("2:cpu:/x", {"memory/x/memory.limit_in_bytes": "77\n"}, math.inf),
        ("", {}, math.inf),
    ],
)
def test_memory_of_cgroups(tmp_path, membership, files, bytes_):
    cgroup(tmp_path, membership, files)
    assert cores.cgroup_memory(tmp_path / "fs", tmp_path / "cgroup") == bytes_


def test_waiting_threads_sleep_unless_the_user_has_said_otherwise(monkeypatch):
    environ: dict[str, str] = {}
    cores.set_up_libraries(environ)
    assert environ == {}  # torch is imported already
    monkeypatch.delitem(sys.modules, "torch")
    environ = {"KMP_BLOCKTIME": "7"}
    cores.set_up_libraries(environ)
    assert environ == cores.COMPILED | {"GOMP_SPINCOUNT": "10000", "KMP_BLOCKTIME": "7"}
    environ = {"OMP_WAIT_POLICY": "ACTIVE", **dict.fromkeys(cores.COMPILED, "9")}
    given = dict(environ)
    cores.set_up_libraries(environ)
    assert environ == given


def test_a_command_bounds_spinning_before_torch_is_imported(monkeypatch, capsys):
    for name in SETTINGS:
        monkeypatch.setenv(name, "")  # whatever is set is taken back at the end
        monkeypatch.delenv(name)
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setattr(sys, "argv", ["nmt.train", "--version"])
    with pytest.raises(SystemExit):
        nmt.train.main()
    assert "torch" not in sys.modules
    assert {name: os.environ[name] for name in cores.SPIN} == cores.SPIN
