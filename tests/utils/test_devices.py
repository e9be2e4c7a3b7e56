"""What `trainer.precision=auto` takes on which processor, and devices that are not there."""

import pytest
import torch

from nmt.utils import devices
from nmt.utils.errors import InputError

LAUNCHED = ("MASTER_PORT", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "SLURM_NTASKS")


@pytest.mark.parametrize(
    ("amx", "avx512", "chosen"),
    [
        (True, True, "bf16-mixed"),
        (True, False, "bf16-mixed"),
        (False, True, "bf16-mixed"),
        (False, False, "32-true"),
        (None, None, "32-true"),  # a torch that cannot tell
    ],
)
def test_auto_takes_bf16_where_the_processor_multiplies_it(monkeypatch, amx, avx512, chosen):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for name, found in (("_is_amx_tile_supported", amx), ("_is_avx512_bf16_supported", avx512)):
        if found is None:
            monkeypatch.delattr(torch.cpu, name, raising=False)
        else:
            monkeypatch.setattr(torch.cpu, name, lambda found=found: found, raising=False)
    assert devices.resolve_precision("auto", "auto") == chosen
    assert devices.resolve_precision("32", "auto") == "32-true"
    assert devices.resolve_precision("bf16-mixed", "auto") == "bf16-mixed"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("cpu", 1024, 1), "trainer.devices=1024: at most 8, for this process may use 2 cores"),
        (("gpu", 8, 1), "trainer.devices=8: at most 1, for this process may use 1 GPU"),
        (("cpu", 1, 2), "trainer.num_nodes=2: nothing starts the ranks of the other machines"),
    ],
)
def test_devices_and_machines_that_are_not_there_are_refused(monkeypatch, asked, said):
    for name in LAUNCHED:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(devices, "physical_cores", lambda: 2)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: asked[0] == "gpu")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(InputError) as refused:
        devices.check_devices(*asked)
    assert str(refused.value).startswith(said)
    devices.check_devices("cpu", 8, 1)
    for name, value in zip(LAUNCHED[1:3], ("a", "1"), strict=True):
        monkeypatch.setenv(name, value)
        monkeypatch.setenv("SLURM_NTASKS", "16")
        devices.check_devices(*asked)
        monkeypatch.delenv(name)
