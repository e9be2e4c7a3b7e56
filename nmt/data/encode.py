"""Training text with filters, vocabularies and ids, in the cache."""

from __future__ import annotations

import importlib.metadata
import json
import logging
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from nmt.config import DataConfig, FilterConfig, TokenizerConfig
from nmt.data.cache import build_once
from nmt.data.pairs import IdColumn
from nmt.data.sources import digest
from nmt.data.tokenised import TokenisedText, map_rows, open_arrow
from nmt.data.vocabulary import (
    UNKNOWN,
    BpeVocabulary,
    Vocabularies,
    Vocabulary,
    WordVocabulary,
    load_vocabulary,
    rank_words,
)
from nmt.utils.errors import InputError
from nmt.utils.files import write_json

log = logging.getLogger(__name__)

Array = npt.NDArray[Any]

FORMAT = 3
SIDES = ("source", "target")
REASONS = ("kept", "length_ratio", "identical", "duplicate")
ENCODED = datasets.Features(
    {f"{side}_ids": datasets.List(datasets.Value("int32")) for side in SIDES}
)


@dataclass(frozen=True)
class EncodedText:
    """Training text with its vocabularies.

    Attributes:
        vocabularies: of source and target, learnt from the kept pairs or given.
        ids: source and target of every row of the text, memory-mapped.
        reasons: (rows,) uint8, the place in `REASONS` of what became of a row.
        counts: of the kept pairs `source_unknown` and `target_unknown`, ids that are `<unk>`, and
            `source_types` and `target_types`, distinct words (null if they were not counted).
        fingerprint: of the text, the filters and the settings of the vocabularies.
    """

    vocabularies: Vocabularies
    ids: tuple[IdColumn, IdColumn]
    reasons: Array
    counts: dict[str, Any]
    fingerprint: str


def encode_text(
    text: TokenisedText,
    data: DataConfig,
    tokenizer: TokenizerConfig,
    given: Vocabularies | None = None,
) -> EncodedText:
    """Filters and encodes training text with the vocabularies that are learnt from it.

    Args:
        text: the tokenised text.
        data: section `data`, for filters and cache.
        tokenizer: settings of the vocabularies.
        given: vocabularies to encode with, in place of learning them.

    Raises:
        InputError: if the filters leave no pair.
    """
    settings: list[Any] = [tokenizer.kind, tokenizer.source_size, tokenizer.target_size]
    settings.append(tokenizer.joint)
    if given is not None:
        settings = [vocabulary.state() for vocabulary in given]
    version = importlib.metadata.version("tokenizers")
    fingerprint = digest(FORMAT, text.fingerprint, asdict(data.filters), settings, version)

    def build(folder: Path) -> None:
        reasons = filter_pairs(text.rows, data.filters)
        kept = reasons == 0
        if not kept.any():
            raise InputError(f"data.filters: none of {len(kept):,} pairs is left")
        np.save(folder / "reasons.npy", reasons)
        log.info("learning vocabularies")
        types: list[int | None] = [None, None]
        vocabularies = given
        if vocabularies is None:
            vocabularies, types = _learn(text.rows, kept, tokenizer)
        state = [vocabulary.state() for vocabulary in vocabularies]
        (folder / "vocabularies.json").write_text(json.dumps(state, ensure_ascii=False), "utf-8")
        log.info("encoding data.train")
        rows = map_rows(
            text.rows, _Encode(*vocabularies), ENCODED, folder / "pairs.arrow", fingerprint
        )
        counts = {
            f"{side}_unknown": _count_unknown(rows.data.column(f"{side}_ids"), kept)
            for side in SIDES
        }
        write_json(
            folder / "counts.json",
            counts | {f"{side}_types": n for side, n in zip(SIDES, types, strict=True)},
        )

    folder = build_once(Path(data.cache), f"pairs-{fingerprint}", build)
    rows = open_arrow(folder)
    source, target = json.loads((folder / "vocabularies.json").read_text("utf-8"))
    return EncodedText(
        (load_vocabulary(source), load_vocabulary(target)),
        (IdColumn(rows, "source_ids"), IdColumn(rows, "target_ids")),
        np.load(folder / "reasons.npy", mmap_mode="r"),
        json.loads((folder / "counts.json").read_text("utf-8")),
        fingerprint,
    )


def filter_pairs(rows: datasets.Dataset, filters: FilterConfig) -> Array:
    """What becomes of every pair: (rows,) uint8, a place in `REASONS`, of several the first.

    Duplicates are found by a 64-bit hash: any two of 40 million different pairs have the same one
    with a probability of 4 in 100,000.
    """
    reasons = np.zeros(len(rows), np.uint8)
    source, target = (rows.data.column(side) for side in SIDES)
    if filters.length_ratio:
        words = [rows.data.column(f"{side}_words").to_numpy() for side in SIDES]
        reasons[np.maximum(*words) > filters.length_ratio * np.minimum(*words)] = 1
    if filters.identical:
        reasons[(reasons == 0) & pc.equal(source, target).to_numpy()] = 2
    if filters.duplicates != "none":
        sides = {"pair": SIDES}.get(filters.duplicates, (filters.duplicates,))
        hashes = np.empty(len(rows), np.uint64)
        for start in range(0, len(rows), 10_000):
            batch = rows[start : start + 10_000]
            for place, texts in enumerate(
                zip(*(batch[side] for side in sides), strict=True), start
            ):
                hashes[place] = xxhash.xxh3_64_intdigest("\n".join(texts).encode())
        kept = np.flatnonzero(reasons == 0)
        repeated = np.ones(len(kept), bool)
        repeated[np.unique(hashes[kept], return_index=True)[1]] = False
        reasons[kept[repeated]] = 3
    return reasons


def _learn(
    rows: datasets.Dataset, kept: Array, tokenizer: TokenizerConfig
) -> tuple[Vocabularies, list[int | None]]:
    """The vocabularies of both sides, and the number of distinct words of each."""

    def learn(sides: tuple[str, ...], size: int) -> tuple[Vocabulary, int | None]:
        sentences = (sentence for side in sides for sentence in _sentences(rows, side, kept))
        if tokenizer.kind == BpeVocabulary.kind:
            return BpeVocabulary.learn(sentences, size), None
        words = rank_words(sentences)
        return WordVocabulary(words[:size]), len(words)

    if tokenizer.joint:
        joint, types = learn(SIDES, tokenizer.source_size)
        return (joint, joint), [types, types]
    source, source_types = learn(("source",), tokenizer.source_size)
    target, target_types = learn(("target",), tokenizer.target_size)
    return (source, target), [source_types, target_types]


def _sentences(rows: datasets.Dataset, side: str, kept: Array) -> Iterator[str]:
    start = 0
    for chunk in rows.data.column(side).chunks:
        yield from chunk.filter(pa.array(kept[start : start + len(chunk)])).to_pylist()
        start += len(chunk)


@dataclass(frozen=True)
class _Encode:
    source: Vocabulary
    target: Vocabulary

    def __call__(self, rows: dict[str, list[Any]]) -> dict[str, list[list[int]]]:
        # Processes share the cores already; the library's own threads do not survive a fork.
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        return {
            "source_ids": [self.source.encode(line.split(" ")) for line in rows["source"]],
            "target_ids": [self.target.encode(line.split(" ")) for line in rows["target"]],
        }


def _count_unknown(column: Any, kept: Array) -> int:
    """Ids of the kept rows that are UNKNOWN."""
    count = start = 0
    for chunk in column.chunks:
        unknown = (chunk.flatten().to_numpy() == UNKNOWN).astype(np.int64)
        offsets = chunk.offsets.to_numpy()
        each = np.add.reduceat(unknown, offsets[:-1] - offsets[0])
        count += int(each[kept[start : start + len(chunk)]].sum())
        start += len(chunk)
    return count
