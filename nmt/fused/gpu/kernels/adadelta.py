"""An update of Adadelta as a Triton kernel: each tensor is read and written once."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

ENTRIES = 2048  # of a tensor, that a program updates


@triton.jit(do_not_specialize=["lr", "rho", "rest", "eps", "weight_decay"])
def adadelta_kernel(
    p_at, g_at, v_at, u_at, clip, size, lr, rho, rest, eps, weight_decay,
    CLIPPED: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64) * ENTRIES + tl.arange(0, ENTRIES)
    here = i < size
    p = tl.load(p_at + i, mask=here, other=0)
    g = tl.load(g_at + i, mask=here, other=0)
    if CLIPPED:
        g *= tl.load(clip)
    g += weight_decay * p
    v = rho * tl.load(v_at + i, mask=here, other=0) + rest * g * g
    u = tl.load(u_at + i, mask=here, other=0)
    step = tl.sqrt(u + eps) / tl.sqrt(v + eps) * g
    tl.store(p_at + i, p - lr * step, mask=here)
    tl.store(v_at + i, v, mask=here)
    tl.store(u_at + i, rho * u + rest * step * step, mask=here)


def adadelta(
    p: Tensor, g: Tensor, v: Tensor, u: Tensor, clip: Tensor | None = None, *,
    lr: float, rho: float, eps: float, weight_decay: float,
) -> None:  # fmt: skip
    """Moves a parameter and its averages of squared gradients and of squared steps in place.

    All are contiguous float32 tensors of one size. `clip` is a scalar that the gradient is
    multiplied with.
    """
    if p.numel():
        adadelta_kernel[(triton.cdiv(p.numel(), ENTRIES),)](
            p, g, v, u, p if clip is None else clip, p.numel(), lr, rho, 1 - rho, eps, weight_decay,
            CLIPPED=clip is not None, ENTRIES=ENTRIES, num_warps=8,
        )  # fmt: skip
