"""Filters of training pairs: length ratio, identical sides, language, duplicates, data selection.

Filters read the tokenised text and write another one to the cache, so that everything after them,
vocabularies included, sees the kept pairs only. Development and test sets are not filtered. A
pair is counted under the first reason that applies, in the order of `REASONS`.
"""

from __future__ import annotations

import importlib.metadata
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import numpy.typing as npt
import xxhash

from nmt.config import DataConfig, FilterConfig
from nmt.config.schema import to_containers
from nmt.data.cache import build_once
from nmt.data.filtering.languages import check_identifier, is_other
from nmt.data.filtering.selection import best, cross_entropy_differences
from nmt.data.sources.corpus import digest
from nmt.data.tokenised import TOKENISED, TokenisedText, open_arrow, processes
from nmt.utils.errors import InputError
from nmt.utils.optional import need

FORMAT = 1
REASONS = (
    "length_ratio",
    "identical",
    "wrong_language",
    "duplicate",
    "not_selected",
)
JUDGED = datasets.Features({"reason": datasets.Value("uint8"), "hash": datasets.Value("uint64")})
NUMBERS = {name: number for number, name in enumerate(REASONS, 1)}  # as they are stored; 0: kept

Array = npt.NDArray[Any]


def filter_text(
    text: TokenisedText, data: DataConfig, in_domain: TokenisedText | None
) -> TokenisedText:
    """The training text without the pairs that `data.filters` and `data.selection` drop.

    Args:
        text: all of it.
        data: section `data` of the configuration.
        in_domain: the text that `data.selection` compares with; None where nothing is selected.

    Returns:
        `text` itself where no filter is on; otherwise a text with `dropped` by reason.

    Raises:
        InputError: where no pair is left.
    """
    asked = {
        name: value
        for name, value in to_containers(data.filters).items()
        if value != getattr(FilterConfig(), name)
    }
    if not asked and in_domain is None:
        return text
    languages = (data.languages[0], data.languages[1])
    settings: list[Any] = [FORMAT, text.fingerprint, asked, list(languages)]
    if data.filters.other_language is not None:
        settings.append(importlib.metadata.version("py3langid"))
    if in_domain is not None:
        settings += [in_domain.fingerprint, data.selection_target_words, data.selection_order]
        settings.append(importlib.metadata.version("sil-thot"))
    fingerprint = digest("filtered", settings)
    folder = build_once(
        Path(data.cache),
        f"filtered-{fingerprint}",
        lambda folder: _build(folder, fingerprint, text, data, languages, in_domain),
        verify=data.verify,
    )
    dropped = json.loads((folder / "dropped.json").read_text())
    return TokenisedText(open_arrow(folder), fingerprint, text.lines, dropped)


def check_filters(data: DataConfig) -> None:
    """Checks that the settings, packages and languages that filters and selection need are there.

    Called before any text is read.
    """
    other = data.filters.other_language
    if other is not None:
        languages = (data.languages[0], data.languages[1])
        check_identifier(languages, f"data.filters.other_language={other}")
    if data.selection != "none":
        key = f"data.selection={data.selection}"
        if not data.selection_target_words:
            raise InputError(f"{key}: set data.selection_target_words")
        need("thot.common", "thot", key)


def _build(
    folder: Path,
    fingerprint: str,
    text: TokenisedText,
    data: DataConfig,
    languages: tuple[str, str],
    in_domain: TokenisedText | None,
) -> None:
    scratch = folder / "scratch"
    scratch.mkdir()
    workers = processes(len(text.rows))
    judged = text.rows.map(
        _Judge(data.filters, languages),
        batched=True,
        remove_columns=text.rows.column_names,
        features=JUDGED,
        num_proc=workers,
        cache_file_name=str(scratch / "judged.arrow"),
        new_fingerprint="judged",
        desc="filter data.train",
    )
    reasons = judged.data.column("reason").to_numpy().copy()
    if data.filters.duplicates != "none":
        rows = np.flatnonzero(reasons == 0)
        repeated = ~first_occurrences(judged.data.column("hash").to_numpy()[rows])
        reasons[rows[repeated]] = NUMBERS["duplicate"]
    if in_domain is not None and not reasons.all():
        scores = cross_entropy_differences(
            text.rows, reasons == 0, in_domain.rows, data.selection_order, scratch, workers
        )
        words = text.rows.data.column("target_words").to_numpy()
        selected = best(scores, words, data.selection_target_words)
        reasons[(reasons == 0) & ~selected] = NUMBERS["not_selected"]
    counts = np.bincount(reasons, minlength=len(REASONS) + 1).tolist()
    dropped = {name: count for name, count in zip(REASONS, counts[1:], strict=True) if count}
    if not counts[0]:
        said = ", ".join(f"{name} {count:,}" for name, count in dropped.items())
        raise InputError(
            f"data.filters, data.selection: none of {len(reasons):,} training pairs is left ({said})"
        )
    mask = scratch / "kept.npy"
    np.save(mask, reasons == 0)
    kept = text.rows.map(
        _Keep(mask),
        batched=True,
        with_indices=True,
        features=TOKENISED,
        num_proc=workers,
        cache_file_name=str(folder / "text.arrow"),
        new_fingerprint=fingerprint,
        desc="keep data.train",
    )
    del judged, kept
    (folder / "dropped.json").write_text(json.dumps(dropped))
    shutil.rmtree(scratch)


def first_occurrences(hashes: Array) -> Array:
    """(n,) bool: whether a hash occurs for the first time.

    A sixteenth of the values is sorted at a time, so that little memory is needed beside the hashes.
    """
    first = np.zeros(len(hashes), bool)
    for part in range(16):
        rows = np.flatnonzero(hashes >> np.uint64(60) == part)
        _, places = np.unique(hashes[rows], return_index=True)
        first[rows[places]] = True
    return first


@dataclass(frozen=True)
class _Judge:
    """Gives each pair the number of the first reason to drop it (0: none), and its hash."""

    filters: FilterConfig
    languages: tuple[str, str]

    def __call__(self, rows: dict[str, list[Any]]) -> dict[str, Any]:
        pairs = list(zip(rows["source"], rows["target"], strict=True))
        counts = zip(rows["source_words"], rows["target_words"], strict=True)
        reasons = [
            self._reason(source, target, *words)
            for (source, target), words in zip(pairs, counts, strict=True)
        ]
        hashed = {
            "none": lambda source, target: "",
            "pair": lambda source, target: f"{source}\n{target}",
            "source": lambda source, target: source,
            "target": lambda source, target: target,
        }[self.filters.duplicates]
        hashes = [xxhash.xxh3_64_intdigest(hashed(*pair).encode()) for pair in pairs]
        return {"reason": reasons, "hash": np.array(hashes, np.uint64)}

    def _reason(self, source: str, target: str, source_words: int, target_words: int) -> int:
        filters = self.filters
        ratio = filters.length_ratio
        sides = list(zip((source, target), self.languages, strict=True))
        if ratio and max(source_words, target_words) > ratio * min(source_words, target_words):
            return NUMBERS["length_ratio"]
        if filters.identical and source == target:
            return NUMBERS["identical"]
        other = filters.other_language
        if other is not None and any(is_other(*side, other) for side in sides):
            return NUMBERS["wrong_language"]
        return 0


@dataclass(frozen=True)
class _Keep:
    mask: Path

    def __call__(self, rows: dict[str, list[Any]], numbers: list[int]) -> dict[str, list[Any]]:
        wanted = np.flatnonzero(np.load(self.mask, mmap_mode="r")[numbers]).tolist()
        return {name: [column[place] for place in wanted] for name, column in rows.items()}
