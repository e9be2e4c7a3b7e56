"""The choice of device and precision on simulated machines."""

import subprocess
import sys

import pytest
import torch

from nmt.training.trainer import make_strategy
from nmt.training.training_log import reason_for_cpu
from nmt.utils import devices
from nmt.utils.devices import set_threads
from nmt.utils.errors import InputError
from tests.helpers import ROOT

CARD = "NVIDIA Tesla V100"


def machine(monkeypatch, *, cuda=False, mps=False, fault=None):
    """Simulates a machine with these devices. If `fault` is given, `torch.ones` raises it."""
    ones = torch.ones

    def work(*shape, device=None):
        if fault:
            raise fault
        return ones(*shape)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: int(cuda))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index=None: CARD)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: True)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    monkeypatch.setattr(torch, "ones", work)
    devices.why_no_gpu.cache_clear()


@pytest.fixture(autouse=True)
def forget():
    yield
    devices.why_no_gpu.cache_clear()


NO_CODE = RuntimeError("CUDA error: no kernel image is available\nCompile with …")
MACHINES = [
    ({"mps": True}, "cpu", "Apple's GPUs are not supported"),
    ({}, "cpu", "no GPU found"),  # no driver, or CUDA_VISIBLE_DEVICES is empty
    ({"cuda": True, "fault": NO_CODE}, "cpu", f"{CARD} cannot be used (RuntimeError: CUDA error:"),
    ({"cuda": True}, "cuda", ""),
]


@pytest.mark.parametrize(("have", "accelerator", "reason"), MACHINES)
def test_device_and_precision_choices(have, accelerator, reason, monkeypatch):
    machine(monkeypatch, **have)
    assert devices.resolve_accelerator("auto") == accelerator
    assert devices.resolve_accelerator("cpu") == "cpu"
    assert reason.partition(" (")[0] in devices.why_no_gpu()
    if accelerator == "cuda":
        assert devices.resolve_precision("auto", "auto") == "bf16-mixed"
        assert devices.resolve_accelerator("gpu") == "cuda"
    else:
        with pytest.raises(InputError, match=r"^trainer\.accelerator=gpu: .*\S; type") as refused:
            devices.resolve_accelerator("gpu")
        assert "\n" not in str(refused.value)
        assert reason_for_cpu("auto", torch.device("cpu")) == f", {devices.why_no_gpu()}"


def test_cpu_choice_does_not_initialise_cuda(monkeypatch):
    """A CUDA context would take time, and memory that another process may need."""
    machine(monkeypatch, cuda=True, fault=AssertionError("the GPU was used"))
    assert devices.resolve_accelerator("cpu") == "cpu"
    for given, meant in (("32-true", "32-true"), ("32", "32-true"), ("bf16", "bf16-mixed")):
        assert devices.resolve_precision(given, "cpu") == meant
    assert reason_for_cpu("cpu", torch.device("cpu")) == ", the GPU is not used"
    assert reason_for_cpu("gpu", torch.device("cuda", 0)) == ""


@pytest.mark.parametrize("precision", ["16-mixed", "16-true", "16", 16])
def test_refuses_float16(precision):
    with pytest.raises(InputError, match=r"^trainer\.precision=16.*: type bf16-mixed or 32-true"):
        devices.resolve_precision(precision, "cpu")


def test_refuses_apple_gpus():
    with pytest.raises(InputError, match=r"^trainer\.accelerator=mps: .* type cpu, or auto"):
        devices.resolve_accelerator("mps")


def test_windows_is_refused_in_one_line():
    code = "import sys; sys.platform = 'win32'; import nmt"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert "Linux and macOS" in ended.stderr


def test_strategy_choices():
    plain, short = make_strategy("ddp"), make_strategy("ddp_bf16")
    assert plain._ddp_kwargs == short._ddp_kwargs == {"gradient_as_bucket_view": True}
    assert plain._ddp_comm_hook is None
    assert short._ddp_comm_hook.__name__ == "bf16_compress_hook"
    assert make_strategy("auto") == "auto"


@pytest.mark.parametrize(
    ("units", "threads"), [(127, 1), (128, 2), (256, 4), (512, 8), (1000, 16), (4000, 16)]
)
def test_threads_are_at_most_the_cores(units, threads, monkeypatch):
    monkeypatch.setenv("GOMP_SPINCOUNT", "300")
    monkeypatch.setattr(devices, "shared_cores", lambda processes: 60 // processes)
    before = torch.get_num_threads()
    try:
        assert set_threads("auto", "cpu", units) == threads == torch.get_num_threads()
        assert set_threads("auto", "cpu", units, processes=20) == min(threads, 3)
    finally:
        torch.set_num_threads(before)
