"""`Batch`: sentence pairs as padded tensors with masks.

Shapes: B sentence pairs, S longest source, T longest target of the batch (both with `</s>`).
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
    """Sentence pairs as ids, with masks of the real (not padded) positions.

    Attributes:
        source: (B, S) int64; every row ends with END and is padded with END.
        source_mask: (B, S) bool, True at real positions, including the sentence's END.
        target: (B, T) int64, as `source`.
        target_mask: (B, T) bool, as `source_mask`.
        rows: (B,) int64, index of each pair in its split.
        weight: () float32; the loss is `weight` times the sum of the sentences' NLL.
        words: () int64, number of target words, the divisor of NLL per word; each END counts as a
            word. With subwords, there are fewer words than real positions in `target`.
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
        """Both sides with their masks: the arguments of a `Network`."""
        return self.source, self.source_mask, self.target, self.target_mask

    def move_to(self, device: torch.device | str) -> Batch:
        """Returns the batch on `device`. Lightning would call this method if its name were `to`."""
        return Batch(*(tensor.to(device) for tensor in self))

    def __reduce__(self) -> tuple[Any, ...]:
        # Sends arrays to other processes: torch would send each tensor as an open file, which takes
        # several times as long as copying tensors of this size.
        return _from_arrays, ([tensor.numpy(force=True) for tensor in self],)


def _from_arrays(arrays: list[npt.NDArray[Any]]) -> Batch:
    return Batch(*map(torch.from_numpy, arrays))


def pad(sentences: Sequence[Ids]) -> tuple[Tensor, Tensor]:
    """Pads sentences to the length of the longest.

    Args:
        sentences: B rows of ids, each ending with END.

    Returns:
        ids (B, L) int64 padded with END, and mask (B, L) bool; L: length of the longest row.
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
