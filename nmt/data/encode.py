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
from nmt.data.cache import build_once
from nmt.data.sources import digest
from nmt.data.tokenised import TokenisedText, open_arrow, processes
from nmt.data.vocabulary import (
    SPECIAL,
    UNKNOWN,
    BpeVocabulary,
    Vocabularies,
    Vocabulary,
    WordVocabulary,
    load_vocabulary,
    rank_words,
)
from nmt.utils.files import write_json
from nmt.utils.progress import Stage

FORMAT = 2
LONGEST = np.iinfo(np.uint16).max  # lengths are kept in 16 bits; longer is "longer than any cap"
IDS = datasets.List(datasets.Value("int32"))
ENCODED = datasets.Features({"source_ids": IDS, "target_ids": IDS})

# a vocabulary, and the number of distinct words it was learnt from; None if they are not counted
Counted = tuple[Vocabulary, int | None]


@dataclass(frozen=True)
class EncodedText:
    """Training text with its vocabularies.

    Attributes:
        rows: a row a pair, `source_ids` and `target_ids`, memory-mapped.
        fingerprint: of the text and of the settings of the vocabularies, or of the given ones.
        source_vocabulary: learnt from the whole text, or given.
        target_vocabulary: as `source_vocabulary`.
        counts: `vocabulary`, and `<side>_words` and `<side>_unknown` as in `Prepared.manifest`.
        lengths: (pairs, 4) words of source and target, ids of source and target, memory-mapped.
    """

    rows: datasets.Dataset
    fingerprint: str
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    counts: dict[str, Any]
    lengths: npt.NDArray[np.uint16]


def encode_text(
    text: TokenisedText,
    tokenizer: TokenizerConfig,
    cache: Path,
    progress: bool,
    given: Vocabularies | None = None,
) -> EncodedText:
    """Learns vocabularies from a text and encodes it, or takes both from the cache.

    Args:
        text: to encode.
        tokenizer: settings of the vocabularies.
        cache: folder that the result lies in.
        progress: show a progress bar.
        given: vocabularies to encode with; None: they are learnt.
    """
    settings: list[Any] = [tokenizer.kind, tokenizer.source_size, tokenizer.target_size]
    settings.append(tokenizer.joint)
    if given is not None:
        settings = [vocabulary.state() for vocabulary in given]
    version = importlib.metadata.version("tokenizers")
    fingerprint = digest(FORMAT, text.fingerprint, settings, version)

    def build(folder: Path) -> None:
        if given is None:
            source = _learn(text, "source", tokenizer, progress)
            target = source if tokenizer.joint else _learn(text, "target", tokenizer, progress)
        else:
            source, target = (given[0], None), (given[1], None)
        _encode(folder, fingerprint, text, source, target)

    folder = build_once(cache, f"pairs-{fingerprint}", build)
    state = json.loads((folder / "vocabularies.json").read_text("utf-8"))
    return EncodedText(
        open_arrow(folder),
        fingerprint,
        load_vocabulary(state["source"]),
        load_vocabulary(state["target"] or state["source"]),
        json.loads((folder / "manifest.json").read_text("utf-8")),
        np.load(folder / "lengths.npy", mmap_mode="r"),
    )


def _encode(
    folder: Path, fingerprint: str, text: TokenisedText, source: Counted, target: Counted
) -> None:
    """Fills a folder: vocabularies, encoded pairs, their lengths and counts."""
    encoded = text.rows.map(
        _Encoder(source[0], target[0]),
        batched=True,
        remove_columns=text.rows.column_names,
        features=ENCODED,
        num_proc=processes(len(text.rows)),
        cache_file_name=str(folder / "pairs.arrow"),
        new_fingerprint=fingerprint,
        desc="encode data.train",
    )
    lengths = np.lib.format.open_memmap(folder / "lengths.npy", "w+", np.uint16, (len(encoded), 4))
    counts: dict[str, Any] = {
        "lines": text.lines,
        "empty": text.empty,
        "dropped": dict(text.dropped),
        "pairs": len(encoded),
        "vocabulary": {},
    }
    for side, (name, (vocabulary, types)) in enumerate(
        zip(("source", "target"), (source, target), strict=True)
    ):
        words = text.rows.data.column(f"{name}_words").to_numpy()
        lengths[:, side] = np.minimum(words, LONGEST)
        unknown = start = total = 0
        for chunk in encoded.data.column(f"{name}_ids").chunks:
            sizes = np.diff(chunk.offsets.to_numpy())
            lengths[start : start + len(chunk), 2 + side] = np.minimum(sizes, LONGEST)
            start += len(chunk)
            total += int(sizes.sum()) - len(chunk)
            unknown += int(np.count_nonzero(chunk.flatten().to_numpy() == UNKNOWN))
        counts[f"{name}_words"] = int(words.sum(dtype=np.int64))
        counts[f"{name}_unknown"] = unknown / total
        size = len(vocabulary) - len(SPECIAL)
        counts["vocabulary"][name] = {"kind": vocabulary.kind, "size": size, "types": types}
    lengths.flush()
    joint = target[0] is source[0]  # stored once
    state = {"source": source[0].state(), "target": None if joint else target[0].state()}
    (folder / "vocabularies.json").write_text(json.dumps(state, ensure_ascii=False), "utf-8")
    write_json(folder / "manifest.json", counts)


def _learn(text: TokenisedText, side: str, tokenizer: TokenizerConfig, progress: bool) -> Counted:
    """The vocabulary of one side, or of both if `tokenizer.joint`."""
    sides = ["source", "target"] if tokenizer.joint else [side]
    size: int = getattr(tokenizer, f"{side}_size")
    title = f"learning the {' and '.join(sides)} vocabulary"
    with Stage(title, len(sides) * len(text.rows), "sentence", shown=progress) as stage:
        if tokenizer.kind == BpeVocabulary.kind:
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
