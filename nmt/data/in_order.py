"""Training pairs written once more in the order in which training reads them.

The training set is shuffled once (appendix B.2), so that the pairs of an update lie all over the
encoded corpus. Where that fits into memory it does not matter. Where it does not, each pair costs a
disk a page or two of which it needs a few words; the copy is read from start to end instead. It
holds the same pairs for the same updates: only where they are read from differs.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from nmt.data.batches import TrainingSchedule
from nmt.data.cache import build_once
from nmt.data.sources.corpus import digest
from nmt.data.splits import Train

BLOCK = 2**27  # ids that are put in order at a time, in memory (512 MiB)
FORMAT = 1
SHARE = 0.5  # of the memory, above which encoded pairs are not expected to stay there

Array = npt.NDArray[Any]


class InOrder:
    """The copy: `copy[i]` are the ids of pair i of the training set, as `Train.ids(i)` gives them.

    Args:
        folder: made by `write`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ids = np.memmap(folder / "ids", np.int32, "r")
        self._starts = np.load(folder / "starts.npy", mmap_mode="r")
        self._places = np.load(folder / "places.npy", mmap_mode="r")

    def __getitem__(self, number: int) -> tuple[Array, Array]:
        place = 2 * int(self._places[number])
        start, middle, end = self._starts[place : place + 3].tolist()
        return self._ids[start:middle], self._ids[middle:end]

    def __reduce__(self) -> tuple[Any, ...]:
        return InOrder, (self.folder,)  # a process that is not forked maps the files


def in_order(
    train: Train,
    fingerprint: str,
    schedule: TrainingSchedule,
    cache: Path,
    when: str,
    progress: bool = False,
) -> Train:
    """The training pairs, read from a copy in the schedule's order where that is worth it.

    Args:
        train: the pairs as they were encoded.
        fingerprint: of their text and vocabularies.
        schedule: says the order.
        cache: folder of prepared text, where the copy is made or found.
        when: `always`, `never`, or `auto`: where the ids exceed `SHARE` of this machine's memory.
        progress: show a progress bar.

    Raises:
        RunError: where the disk is full.
        InputError: where the cache cannot be written.
    """
    needed = 4 * int(train.sizes.sum(dtype=np.int64))
    if when == "never" or (when == "auto" and needed <= SHARE * memory()):
        return train
    kept = hashlib.blake2b(np.ascontiguousarray(train.kept).data, digest_size=16).hexdigest()
    name = f"order-{digest(FORMAT, fingerprint, kept, schedule.seed)}"
    folder = build_once(
        cache, name, lambda folder: write(folder, train, schedule.shuffled, progress)
    )
    return train.read_from(InOrder(folder))


def write(folder: Path, train: Train, order: Array, progress: bool = False) -> None:
    """Fills a folder with the copy, reading the corpus from start to end once a block.

    Args:
        folder: an empty one.
        train: the pairs.
        order: numbers of the pairs, in the order of the copy.
        progress: show a progress bar.
    """
    starts = np.lib.format.open_memmap(folder / "starts.npy", "w+", np.int64, (2 * len(order) + 1,))
    starts[0] = 0
    np.cumsum(train.sizes[order].reshape(-1), out=starts[1:])
    places = np.lib.format.open_memmap(folder / "places.npy", "w+", order.dtype, (len(order),))
    places[order] = np.arange(len(order), dtype=order.dtype)
    with (
        (folder / "ids").open("wb") as stream,
        tqdm(total=len(order), desc="order data.train", unit="pair", disable=not progress) as bar,
    ):
        first = 0
        while first < len(order):
            end = int(np.searchsorted(starts[::2], starts[2 * first] + BLOCK, "right")) - 1
            end = max(end, first + 1)
            edges = starts[2 * first : 2 * end + 1] - starts[2 * first]
            block = np.empty(edges[-1], np.int32)
            numbers = order[first:end]
            for place in np.argsort(numbers).tolist():
                begin, middle, stop = edges[2 * place : 2 * place + 3].tolist()
                block[begin:middle], block[middle:stop] = train.ids(int(numbers[place]))
                bar.update()
            block.tofile(stream)
            first = end
    starts.flush()
    places.flush()


def memory() -> int:
    """Bytes of memory that this machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
