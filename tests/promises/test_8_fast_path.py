"""Promise 8: the fast path computes the same values as the plain equations, or falls back to them.

`tests/fused` tests other precisions, and `tests/layers` compares the plain equations with NumPy.
"""

from __future__ import annotations

import pytest
import torch

from nmt.layers import LocalAttention, LstmUnit
from tests.layers.nets import KINDS, batch, gradients, make


def computed(recurrence, *kind, **options):
    """Returns the NLL of each word of a batch, and the gradients of a weighted sum of these NLLs."""
    net = make(*kind, recurrence=recurrence, **options)
    nll = net(*batch()).nll
    (nll * torch.arange(1, len(nll) + 1).unsqueeze(1)).sum().backward()
    return nll, gradients(net)


@pytest.mark.parametrize("kind", KINDS)
def test_fused_equals_the_plain_equations(kind):
    ours, theirs = computed("fused", *kind), computed("plain", *kind)
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("options", [{"unit": LstmUnit}, {"kind": LocalAttention}])
def test_unsupported_layers_use_the_plain_equations_with_one_warning(options, caplog):
    ours = computed("fused", **options)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    torch.testing.assert_close(ours, computed("plain", **options), rtol=1e-10, atol=1e-10)
