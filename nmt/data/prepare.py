"""Text preparation: tokenised, filtered and encoded once, then read memory-mapped from the cache.

Two kinds of folders lie in the cache: `text-*` is a tokenised text, `pairs-*` training text that has
been filtered and encoded, with its vocabularies. The cap on length is applied when they are opened,
and test sets are encoded in memory, so that runs which differ in either share the rest.
"""

from __future__ import annotations

import importlib.metadata
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from nmt.config import DataConfig, FilterConfig, TextConfig, TokenizerConfig
from nmt.data.cache import Facts, build_once, map_chunks, write_rows
from nmt.data.pairs import IDS, Array, Pairs, count_words, encode
from nmt.data.sources import CHUNK, SIDES, Pair, digest, open_source
from nmt.data.tokenise import LANGUAGES, split, tokeniser
from nmt.data.vocabulary import (
    BpeVocabulary,
    Vocabularies,
    Vocabulary,
    WordVocabulary,
    load_vocabulary,
    rank_words,
)
from nmt.utils.errors import InputError

log = logging.getLogger(__name__)

TEXT_FORMAT, PAIRS_FORMAT = 3, 4
WORDS = {side: f"{side}_words" for side in SIDES}
COLUMNS = {
    "line": pa.int64(),
    **dict.fromkeys(SIDES, pa.string()),
    **dict.fromkeys(WORDS.values(), pa.int32()),
    "alignment": pa.string(),
}
HELD_OUT_COLUMNS = COLUMNS | {"target_text": pa.string()}


class Text(NamedTuple):
    """A tokenised text.

    Attributes:
        rows: columns `line` (number in the source, from 0), `source` and `target` (tokens joined by
            spaces), `source_words` and `target_words` (their numbers), `alignment`, and, but for
            training text, `target_text` (raw).
        empty: pairs of the source that were left out because a side has no words.
        fingerprint: changes when a row could.
    """

    rows: pa.Table
    empty: int
    fingerprint: str


@dataclass(frozen=True)
class Prepared:
    """The prepared text of a run.

    Attributes:
        train: pairs within the cap on length.
        valid: development pairs.
        test: test sets by name, in the order of the configuration.
    """

    train: Pairs
    valid: Pairs
    test: dict[str, Pairs]

    @property
    def source_vocabulary(self) -> Vocabulary:
        """Learnt from the filtered training text, whatever the cap on length; or given."""
        return self.train.source_vocabulary

    @property
    def target_vocabulary(self) -> Vocabulary:
        """As `source_vocabulary`."""
        return self.train.target_vocabulary

    @property
    def fingerprint(self) -> str:
        """Of training and development text, tokenisation and vocabularies; not of the test sets."""
        return digest(self.train.fingerprint, self.valid.fingerprint)

    def identified(self) -> dict[str, Any]:
        """The fingerprints that results.json holds: of the training text, and of each test set."""
        sets = {name: pairs.fingerprint for name, pairs in self.test.items()}
        return {"training": self.fingerprint, "test": sets}

    def summary(self) -> str:
        """A table of the counts of each split."""
        splits = {"train": self.train, "valid": self.valid}
        splits |= {f"test.{name}": pairs for name, pairs in self.test.items()}
        rows = {
            name: {
                key.replace("_", " "): f"{count:.2%}" if isinstance(count, float) else f"{count:,}"
                for key, count in pairs.counts.items()
            }
            for name, pairs in splits.items()
        }
        table = pd.DataFrame.from_dict(rows, orient="index").to_string(na_rep="")
        sizes = f"{len(self.source_vocabulary):,} and {len(self.target_vocabulary):,} symbols"
        return f"{table}\nvocabularies: {sizes}\nfingerprint: {self.fingerprint}"


def prepare(
    data: DataConfig,
    tokenizer: TokenizerConfig,
    vocabularies: Vocabularies | None = None,
) -> Prepared:
    """Tokenises and encodes the text and learns vocabularies, or takes the results from the cache.

    Args:
        data: section `data` of the configuration.
        tokenizer: section `tokenizer`.
        vocabularies: of a trained model, to encode with; None: they are learnt from the text.

    Raises:
        InputError: if the configuration or a text is wrong.
        RunError: if the disk is full.
    """
    sections = {"train": data.train, "valid": data.valid}
    sections |= {f"test.{name}": text for name, text in data.test.items()}
    train, *held_out = (
        tokenise_text(text, data, f"data.{name}", tokenizer) for name, text in sections.items()
    )
    pairs = training_pairs(train, data, tokenizer, vocabularies)
    known = pairs.source_vocabulary, pairs.target_vocabulary
    names = ["valid", *data.test]
    valid, *tests = (held_out_pairs(n, t, known) for n, t in zip(names, held_out, strict=True))
    return Prepared(pairs, valid, dict(zip(data.test, tests, strict=True)))


def prepare_test_set(
    text: TextConfig,
    data: DataConfig,
    name: str,
    vocabularies: Vocabularies,
    tokenizer: TokenizerConfig,
) -> Pairs:
    """Pairs to measure a model on, encoded with the vocabularies that it was trained with.

    Args:
        text: section of the configuration that describes the text.
        data: section `data`, for languages and cache.
        name: of the test set.
        vocabularies: the model's, of source and target.
        tokenizer: as in training.

    Raises:
        InputError: if the text cannot be read.
    """
    tokenised = tokenise_text(text, data, f"data.test.{name}", tokenizer)
    return held_out_pairs(name, tokenised, vocabularies)


def tokenise_text(text: TextConfig, data: DataConfig, key: str, tokenizer: TokenizerConfig) -> Text:
    """The tokenised text of a section of the configuration, from the cache or made now.

    Args:
        text: the section.
        data: the whole section `data`, for languages and cache.
        key: name of the section, such as `data.test.mine`.
        tokenizer: how raw text becomes tokens.

    Raises:
        InputError: if the text is empty or cannot be read.
    """
    source = open_source(text, data, key)
    columns = COLUMNS if key == "data.train" else HELD_OUT_COLUMNS
    tokenised, first = text.tokenised or text.grammar is not None, text.skip or 0
    options: dict[str, Any] = {
        "languages": list(data.languages),
        "tokenised": tokenised,
        "normalise": tokenizer.normalise,
        "characters": tokenizer.characters,
        "columns": list(columns),
    }
    version = importlib.metadata.version("sacremoses")
    fingerprint = digest(TEXT_FORMAT, source.identity, version, {**options, "first": first})

    def build(folder: Path) -> Facts:
        empty: list[int] = []

        def batches() -> Iterator[pa.RecordBatch]:
            work = partial(_tokenise, read=source.read, **options)
            for batch, left_out in map_chunks(work, zip(count(first, CHUNK), source.chunks)):
                empty.extend(left_out)
                yield batch

        for language, side in zip(data.languages, SIDES, strict=True):
            if not tokenised and language not in LANGUAGES:
                log.warning(
                    "%s (%s): Moses has no rules for %r; those of English are used",
                    *(key, side, language),
                )
        rows = write_rows(folder, pa.schema(columns), batches(), f"preparing {key}")
        if not len(rows):
            raise InputError(f"{key}: empty corpus; none of {len(empty)} pairs has words")
        if empty and "target_text" in columns:
            listed = ", ".join(str(n + 1) for n in empty[:5]) + (", …" if len(empty) > 5 else "")
            log.warning("%s: pairs with an empty side are left out: line %s", key, listed)
        return {"empty": len(empty)}

    rows, facts = build_once(Path(data.cache), f"text-{fingerprint}", build)
    return Text(rows, facts["empty"], fingerprint)


def _tokenise(
    numbered: tuple[int, Any],
    read: Callable[[Any], Sequence[Pair]],
    languages: Sequence[str],
    tokenised: bool,
    normalise: bool,
    characters: bool,
    columns: Sequence[str],
) -> tuple[pa.RecordBatch, list[int]]:
    """Tokenises a chunk of a source whose first pair has a number.

    Returns the rows, and the numbers of the pairs that are left out because a side has no words.
    """
    first, chunk = numbered
    tools = [tokeniser(language, normalise, characters) for language in languages]
    rows, empty = [], []
    for number, (source, target, alignment) in enumerate(read(chunk), first):
        texts = source or "", target or ""
        if tokenised:
            sides = [split(text) for text in texts]
        else:
            sides = [tool.tokenise(text) for tool, text in zip(tools, texts, strict=True)]
        if not all(sides):
            empty.append(number)
            continue
        detokenised = tokenised and "target_text" in columns
        text = tools[1].detokenise(sides[1]) if detokenised else texts[1]
        words = [" ".join(side) for side in sides]
        rows.append((number, *words, *map(len, sides), alignment, text))
    schema = pa.schema({name: HELD_OUT_COLUMNS[name] for name in columns})
    values = [[row[place] for row in rows] for place in range(len(columns))]
    return pa.RecordBatch.from_arrays(
        list(map(pa.array, values, schema.types)), schema=schema
    ), empty


def training_pairs(
    text: Text,
    data: DataConfig,
    tokenizer: TokenizerConfig,
    given: Vocabularies | None,
) -> Pairs:
    """The training pairs, filtered and encoded with the vocabularies that are learnt, or given."""
    settings: list[Any] = [tokenizer.kind, tokenizer.source_size, tokenizer.target_size]
    settings.append(tokenizer.joint)
    if given is not None:
        settings = [vocabulary.state() for vocabulary in given]
    version = importlib.metadata.version("tokenizers")
    fingerprint = digest(PAIRS_FORMAT, text.fingerprint, asdict(data.filters), settings, version)

    def build(folder: Path) -> Facts:
        kept, dropped = filter_pairs(text.rows, data.filters)
        if not kept.any():
            raise InputError(f"data.filters: none of {len(text.rows):,} pairs is left")
        vocabularies, types = (given, {}) if given else _learn(text.rows, kept, tokenizer)
        schema = text.rows.schema
        for name in IDS.values():
            schema = schema.append(pa.field(name, pa.list_(pa.int32())))
        encoded = map_chunks(partial(encode, vocabularies=vocabularies), _select(text.rows, kept))
        rows = write_rows(folder, schema, encoded, "encoding data.train")
        counts = {"empty": text.empty, **dropped, **count_words(rows), **types}
        return {"vocabularies": [each.state() for each in vocabularies], "counts": counts}

    rows, facts = build_once(Path(data.cache), f"pairs-{fingerprint}", build)
    source, target = map(load_vocabulary, facts["vocabularies"])
    counts, cap = facts["counts"], data.max_length
    train = Pairs("train", rows, (source, target), counts, fingerprint, cap)
    if not len(train):
        raise InputError(f"data.max_length={cap}: no training pair is that short on both sides")
    return train


def held_out_pairs(name: str, text: Text, vocabularies: Vocabularies) -> Pairs:
    """Development or test pairs, all of them, encoded in memory."""
    rows = encode(text.rows, vocabularies)
    counts = {"empty": text.empty, **count_words(rows)}
    return Pairs(name, rows, vocabularies, counts, text.fingerprint)


def filter_pairs(rows: pa.Table, filters: FilterConfig) -> tuple[Array, dict[str, int]]:
    """Which pairs pass all filters, and how many each filter drops of those that reach it.

    Duplicates are recognised by a 64-bit hash: any two of 40 million different pairs have the same
    one with a probability of 4 in 100,000.

    Returns:
        (rows,) bool, and the number of pairs by filter.
    """
    kept = np.ones(len(rows), bool)
    dropped = {}

    def drop(name: str, failed: Array) -> None:
        nonlocal kept
        if number := np.count_nonzero(failed & kept):
            dropped[name] = int(number)
            kept &= ~failed

    if filters.length_ratio:
        words = [rows.column(name).to_numpy() for name in WORDS.values()]
        drop("length_ratio", np.maximum(*words) > filters.length_ratio * np.minimum(*words))
    if filters.identical:
        drop("identical", pc.equal(*map(rows.column, SIDES)).to_numpy())
    if filters.duplicates != "none":
        sides = SIDES if filters.duplicates == "pair" else (filters.duplicates,)
        frames = [batch.to_pandas() for batch in rows.select(sides).to_batches()]
        hashes = pd.concat([pd.util.hash_pandas_object(frame, index=False) for frame in frames])
        repeated = np.zeros(len(rows), bool)
        repeated[kept] = hashes[kept].duplicated()
        drop("duplicate", repeated)
    return kept, dropped


def _select(rows: pa.Table, kept: Array) -> Iterator[pa.RecordBatch]:
    """The rows that are kept, a batch after the other."""
    start = 0
    for batch in rows.to_batches():
        yield batch.filter(pa.array(kept[start : start + len(batch)]))
        start += len(batch)


def _learn(
    rows: pa.Table, kept: Array, tokenizer: TokenizerConfig
) -> tuple[Vocabularies, dict[str, int]]:
    """The vocabularies of both sides, and the number of distinct words of each."""
    types = {}

    def learn(sides: Sequence[str], size: int) -> Vocabulary:
        batches = ((side, batch) for side in sides for batch in _select(rows, kept))
        sentences = (line for side, batch in batches for line in batch.column(side).to_pylist())
        if tokenizer.kind == BpeVocabulary.kind:
            return BpeVocabulary.learn(sentences, size)
        words = rank_words(sentences)
        types.update({f"{side}_types": len(words) for side in sides})
        return WordVocabulary(words[:size])

    log.info("learning vocabularies")
    if tokenizer.joint:
        joint = learn(SIDES, tokenizer.source_size)
        return (joint, joint), types
    source = learn(SIDES[:1], tokenizer.source_size)
    return (source, learn(SIDES[1:], tokenizer.target_size)), types
