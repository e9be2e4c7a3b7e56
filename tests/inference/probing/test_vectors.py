"""The vectors of a batch are those of each sentence alone."""

from __future__ import annotations

import pytest
import torch

from nmt.config.validation import load
from nmt.data.vocabulary import END
from nmt.inference.probing.protocol import ProbeSettings, probe_vectors
from nmt.inference.probing.vectors import ANNOTATIONS, FIXED, START, source_vectors
from nmt.inference.trained import TrainedModel, from_checkpoints, read_members
from nmt.models.ensemble import Ensemble
from nmt.utils.errors import InputError
from tests.helpers.models import small_checkpoint

SOURCES = [[2, 3, 4, 5], [6], [3, 3, 2, 7, 8], [4, 2]]


def trained(path, attends=True) -> TrainedModel:
    members = read_members(str(small_checkpoint(path / "a.ckpt", attends=attends)))
    config = load(members[0].config.copy(), training=False)
    config.search.batch_size = 3
    return from_checkpoints(members, config)


@pytest.mark.parametrize("attends", [True, False])
def test_each_sentence_has_the_vectors_it_has_alone(tmp_path, attends):
    made = trained(tmp_path, attends)
    places = [torch.tensor([0, 2]), torch.tensor([0]), torch.arange(5), torch.tensor([1])]
    whole, *annotations = source_vectors(made, SOURCES, places)
    assert whole.kind == (START if attends else FIXED)
    assert [each.kind for each in annotations] == ([ANNOTATIONS] if attends else [])
    kept = []
    for row, source, chosen in zip(whole.rows, SOURCES, places, strict=True):
        ids = torch.tensor([[*source, END]])
        with torch.no_grad():
            memory = made.model.encode(ids, torch.ones_like(ids, dtype=torch.bool))
            start = made.model.decoder.initial(memory).hidden[0, 0]
        assert torch.allclose(row, start if attends else memory.summary[0], atol=1e-6)
        kept.append(memory.annotations[0, chosen])
    if attends:
        assert torch.allclose(annotations[0].rows, torch.cat(kept), atol=1e-6)


def test_what_is_probed_of_a_model_with_attention(tmp_path):
    settings = ProbeSettings(4, positions=3, classes=9, epochs=1, seed=1)
    found = list(probe_vectors(trained(tmp_path), SOURCES, {"t": SOURCES[:3]}, settings))
    assert [(each.vectors, each.order) for each in found] == [
        (START, "from_start"),
        (START, "from_end"),
        (ANNOTATIONS, "from_start"),
    ]
    for each in found:
        for table in each.read["t"].values():  # all four sentences have the first position alone
            assert table.shape == (3, 1)
            assert set(table.ravel()) <= {0.0, 1.0}


def test_an_ensemble_has_no_vectors(tmp_path):
    made = trained(tmp_path)
    both = TrainedModel(Ensemble([made.model, made.model]), made.codec, made.config)
    with pytest.raises(InputError, match="an ensemble has no vectors of its own"):
        source_vectors(both, SOURCES, [torch.arange(1)] * 4)
