"""The fused Adadelta and its gradient clipping, compared with PyTorch in Triton's interpreter or on a GPU."""

import functools
import io

import pytest
import torch

from tests.fused.gpu.devices import DEVICES  # isort: split

from nmt.fused.gpu import adadelta
from nmt.fused.gpu.adadelta import FusedAdadelta

SIZES = [(5,), (4, 4), (7, 5), ()]  # 5, 16, 35 and 1 entries, in blocks of 16
CASES = [{"rho": 0.95, "eps": 1e-6}, {"lr": 0.3, "rho": 0.9, "eps": 1e-4, "weight_decay": 0.1}]
foreach = functools.partial(torch.optim.Adadelta, foreach=True)
fused = functools.partial(FusedAdadelta, foreach=True)
ON_DEVICES = pytest.mark.parametrize("device", DEVICES)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(adadelta, "ENTRIES", 16)


def parameters(device):
    """Returns parameters. The address of the last one is not a multiple of 16 bytes."""
    torch.manual_seed(0)
    odd = torch.randn(41, device=device)[1:]
    return [torch.nn.Parameter(x) for x in (*(torch.randn(s, device=device) for s in SIZES), odd)]


def move(weights, rule, update):
    """Makes an update and returns the gradient norm, which differs between updates by up to a factor of 100.

    One parameter has no gradient. The gradients of matrices are stored transposed.
    """
    torch.manual_seed(10 + update)
    for place, weight in enumerate(weights):
        gradient = 10.0 ** (1 - update % 3) * torch.randn(weight.shape[::-1])
        weight.grad = None if place == update % 5 else gradient.to(weight.device).t()
    if isinstance(rule, FusedAdadelta):
        norm = torch.nn.utils.get_total_norm([w.grad for w in weights if w.grad is not None])
        rule.clip_next(norm, 5.0)
    else:
        norm = torch.nn.utils.clip_grad_norm_(weights, 5.0)
    rule.step()
    return float(norm)


@ON_DEVICES
@pytest.mark.parametrize("case", CASES)
def test_fused_adadelta_equals_pytorch(device, case):
    mine, theirs = parameters(device), parameters(device)
    rules = FusedAdadelta(mine, **{"lr": 1.0, **case}), torch.optim.Adadelta(theirs, **case)
    norms = []
    for update in range(5):
        before = [w._version for w in mine]
        norms.append(move(mine, rules[0], update))
        assert move(theirs, rules[1], update) == norms[-1]
        torch.testing.assert_close(mine, theirs, rtol=2e-6, atol=2e-7)
        changed = [w._version > version for w, version in zip(mine, before, strict=True)]
        assert changed == [w.grad is not None for w in mine]
    assert min(norms) < 5 < max(norms)
    states = [rule.state_dict()["state"] for rule in rules]
    torch.testing.assert_close(*states, rtol=2e-5, atol=1e-9)


@ON_DEVICES
@pytest.mark.parametrize(("first", "other"), [(fused, foreach), (foreach, fused)])
def test_fused_adadelta_and_pytorch_share_checkpoints(device, first, other):
    """Each optimizer can load the other's checkpoint. With its own checkpoint, it continues bit for bit."""
    weights = parameters(device)
    rule = first([{"params": weights[:2]}, {"params": weights[2:], "lr": 0.1, "rho": 0.5}], lr=0.7)
    for update in range(3):
        move(weights, rule, update)
    file = io.BytesIO()
    torch.save((weights, rule.state_dict()), file)
    results = {}
    for kind in (first, other):
        file.seek(0)
        copies, state = torch.load(file, weights_only=False)
        resumed = kind([{"params": copies[:2]}, {"params": copies[2:]}], lr=1.0)
        resumed.load_state_dict(state)
        for update in range(3, 5):
            move(copies, resumed, update)
        results[kind] = copies
        assert state["param_groups"] == resumed.state_dict()["param_groups"]
    for update in range(3, 5):
        move(weights, rule, update)
    for mine, read, theirs in zip(weights, results[first], results[other], strict=True):
        assert torch.equal(mine, read)
        torch.testing.assert_close(mine, theirs, rtol=2e-6, atol=2e-7)
