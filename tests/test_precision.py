"""What `trainer.precision=auto` takes on which processor."""

import pytest
import torch

from nmt import devices
from nmt.config import TrainerConfig


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
    assert devices.precision(TrainerConfig(precision="auto")) == chosen
    assert devices.precision(TrainerConfig(precision="32")) == "32-true"
    assert devices.precision(TrainerConfig(precision="bf16-mixed")) == "bf16-mixed"
