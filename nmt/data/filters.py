"""Filters of training pairs: length ratio, identical sides, duplicates.

Filters read the tokenised text and write another one to the cache, so that everything after them,
vocabularies included, sees the kept pairs only. Development and test sets are not filtered. A
pair is counted under the first reason that applies, in the order of `REASONS`.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
import xxhash

from nmt.config import FilterConfig
from nmt.data.cache import build_once
from nmt.data.sources import digest
from nmt.data.tokenised import TokenisedText, open_arrow, processes
from nmt.utils.errors import InputError

REASONS = ("length_ratio", "identical", "duplicate")

Array = npt.NDArray[Any]


def filter_text(text: TokenisedText, filters: FilterConfig, cache: Path) -> TokenisedText:
    """The training text without the pairs that `data.filters` drops.

    Args:
        text: all of it.
        filters: section `data.filters`.
        cache: folder of prepared text.

    Returns:
        `text` itself if no filter is on; otherwise a text with `dropped` by reason.

    Raises:
        InputError: if no pair is left.
    """
    if filters == FilterConfig():
        return text
    fingerprint = digest("filtered", text.fingerprint, asdict(filters))

    def build(folder: Path) -> None:
        reasons = judge(text.rows, filters)
        counts = np.bincount(reasons, minlength=len(REASONS) + 1).tolist()
        dropped = {name: n for name, n in zip(REASONS, counts[1:], strict=True) if n}
        if not counts[0]:
            listed = ", ".join(f"{name} {count:,}" for name, count in dropped.items())
            raise InputError(f"data.filters: none of {len(reasons):,} pairs is left ({listed})")
        text.rows.select(np.flatnonzero(reasons == 0)).flatten_indices(
            cache_file_name=str(folder / "text.arrow"),
            features=text.rows.features,
            num_proc=processes(len(text.rows)),
            new_fingerprint=fingerprint,
        )
        (folder / "dropped.json").write_text(json.dumps(dropped))

    folder = build_once(cache, f"filtered-{fingerprint}", build)
    dropped = json.loads((folder / "dropped.json").read_text())
    return TokenisedText(open_arrow(folder), fingerprint, text.lines, dropped)


def judge(rows: datasets.Dataset, filters: FilterConfig) -> Array:
    """(pairs,) uint8: 0 for a kept pair, otherwise 1 plus the place of its reason in `REASONS`."""
    reasons = np.zeros(len(rows), np.uint8)
    source, target = (rows.data.column(side) for side in ("source", "target"))
    words = [rows.data.column(f"{side}_words").to_numpy() for side in ("source", "target")]
    if filters.length_ratio:
        reasons[np.maximum(*words) > filters.length_ratio * np.minimum(*words)] = 1
    if filters.identical:
        reasons[(reasons == 0) & pc.equal(source, target).to_numpy()] = 2
    if filters.duplicates != "none":
        hashes = np.concatenate([_hashes(rows, filters.duplicates, at) for at in _batches(rows)])
        kept = np.flatnonzero(reasons == 0)
        reasons[kept[~first_occurrences(hashes[kept])]] = 3
    return reasons


def first_occurrences(hashes: Array) -> Array:
    """(n,) bool: whether a hash occurs for the first time."""
    first = np.zeros(len(hashes), bool)
    first[np.unique(hashes, return_index=True)[1]] = True
    return first


def _batches(rows: datasets.Dataset) -> list[slice]:
    size = 10_000
    return [slice(start, start + size) for start in range(0, len(rows), size)]


def _hashes(rows: datasets.Dataset, sides: str, at: slice) -> Array:
    batch = rows[at]
    texts = {
        "pair": (f"{s}\n{t}" for s, t in zip(batch["source"], batch["target"], strict=True)),
        "source": batch["source"],
        "target": batch["target"],
    }[sides]
    return np.array([xxhash.xxh3_64_intdigest(text.encode()) for text in texts], np.uint64)
