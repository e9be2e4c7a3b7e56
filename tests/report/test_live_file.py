"""`live.npz`: what is written is read back, and what a stranger wrote is refused in a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nmt.inference.live_export import live_model
from nmt.inference.load import intervene
from nmt.layers import Attention, GatedUnit, LocalAttention, LstmUnit
from nmt.report.live_file import LiveModel, read_live, write_live
from nmt.utils.errors import InputError
from tests.helpers.live import drawn_model, exported


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("RNNsearch", {"dictionary": {"a": "un"}}),
        ("RNNsearch", {"scoring": "Dot"}),
        ("RNNencdec", {"bpe": True}),
    ],
)
def test_a_model_comes_back_as_it_was(model: str, options: dict[str, Any], tmp_path: Path) -> None:
    trained = drawn_model(model, **options)
    written = exported(trained)
    write_live(tmp_path, written)
    found = read_live(tmp_path)
    assert found is not None
    assert json.dumps(found.about) == json.dumps(written.about)
    assert list(found.weights) == [name for name, _ in found.about["tensors"]]
    state = trained.network.state_dict()
    assert set(found.weights) == set(state)
    for name, weight in found.weights.items():
        assert np.array_equal(weight, state[name].half().numpy())
    assert found.parameters == sum(each.numel() for each in state.values())


def test_no_file_is_no_model(tmp_path: Path) -> None:
    assert read_live(tmp_path) is None


def test_what_a_page_cannot_run_is_named() -> None:
    trained = drawn_model()

    class Louder(torch.nn.Module):
        pass

    trained.network.decoder.context.scoring = Louder()
    assert live_model(trained) == "the page does not know Louder in RNNsearch"
    trained = drawn_model()
    with torch.no_grad():
        trained.network.output.bias[3] = 70_000
    assert live_model(trained) == "a weight is too large for 16 bits"
    trained = drawn_model()
    trained.network.decoder.unit.__class__ = type("Other", (torch.nn.Module,), {})
    assert live_model(trained) == "the page does not know Other in RNNsearch"
    trained.network.__class__ = type("Mine", (type(trained.network),), {})
    assert live_model(trained) == "the page does not know Mine of RNNsearch"


@pytest.mark.parametrize(
    "change",
    [
        lambda whole: whole[:6],
        lambda whole: b"no" + whole[2:],
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole.replace(b"float16", b"float32").replace(b"<f2", b"|O "),
    ],
)
def test_a_damaged_file_is_refused(change: Any, tmp_path: Path) -> None:
    path = write_live(tmp_path, exported(drawn_model()))
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(InputError, match=r"live\.npz: not a model for pages"):
        read_live(tmp_path)


def test_weights_that_are_not_described_are_refused(tmp_path: Path) -> None:
    written = exported(drawn_model())
    weights = {name: np.full_like(array, np.inf) for name, array in written.weights.items()}
    for change in (weights, {name: array[:1] for name, array in written.weights.items()}):
        write_live(tmp_path, LiveModel(written.about, change))
        with pytest.raises(InputError, match="not those of its description"):
            read_live(tmp_path)


def test_options_that_a_page_does_not_compute() -> None:
    """Nothing is exported that would be computed as something else."""
    trained = drawn_model()
    trained.network.reverse_source = True
    assert live_model(trained) == "the page does not read a source backwards"
    trained = drawn_model()
    intervene(trained.network, "uniform", "a.ckpt")
    assert live_model(trained) == "the page takes the attention as it was trained"
    for unit, attention, named in (
        (LstmUnit, Attention, "LstmUnit"),
        (GatedUnit, LocalAttention, "LocalAttention"),
    ):
        trained = drawn_model()
        decoder = trained.network.decoder
        scoring = decoder.context.scoring
        decoder.context = attention(11, 22, 9, scoring)
        decoder.unit = unit(7, 11, 22)
        assert live_model(trained) == f"the page does not know {named} in RNNsearch"
    trained = drawn_model(scoring="Cosine")
    assert live_model(trained) == "the page does not know Cosine in RNNsearch"
