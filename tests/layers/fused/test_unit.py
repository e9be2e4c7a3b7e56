"""The gated units over a whole sentence: values, gradients."""

import torch
from torch.autograd import gradcheck

from nmt.layers.fused.unit import run_units
from tests.layers.nets import leaf


def test_gradcheck_unit():
    torch.manual_seed(0)

    real = torch.ones(2, 3, 2, 1, dtype=torch.float64)
    real[0, 2, 1], real[1, 0, 1] = 0, 0
    inputs = (leaf(2, 3, 2, 9), leaf(2, 2, 3), leaf(2, 6, 3), leaf(2, 3, 3))
    assert gradcheck(lambda *x: run_units(*x, real, torch.float64), inputs)
