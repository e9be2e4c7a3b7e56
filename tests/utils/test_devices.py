"""What `trainer.precision=auto` takes on which processor."""

import pytest
import torch

from nmt.utils import devices


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
