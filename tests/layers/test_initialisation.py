"""Initial weights: orthogonal matrices, means and standard deviations."""

import pytest
import torch

from nmt.config.schema import INITS
from nmt.layers import initialise
from nmt.layers.initialisation import EMBEDDINGS
from tests.layers.nets import Net

SIZES = {"source": 301, "target": 302, "embedding": 40, "hidden": 50, "alignment": 60, "maxout": 30}


def drawn(init, scoring="additive"):
    torch.manual_seed(0)
    net = Net(scoring, **SIZES)
    initialise(net, init)
    return dict(net.named_parameters())


def recurrent(name):
    return name.endswith((".U", ".U_gates"))


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("scoring", ["additive", "dot", "none"])
def test_recurrent_matrices_are_orthogonal(init, scoring):
    assert init in EMBEDDINGS
    found = {name: p for name, p in drawn(init, scoring).items() if recurrent(name)}
    assert len(found) == (4 if scoring == "none" else 6)
    for parameter in found.values():
        for block in parameter.split(50):
            torch.testing.assert_close(block @ block.t(), torch.eye(50), atol=1e-5, rtol=0)


def test_init_paper_distributions():
    for name, parameter in drawn("paper").items():
        if "bias" in name or name.endswith("scoring.v"):
            assert not parameter.any(), name
        elif name.endswith(("W_a", "U_a")):
            assert parameter.std().item() == pytest.approx(0.001, rel=0.05), name
        elif not recurrent(name):
            assert parameter.std().item() == pytest.approx(0.01, rel=0.05), name
            assert abs(parameter.mean().item()) < 0.001, name


@pytest.mark.parametrize(("init", "deviation"), [("glorot", 0.3), ("wide", 1.0)])
def test_init_glorot_distributions(init, deviation):
    parameters = drawn(init)
    matrices = ("decoder.context.W_a", "decoder.unit.C", "encoder.units.1.W", "output.W_o")
    for name in (*matrices, "decoder.context.U_a", "decoder.readout.V_o"):
        for block in parameters[name].chunk(3 if name.endswith((".C", ".W")) else 1):
            expected = (2 / sum(block.shape)) ** 0.5
            assert block.std().item() == pytest.approx(expected, rel=0.08), name
    v_a = parameters["decoder.context.scoring.v"]
    assert v_a.abs().max() <= (6 / 61) ** 0.5
    assert v_a.std().item() == pytest.approx((2 / 61) ** 0.5, rel=0.2)
    for side in ("encoder", "decoder"):
        table = parameters[f"{side}.embedding.weight"]
        assert table.std().item() == pytest.approx(deviation, rel=0.05)
