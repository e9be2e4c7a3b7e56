"""The Triton kernels against the PyTorch operations that define a step, at real sizes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.gpu.findings import Findings
from benchmarks.gpu.setting import Setting
from benchmarks.work import SCORING
from nmt.fused.cross_entropy import chunked_nll
from nmt.fused.gpu import backend
from nmt.fused.gpu.adadelta import FusedAdadelta
from nmt.fused.steps import Product

LIMITS = {torch.float32: 1e-4, torch.bfloat16: 2e-2}  # of the largest entry
STEPS = 3
WITH_KERNELS = ("additive", "dot", "scaled_dot")  # general is dot; cosine has none


def kernels(setting: Setting, findings: Findings) -> None:
    """Attention for each scoring, gates and loss, both ways, the gradient of word vectors, a search's
    scores, and an update of Adadelta; microseconds.
    """
    if not backend.has_triton():
        if setting.rehearse:
            findings.leave_out("kernels", "Triton is not installed")
        else:
            findings.check("Triton is installed, and ready to launch", False, equals=True)
        return
    lengths = (5, 18) if setting.rehearse else (8, 16, 32, 52, 200)
    optimizer(setting, findings)
    for dtype in LIMITS:
        name = str(dtype).removeprefix("torch.")
        compare(f"gates {name}", gates, (setting, dtype), setting, dtype, findings)
        compare(f"loss {name}", loss, (setting, dtype), setting, dtype, findings)
        compare(f"word vectors {name}", word_vectors, (setting, dtype), setting, dtype, findings)
        for scoring in WITH_KERNELS:
            for length in lengths if scoring != "scaled_dot" else lengths[:1]:
                label = f"{scoring} {name} S={length}"
                compare(
                    label, attention, (setting, dtype, scoring, length), setting, dtype, findings
                )
        given = (setting, dtype, lengths[-1])
        compare(f"search {name}", queries_at_once, given, setting, dtype, findings)


def compare(
    label: str,
    work: Any,
    given: tuple[Any, ...],
    setting: Setting,
    dtype: torch.dtype,
    findings: Findings,
) -> None:
    """`work(module, *given)` with kernels and with operations: the largest difference, and times."""
    from nmt.fused import steps
    from nmt.fused.gpu import kernels

    expected, found = work(steps, *given), work(kernels, *given)
    apart = {name: distance(found[name], expected[name]) for name in expected}
    worst = max(apart, key=apart.__getitem__)
    findings.check(f"{label}: {worst}", apart[worst], at_most=LIMITS[dtype])
    if not setting.rehearse:
        times = {
            which: setting.seconds(lambda module=module: work(module, *given), 3) * 1e6  # type: ignore[misc]
            for which, module in (("steps", steps), ("kernels", kernels))
        }
        findings.note(**{f"{label} us, its inputs drawn": times})


def distance(found: Tensor, expected: Tensor) -> float:
    """The largest difference as a share of the largest entry, 1 at least; infinite if not a number."""
    apart = (found.double() - expected.double()).abs().max().item()
    scale = max(1.0, expected.abs().max().item())
    return apart / scale if apart == apart else float("inf")


def drawn(setting: Setting, *shape: int, dtype: torch.dtype) -> Tensor:
    return torch.randn(*shape, device=setting.device).to(dtype)


def gates(module: Any, setting: Setting, dtype: torch.dtype) -> dict[str, Tensor]:
    """One step of both directions of an encoder and its derivative, the second sentence padded."""
    torch.manual_seed(1)
    lead, hidden = (2, setting.rows), setting.size.hidden
    projected, before = (drawn(setting, *lead, n * hidden, dtype=dtype) for n in (3, 1))
    later, upstream = (drawn(setting, *lead, n * hidden, dtype=dtype) for n in (2, 1))
    U_gates, U = (drawn(setting, 2, n * hidden, hidden, dtype=dtype) * hidden**-0.5 for n in (2, 1))
    state, carried = (drawn(setting, *lead, hidden, dtype=torch.float32) for _ in range(2))
    real = torch.ones(*lead, 1, device=setting.device)
    real[:, 1] = 0
    found = {
        "gates": torch.zeros(*lead, 2 * hidden, device=setting.device),
        "candidate": torch.zeros_like(state),
        "after": torch.zeros_like(state),
        "reset": torch.zeros_like(upstream),
        "grad": torch.zeros_like(projected),
        "grad_state": carried.clone(),
    }
    gates, candidate, grad = found["gates"], found["candidate"], found["grad"]
    module.open_gates(
        projected[..., : 2 * hidden], [Product(before, U_gates.transpose(1, 2))], state, gates,
        found["reset"], real,
    )  # fmt: skip
    module.next_state(
        projected[..., 2 * hidden :], [Product(found["reset"], U.transpose(1, 2))], state, gates,
        candidate, found["after"], None,
    )  # fmt: skip
    module.candidate_backward(
        found["grad_state"], Product(later, U_gates), upstream, gates, candidate, state, grad
    )
    from_reset = Product(grad[..., 2 * hidden :], U)
    module.reset_backward(found["grad_state"], from_reset, gates, state, grad)
    return found


def attention(
    module: Any, setting: Setting, dtype: torch.dtype, scoring: str, source: int
) -> dict[str, Tensor]:
    """A few steps over a batch with padding, their derivative, and the gradients of the keys."""
    torch.manual_seed(2)
    rows, alignment, size = setting.rows, setting.size.alignment, 2 * setting.size.hidden
    lengths = torch.randint(1, source + 1, (rows, 1), device=setting.device)
    lengths[0] = source
    mask = torch.arange(source, device=setting.device) < lengths
    score = SCORING[scoring](alignment, alignment).to(setting.device)
    for parameter in score.parameters():
        torch.nn.init.normal_(parameter, std=alignment**-0.5)
    score.requires_grad_(False)  # derivatives are these functions' own
    keys = drawn(setting, rows, source, alignment, dtype=dtype)
    if scoring != "additive":
        keys *= alignment**-0.5  # or one weight is 1 and the others 0
    annotations = drawn(setting, rows, source, size, dtype=dtype)
    queries = drawn(setting, STEPS, rows, alignment, dtype=dtype)
    grad_contexts = drawn(setting, STEPS, rows, size, dtype=dtype)
    steps = module.attention_steps(score, keys, annotations, mask)
    weights = torch.zeros(STEPS, rows, source, device=setting.device)
    found = {
        "weights": weights,
        "log_normaliser": torch.zeros(STEPS, rows, device=setting.device),
        "contexts": torch.zeros_like(grad_contexts),
        "grad_scores": torch.zeros_like(weights),
        "grad_queries": torch.zeros_like(queries),
    }
    for i in range(STEPS):
        steps.attend(queries[i], weights[i], found["log_normaliser"][i], found["contexts"][i])
    for i in reversed(range(STEPS)):
        steps.backward(
            grad_contexts[i],
            queries[i],
            weights[i],
            found["grad_scores"][i],
            found["grad_queries"][i],
        )
    sums = steps.gradients(found["grad_scores"], queries)
    return found | dict(zip(("grad_keys", "grad_v"), sums, strict=False))


def loss(module: Any, setting: Setting, dtype: torch.dtype) -> dict[str, Tensor]:
    """-log p of words after readouts, some of which weigh nothing, and the gradients of its sum."""
    torch.manual_seed(3)
    size, words = setting.size, setting.rows * setting.lengths[0]
    rows = drawn(setting, words, size.maxout, dtype=dtype)
    W_o = drawn(setting, size.vocabulary, size.maxout, dtype=torch.float32) * size.maxout**-0.5
    bias = drawn(setting, size.vocabulary, dtype=torch.float32)
    targets = torch.randint(size.vocabulary, (words,), device=setting.device)
    weight = (torch.rand(words, device=setting.device) < 0.9).float()
    chosen = backend.steps_for
    backend.steps_for = lambda *tensors: module
    try:
        nll, gradients = chunked_nll(
            rows, W_o, bias, targets, dtype, with_gradients=True, weight=weight
        )
    finally:
        backend.steps_for = chosen
    assert gradients is not None
    return {"nll": nll, **gradients._asdict()}


def word_vectors(module: Any, setting: Setting, dtype: torch.dtype) -> dict[str, Tensor]:
    """The gradient of a table by the words of a batch, some of them often, added up twice."""
    torch.manual_seed(6)
    size, words = setting.size, setting.rows * setting.lengths[0]
    grad = drawn(setting, words, size.embedding, dtype=dtype)
    common = torch.randint(8, (words,), device=setting.device)
    found = torch.randint(size.vocabulary, (words,), device=setting.device)
    found[::2] = common[::2]
    if not hasattr(module, "lookup_backward"):  # the definition
        total = torch.zeros(size.vocabulary, size.embedding, device=setting.device)
        return {"table": total.index_add_(0, found, grad.float()), "again": torch.zeros(())}
    once, again = (module.lookup_backward(grad, found, size.vocabulary) for _ in range(2))
    return {"table": once, "again": torch.zeros(()) if torch.equal(once, again) else torch.ones(())}


def optimizer(setting: Setting, findings: Findings) -> None:
    """Adadelta with clipping in one kernel against PyTorch's own, at the sizes of the whole model.

    Noted are microseconds of norm and update, and the bandwidth that the fused way reaches if it
    passes over the parameters' size 8 times.
    """
    options: dict[str, Any] = {"lr": 1.0, "rho": 0.95, "eps": 1e-6}
    weights: dict[str, list[nn.Parameter]] = {}
    updates: dict[str, Callable[[], None]] = {}
    for which in ("torch", "fused"):
        weights[which] = parameters = list(setting.net().parameters())
        torch.manual_seed(5)
        for parameter in parameters:
            parameter.grad = torch.randn_like(parameter)
        if which == "fused":
            updates[which] = functools.partial(
                fused_update, parameters, FusedAdadelta(parameters, **options)
            )
        else:
            rule = torch.optim.Adadelta(parameters, foreach=True, **options)
            updates[which] = functools.partial(foreach_update, parameters, rule)
    for _ in range(STEPS):
        for update in updates.values():
            update()
    apart = max(
        distance(found.detach(), expected.detach())
        for found, expected in zip(weights["fused"], weights["torch"], strict=True)
    )
    findings.check("adadelta: parameters", apart, at_most=1e-5)
    if not setting.rehearse:
        seconds = {which: setting.seconds(update) for which, update in updates.items()}
        size = sum(parameter.numel() * 4 for parameter in weights["fused"])
        findings.note(
            **{"adadelta us": {which: took * 1e6 for which, took in seconds.items()}},
            adadelta_gb_a_second=8 * size / seconds["fused"] / 1e9,
        )


def fused_update(parameters: list[nn.Parameter], rule: FusedAdadelta) -> None:
    rule.clip(nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None]), 1.0)
    rule.step()


def foreach_update(parameters: list[nn.Parameter], rule: torch.optim.Adadelta) -> None:
    nn.utils.clip_grad_norm_(parameters, 1.0)
    rule.step()


def queries_at_once(
    module: Any, setting: Setting, dtype: torch.dtype, source: int
) -> dict[str, Tensor]:
    """The additive scores of all hypotheses of a beam of 12, which share their keys."""
    torch.manual_seed(4)
    alignment = setting.size.alignment
    query = drawn(setting, 3, 12, alignment, dtype=dtype)
    keys = drawn(setting, 3, source, alignment, dtype=dtype)
    v = drawn(setting, alignment, dtype=torch.float32) * alignment**-0.5
    return {"scores": module.additive_scores(query, keys, v)}
