"""Learns the vocabularies of a tokenised text and encodes its pairs as ids, in the cache."""

from __future__ import annotations

import importlib.metadata
import itertools
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import numpy.typing as npt

from nmt.config import TokenizerConfig
from nmt.data.bpe_vocabulary import BpeVocabulary
from nmt.data.cache import build_once
from nmt.data.load_vocabulary import load_vocabulary
from nmt.data.sources.corpus import digest
from nmt.data.tokenised import TokenisedText, open_arrow, processes
from nmt.data.vocabulary import SPECIAL, UNKNOWN, Vocabulary
from nmt.data.word_vocabulary import WordVocabulary, rank_words
from nmt.utils.progress import Stage

FORMAT = 1
LONGEST = np.iinfo(np.uint16).max  # lengths are kept in 16 bits; longer is "longer than any cap"
ENCODED = datasets.Features(
    {
        "source_ids": datasets.List(datasets.Value("int32")),
        "target_ids": datasets.List(datasets.Value("int32")),
    }
)

Vocabularies = tuple[Vocabulary, Vocabulary]  # of the source and of the target
# a vocabulary, and the distinct words of the text that it was learnt from; None where they are not counted
Counted = tuple[Vocabulary, int | None]


@dataclass(frozen=True)
class EncodedText:
    """Training text with its vocabularies.

    Attributes:
        folder: where it lies.
        fingerprint: of the text and of the settings of the vocabularies, or of those that were given.
        source_vocabulary: learnt from the whole text, or given.
        target_vocabulary: as `source_vocabulary`.
        counts: `train` and `vocabulary`, as in `Prepared.manifest`.
        lengths: (pairs, 4) words of source and target, ids of source and target, memory-mapped.
    """

    folder: Path
    fingerprint: str
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    counts: dict[str, Any]
    lengths: npt.NDArray[np.uint16]

    def ids(self) -> datasets.Dataset:
        """A row a pair, `source_ids` and `target_ids`, memory-mapped."""
        return open_arrow(self.folder)


def encode_text(
    text: TokenisedText,
    tokenizer: TokenizerConfig,
    cache: Path,
    progress: bool,
    verify: bool,
    given: Vocabularies | None = None,
) -> EncodedText:
    """Learns vocabularies from a text and encodes it, or takes both from the cache.

    Args:
        text: to encode.
        tokenizer: settings of the vocabularies.
        cache: folder that the result lies in.
        progress: show a progress bar.
        verify: as in `build_once`.
        given: vocabularies to encode with; None: they are learnt.
    """
    version = importlib.metadata.version("tokenizers")
    sizes = [tokenizer.source_size, tokenizer.target_size]
    settings: list[Any] = [tokenizer.kind, *sizes, tokenizer.joint, version]
    if given is not None:
        settings = [*(vocabulary.state() for vocabulary in given), version]
    fingerprint = digest(FORMAT, text.fingerprint, settings)

    def vocabularies() -> tuple[Counted, Counted]:
        if given is None:
            return _learn_both(text, tokenizer, progress)
        source, target = given
        return (source, None), (target, None)

    folder = build_once(
        cache,
        f"pairs-{fingerprint}",
        lambda folder: _encode(folder, fingerprint, text, *vocabularies()),
        verify=verify,
    )
    state = json.loads((folder / "vocabularies.json").read_text("utf-8"))
    return EncodedText(
        folder,
        fingerprint,
        load_vocabulary(state["source"]),
        load_vocabulary(state["target"] or state["source"]),
        json.loads((folder / "counts.json").read_text("utf-8")),
        np.load(folder / "lengths.npy", mmap_mode="r"),
    )


def _encode(
    folder: Path,
    fingerprint: str,
    text: TokenisedText,
    counted_source: Counted,
    counted_target: Counted,
) -> None:
    """Fills a folder: vocabularies, encoded pairs, their lengths and counts."""
    (source, _), (target, _) = vocabularies = counted_source, counted_target
    encoded = text.rows.map(
        _Encoder(source, target),
        batched=True,
        remove_columns=text.rows.column_names,
        features=ENCODED,
        num_proc=processes(len(text.rows)),
        cache_file_name=str(folder / "pairs.arrow"),
        new_fingerprint=fingerprint,
        desc="encode data.train",
    )
    lengths = np.lib.format.open_memmap(folder / "lengths.npy", "w+", np.uint16, (len(encoded), 4))
    counts: dict[str, Any] = {}
    for side, name in enumerate(("source", "target")):
        words = text.rows.data.column(f"{name}_words").to_numpy()
        lengths[:, side] = np.minimum(words, LONGEST)
        total = unknown = start = 0
        for chunk in encoded.data.column(f"{name}_ids").chunks:
            ids = np.diff(chunk.offsets.to_numpy())
            lengths[start : start + len(chunk), 2 + side] = np.minimum(ids, LONGEST)
            start += len(chunk)
            total += int(ids.sum()) - len(chunk)
            unknown += int(np.count_nonzero(chunk.flatten().to_numpy() == UNKNOWN))
        counts[f"{name}_words"] = int(words.sum(dtype=np.int64))
        counts[f"{name}_unknown"] = unknown / total
    lengths.flush()
    vocabulary = {
        name: {"kind": side.kind, "size": len(side) - len(SPECIAL), "types": types}
        for name, (side, types) in zip(("source", "target"), vocabularies, strict=True)
    }
    # A joint vocabulary is stored once.
    state = {"source": source.state(), "target": None if target is source else target.state()}
    (folder / "vocabularies.json").write_text(json.dumps(state, ensure_ascii=False), "utf-8")
    (folder / "counts.json").write_text(json.dumps({"train": counts, "vocabulary": vocabulary}))


def _learn_both(
    text: TokenisedText, tokenizer: TokenizerConfig, progress: bool
) -> tuple[Counted, Counted]:
    """The vocabularies of both sides of a text; the same object twice for a joint one."""
    source = _learn(text, ["source"], tokenizer, tokenizer.source_size, progress)
    if tokenizer.joint:
        return source, source
    return source, _learn(text, ["target"], tokenizer, tokenizer.target_size, progress)


def _learn(
    text: TokenisedText,
    sides: list[str],
    tokenizer: TokenizerConfig,
    size: int,
    progress: bool,
) -> Counted:
    """The vocabulary of one side, or of both."""
    subwords = tokenizer.kind == BpeVocabulary.kind
    if subwords and tokenizer.joint:
        sides = ["source", "target"]
    title = f"learning the {' and '.join(sides)} vocabulary"
    with Stage(title, len(sides) * len(text.rows), "sentence", shown=progress) as stage:
        if subwords:
            return BpeVocabulary.learn(_sentences(text, sides, stage), size), None
        words = rank_words(_sentences(text, sides, stage))
    return WordVocabulary(words[:size]), len(words)


def _sentences(text: TokenisedText, sides: list[str], stage: Stage) -> Iterator[str]:
    columns = [text.rows.data.column(side).chunks for side in sides]
    for chunk in itertools.chain.from_iterable(columns):
        yield from chunk.to_pylist()
        stage.advance(len(chunk))


@dataclass(frozen=True)
class _Encoder:
    source: Vocabulary
    target: Vocabulary

    def __call__(self, rows: dict[str, list[Any]]) -> dict[str, list[list[int]]]:
        # Processes share the cores already; the library's own threads do not survive a fork.
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        return {
            "source_ids": [self.source.encode(line.split(" ")) for line in rows["source"]],
            "target_ids": [self.target.encode(line.split(" ")) for line in rows["target"]],
        }
