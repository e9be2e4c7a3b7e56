"""The fused Adadelta against PyTorch's and its clipping, in Triton's interpreter or on a GPU."""

import functools
import io

import pytest
import torch

from nmt.config import OptimizerConfig
from nmt.fused.gpu.adadelta import FusedAdadelta
from nmt.models.optimizer import make_optimizer
from tests.helpers.triton import DEVICES  # isort: split

from nmt.fused.gpu import adadelta_kernel

# with blocks of 16: less than one, one, several and a rest, none at all
SIZES = [(5,), (4, 4), (7, 5), (0, 3), ()]
CASES = [
    {"rho": 0.95, "eps": 1e-6},
    {"lr": 0.3, "rho": 0.9, "eps": 1e-4, "weight_decay": 0.1},
]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(adadelta_kernel, "ENTRIES", 16)


def parameters(device):
    torch.manual_seed(0)
    return [torch.nn.Parameter(torch.randn(size, device=device)) for size in SIZES]


def gradients(update, device):
    """Of each parameter, one at a time without; their norms go up and down."""
    torch.manual_seed(10 + update)
    scale = 10.0 ** (1 - update % 3)
    made = [scale * torch.randn(size) for size in SIZES]
    return [None if i == update % 4 else g.to(device) for i, g in enumerate(made)]


def give(weights, grads):
    for weight, grad in zip(weights, grads, strict=True):
        weight.grad = None if grad is None else grad.clone()


def reference(weights, rule, update, largest):
    give(weights, gradients(update, weights[0].device))
    norm = torch.nn.utils.clip_grad_norm_(weights, largest)
    rule.step()
    return norm


def fused(weights, rule, update, largest):
    give(weights, gradients(update, weights[0].device))
    norm = torch.nn.utils.get_total_norm([w.grad for w in weights if w.grad is not None])
    rule.clip(norm, largest)
    rule.step()
    return norm


def assert_same(found, expected, rules):
    torch.testing.assert_close(found, expected, rtol=2e-6, atol=2e-7)
    states = [rule.state_dict()["state"] for rule in rules]
    assert states[0].keys() == states[1].keys()
    for key, state in states[1].items():
        assert list(states[0][key]) == list(state) == ["step", "square_avg", "acc_delta"]
        torch.testing.assert_close(states[0][key], state, rtol=2e-5, atol=1e-9)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", CASES)
def test_updates_are_those_of_pytorch(device, case):
    """Some gradients are longer than allowed and some are not; some are missing."""
    mine, theirs = parameters(device), parameters(device)
    rules = FusedAdadelta(mine, **{"lr": 1.0, **case}), torch.optim.Adadelta(theirs, **case)
    norms = []
    for update in range(5):
        before = [w._version for w in mine]
        norms.append(float(fused(mine, rules[0], update, 5.0)))
        assert float(reference(theirs, rules[1], update, 5.0)) == norms[-1]
        assert_same(mine, theirs, rules)
        changed = [w._version > version for w, version in zip(mine, before, strict=True)]
        assert changed == [w.grad is not None for w in mine]
    assert min(norms) < 5 < max(norms)
    assert mine[3].numel() == 0


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("clipped", [False, True])
def test_blocks_without_a_gradient_have_the_bits_of_an_update(clipped, device):
    """The same entries as whole blocks and as halves, of which none is left out."""
    torch.manual_seed(1)
    whole = torch.nn.Parameter(torch.randn(64, device=device))
    halves = [torch.nn.Parameter(part.clone()) for part in whole.detach().split(8)]
    rules = FusedAdadelta([whole], lr=0.7), FusedAdadelta(halves, lr=0.7)
    for update in range(4):
        whole.grad = torch.randn(64, device=device)
        if update:
            whole.grad[16 * update : 16 * update + 16] = 0
            whole.grad[:8] = 0  # half of a block
        for half, part in zip(halves, whole.grad.split(8), strict=True):
            half.grad = part.clone()
        for rule in rules:
            if clipped:
                rule.clip(torch.tensor(3.0, device=device), 1.0)
            rule.step()
        assert torch.equal(whole, torch.cat(halves))
        for name in ("square_avg", "acc_delta"):
            parts = torch.cat([rules[1].state[half][name] for half in halves])
            assert torch.equal(rules[0].state[whole][name], parts)


@pytest.mark.parametrize("device", DEVICES)
def test_frozen_groups_strides_and_addresses(device):
    """A frozen parameter, learning rates by group, a transposed gradient, an odd address."""
    torch.manual_seed(0)
    whole = torch.randn(41, device=device)
    both = []
    for make in (FusedAdadelta, torch.optim.Adadelta):
        odd = whole.clone()[1:]
        assert odd.data_ptr() % 16
        weights = [torch.nn.Parameter(odd), *parameters(device)[:3]]
        weights[1].requires_grad_(False)
        groups = [{"params": weights[:2]}, {"params": weights[2:], "lr": 0.1, "rho": 0.5}]
        rule = make(groups, lr=1.0)
        for update in range(3):
            torch.manual_seed(update)
            weights[0].grad = torch.randn(40, device=device)
            weights[2].grad = torch.randn(4, 4, device=device).t()
            weights[3].grad = torch.randn(7, 5, device=device)
            rule.step()
        both.append((weights, rule))
    assert_same(both[0][0], both[1][0], [rule for _, rule in both])
    torch.testing.assert_close(both[0][0][1], parameters(device)[0], rtol=0, atol=0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fused_first", [True, False])
def test_checkpoints_serve_both(device, fused_first):
    """What one has written the other resumes from, and itself to the same bits."""
    foreach = functools.partial(torch.optim.Adadelta, foreach=True)  # as `make_optimizer` does
    first, other = (FusedAdadelta, foreach) if fused_first else (foreach, FusedAdadelta)
    options = {"lr": 0.7, "rho": 0.95}
    move = {FusedAdadelta: fused, foreach: reference}
    weights = parameters(device)
    rule = first(weights, **options)
    for update in range(3):
        move[first](weights, rule, update, 5.0)
    file = io.BytesIO()
    torch.save((weights, rule.state_dict()), file)
    results = {}
    for kind in (first, other):
        file.seek(0)
        copies, state = torch.load(file, weights_only=False)
        resumed = kind(copies, lr=1.0)
        resumed.load_state_dict(state)
        assert state.keys() == resumed.state_dict().keys()
        for update in range(3, 5):
            move[kind](copies, resumed, update, 5.0)
        results[kind] = copies
        assert state["param_groups"] == resumed.state_dict()["param_groups"]
        assert state["param_groups"] == kind(copies, **options).state_dict()["param_groups"]
    for update in range(3, 5):
        move[first](weights, rule, update, 5.0)
    for mine, read, theirs in zip(weights, results[first], results[other], strict=True):
        assert torch.equal(mine, read)
        torch.testing.assert_close(mine, theirs, rtol=2e-6, atol=2e-7)


@pytest.mark.parametrize(
    ("options", "dtype", "expected"),
    [
        ({"rho": 0.9, "eps": 1e-7, "weight_decay": 0.1}, torch.float32, FusedAdadelta),
        ({"rho": 0.9, "foreach": True}, torch.float32, torch.optim.Adadelta),
        ({"maximize": True}, torch.float32, torch.optim.Adadelta),
        ({}, torch.float64, torch.optim.Adadelta),
    ],
)
def test_what_the_kernel_can_do_it_does(options, dtype, expected):
    from tests.helpers.fake_cuda import GPU, fake_cuda

    if not torch.backends.cuda.is_built():
        pytest.skip("needs a torch with CUDA, though no device")
    with fake_cuda():
        weights = [torch.nn.Parameter(torch.zeros(3, device=GPU, dtype=dtype))]
        made = make_optimizer(weights, OptimizerConfig(lr=0.5, options=options), 1)["optimizer"]
        assert type(made) is expected
        assert made.defaults | options | {"lr": 0.5} == made.defaults
