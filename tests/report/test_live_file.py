"""`live.bin`: what is written is read back, and what a stranger wrote is refused in a line."""

from __future__ import annotations

import copy
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nmt.config import EvaluationConfig
from nmt.inference.live_export import live_model
from nmt.inference.trained import intervene
from nmt.layers import Attention, GatedUnit, LocalAttention, LstmUnit
from nmt.report.live_file import FILE, LiveModel, read_live, shapes, write_live
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
    assert list(found.weights) == list(shapes(found.about))
    state = trained.model.state_dict()
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

    trained.model.decoder.context.scoring = Louder()
    assert live_model(trained) == "the page does not know the scoring function Louder"
    trained = drawn_model()
    with torch.no_grad():
        trained.model.output.bias[3] = 70_000
    assert live_model(trained) == "a weight is too large for 16 bits"
    trained = drawn_model()
    trained.model.decoder.unit.__class__ = type("Other", (torch.nn.Module,), {})
    assert live_model(trained) == "the page does not know Other in RNNsearch"
    trained.model.__class__ = type("Mine", (type(trained.model),), {})
    assert live_model(trained) == "the page does not know the model Mine"


def content(model: LiveModel, about: bytes | None = None, folder: Path | None = None) -> bytes:
    """The file of a model, with another description in it."""
    assert folder is not None
    whole = write_live(folder, model).read_bytes()
    (length,) = struct.unpack_from("<I", whole, 8)
    if about is None:
        return whole
    return whole[:8] + struct.pack("<I", len(about)) + about + whole[12 + length :]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda whole: whole[:6], "not a model for pages"),
        (lambda whole: b"PK" + whole[2:], "not a model for pages"),
        (lambda whole: whole[:7] + b"\x63" + whole[8:], "its format is 99, not 1"),
        (lambda whole: whole[:40], "ends within its description"),
        (lambda whole: whole[:-2], "bytes of weights"),
        (lambda whole: whole + b"ab", "bytes of weights"),
        (lambda whole: whole[:-2] + b"\x00\x7c", "not a finite number"),
    ],
)
def test_a_damaged_file_is_refused(change: Any, said: str, tmp_path: Path) -> None:
    whole = content(exported(drawn_model()), folder=tmp_path)
    (tmp_path / FILE).write_bytes(change(whole))
    with pytest.raises(InputError, match=said):
        read_live(tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"scoring": None}, "scoring=None: does not fit RNNsearch"),
        ({"languages": ["en", "tlh"]}, "no Moses rules for 'tlh'"),
        ({"dictionary": {"a": 3}}, "dictionary.a"),
        ({"more": 1}, "more"),
    ],
)
def test_what_types_cannot_say_is_checked(
    change: dict[str, Any], said: str, tmp_path: Path
) -> None:
    model = exported(drawn_model())
    about = copy.deepcopy(model.about) | change
    (tmp_path / FILE).write_bytes(content(model, json.dumps(about).encode(), tmp_path))
    with pytest.raises(InputError, match=said):
        read_live(tmp_path)


def test_options_that_a_page_does_not_compute() -> None:
    """Nothing is exported that would be computed as something else."""
    trained = drawn_model()
    trained.model.reverse_source = True
    assert live_model(trained) == "the page does not read a source backwards"
    trained = drawn_model()
    intervene(trained.model, EvaluationConfig(attention="uniform"))
    assert live_model(trained) == "the page takes the attention as it was trained"
    for unit, attention, named in (
        (LstmUnit, Attention, "LstmUnit"),
        (GatedUnit, LocalAttention, "LocalAttention"),
    ):
        trained = drawn_model()
        decoder = trained.model.decoder
        scoring = decoder.context.scoring
        decoder.context = attention(11, 22, 9, scoring)
        decoder.unit = unit(7, 11, 22)
        assert live_model(trained) == f"the page does not know {named} in RNNsearch"
    assert live_model(drawn_model(scoring="Cosine")) == (
        "the page does not know the scoring function Cosine"
    )
