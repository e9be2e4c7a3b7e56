"""`Batch`: sentence pairs as padded tensors with masks.

Shapes: B is the number of pairs; S and T are the lengths of the longest source and target, with `</s>`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nmt.text.symbols import END

Ids = Sequence[int] | npt.NDArray[np.integer]


class Batch(NamedTuple):
    """Sentence pairs as ids, with masks of the positions that are not padding.

    Attributes:
        source: (B, S) int64; every row ends with END and is padded with END.
        source_mask: (B, S) bool, True except at padding; the END of a sentence is not padding.
        target: (B, T) int64, as `source`.
        target_mask: (B, T) bool, as `source_mask`.
        rows: (B,) int64, index of each pair in its split.
        weight: () float32; the loss is `weight` times the sum of the sentences' NLL.
        words: () int64, number of target words, for the NLL per word. Each END counts as a word. A word
            that is split into subwords counts once.
    """

    source: Tensor
    source_mask: Tensor
    target: Tensor
    target_mask: Tensor
    rows: Tensor
    weight: Tensor
    words: Tensor

    @property
    def pairs(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Source, source mask, target and target mask: the arguments of `Network.forward`."""
        return self.source, self.source_mask, self.target, self.target_mask

    def move_to(self, device: torch.device | str) -> Batch:
        """Returns the batch on `device`; Lightning would call a method named `to`, whose copies would block the CPU."""
        return Batch(*(tensor.to(device) for tensor in self))

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickles arrays, since torch would send each tensor to another process as an open file. For small
        # tensors, this takes several times as long as a copy.
        return _from_arrays, ([tensor.numpy(force=True) for tensor in self],)


def _from_arrays(arrays: list[npt.NDArray[Any]]) -> Batch:
    return Batch(*map(torch.from_numpy, arrays))


def pad(sentences: Sequence[Ids]) -> tuple[Tensor, Tensor]:
    """Pads sentences to the length of the longest.

    Args:
        sentences: B rows of ids, each ending with END.

    Returns:
        ids (B, L) int64, padded with END, and mask (B, L) bool; L is the length of the longest row.
    """
    lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
    mask = np.arange(lengths.max(initial=0)) < lengths[:, None]
    ids = np.full(mask.shape, END, np.int64)
    if len(sentences):
        ids[mask] = np.concatenate([np.asarray(sentence, np.int64) for sentence in sentences])
    return torch.from_numpy(ids), torch.from_numpy(mask)


def collate(
    sources: Sequence[Ids],
    targets: Sequence[Ids],
    rows: Ids | None = None,
    weight: float | None = None,
    words: int | None = None,
) -> Batch:
    """Pads both sides of sentence pairs and returns them as a batch.

    Args:
        sources: B rows of ids, each ending with END.
        targets: B rows of ids, each ending with END.
        rows: index of each pair in its split; by default 0, 1, 2, …
        weight: see `Batch`; by default 1 / B, for the mean over these sentences.
        words: see `Batch`; by default the number of ids in `targets`.
    """
    source, source_mask = pad(sources)
    target, target_mask = pad(targets)
    numbers = np.arange(len(sources)) if rows is None else np.asarray(rows)
    return Batch(
        source,
        source_mask,
        target,
        target_mask,
        rows=torch.from_numpy(numbers.astype(np.int64)),
        weight=torch.tensor(1.0 / max(len(sources), 1) if weight is None else weight),
        words=target_mask.sum() if words is None else torch.tensor(words),
    )
