"""Batches: padding, weights, and moves between devices and processes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch

from nmt.data.batch import collate


def test_collate_pads_with_end_and_masks() -> None:
    batch = collate([[5, 6, 7, 0], [8, 0]], [np.array([9, 0]), [0]], [11, 4], 0.25)
    assert batch.source.tolist() == [[5, 6, 7, 0], [8, 0, 0, 0]]
    assert batch.source_mask.tolist() == [[True] * 4, [True, True, False, False]]
    assert batch.target.tolist() == [[9, 0], [0, 0]]
    assert batch.target_mask.tolist() == [[True, True], [True, False]]
    assert batch.rows.tolist() == [11, 4]
    assert batch.weight.item() == 0.25
    assert batch.words.item() == 3
    assert batch.source.dtype == batch.target.dtype == batch.rows.dtype == torch.int64
    assert batch.weight.dtype == torch.float32


def test_collate_weights_sentences_equally_by_default() -> None:
    batch = collate([[2, 0]] * 3, [[3, 0]] * 3, words=4)
    assert batch.words.item() == 4  # the argument `words`, not the number of ids
    assert batch.weight.item() == pytest.approx(1 / 3)
    assert batch.rows.tolist() == [0, 1, 2]


def test_batch_moves_to_a_device() -> None:
    moved = collate([[2, 0]], [[3, 3, 0]]).move_to("meta")
    assert {tensor.device.type for tensor in moved} == {"meta"}


def test_batch_survives_a_worker_process() -> None:
    batch = collate([[5, 6, 0], [8, 0]], [[9, 0], [3, 0]], [11, 4], 0.25)
    again = pickle.loads(pickle.dumps(batch))
    for sent, received in zip(batch, again, strict=True):
        assert torch.equal(received, sent)
        assert received.dtype == sent.dtype
