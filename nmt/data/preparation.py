"""Tokenises and encodes text once, then reads it memory-mapped from the cache.

In the cache, each folder `text-*` holds a tokenised text. Each folder `pairs-*` holds an encoded
training text and its vocabularies. `data.max_length` is applied after a folder is read.
Development and test sets are encoded in memory. Runs that differ only in `data.max_length` or in these
sets therefore share the cached training text.
"""

from __future__ import annotations

import importlib.metadata
import itertools
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from nmt.config.schema import DataConfig, TextConfig, TokenizerConfig
from nmt.data.cache import Stored, filling, read_stored, write_facts, write_rows
from nmt.data.pairs import IDS, WORDS, Pairs, count_encoded, encode, held_out_pairs
from nmt.data.sources import CHUNK, SIDES, Pair, digest, open_source
from nmt.data.vocabulary import (
    BpeVocabulary,
    Vocabularies,
    Vocabulary,
    WordVocabulary,
    load_vocabulary,
    rank_words,
)
from nmt.text.tokenise import LANGUAGES, Tokeniser, split, tokeniser
from nmt.utils.errors import InputError
from nmt.utils.processes import follow_parent
from nmt.utils.startup import shared_cores
from nmt.utils.text import counted

log = logging.getLogger(__name__)

Chunk = TypeVar("Chunk")
Done = TypeVar("Done")

TEXT_FORMAT, PAIRS_FORMAT = 4, 5
MANY = 20  # minimum number of chunks for which several processes are faster
LOOKED_AT = 1000  # number of training pairs whose sides are compared
FEW = 5  # with fewer development pairs, warn
TEXT = pa.schema(
    [("line", pa.int64())]
    + [(side, pa.string()) for side in SIDES]
    + [(name, pa.int32()) for name in WORDS]
    + [("alignment", pa.string()), ("target_text", pa.string())]
)
PAIRS = pa.schema([*TEXT, *(pa.field(name, pa.list_(pa.int32())) for name in IDS.values())])

_function: Callable[[Any], Any]  # set in each worker process by `_start_worker`


@dataclass(frozen=True)
class Prepared:
    """The prepared text of a run.

    Attributes:
        train: training pairs within `data.max_length`.
        valid: development pairs.
        test: test sets by name, in the order of the configuration.
    """

    train: Pairs
    valid: Pairs
    test: dict[str, Pairs]

    @property
    def vocabularies(self) -> Vocabularies:
        """The given vocabularies, or those learnt from training pairs of any length."""
        return self.train.vocabularies

    @property
    def fingerprint(self) -> str:
        """Digest of training and development text, tokenisation and vocabularies, but not of test sets."""
        return digest(self.train.fingerprint, self.valid.fingerprint)

    def identified(self) -> dict[str, Any]:
        """Returns the fingerprints of the training and development text, and of each test set, for results.json."""
        sets = {name: pairs.fingerprint for name, pairs in self.test.items()}
        return {"training": self.fingerprint, "test": sets}

    def doubts(self) -> Iterator[str]:
        """Yields a message for each sign that files were mistaken for one another, or that one is cut short."""
        first = range(min(len(self.train), LOOKED_AT))
        identical = sum(self.train[row]["source"] == self.train[row]["target"] for row in first)
        if identical > len(first) / 2:
            yield (
                f"data.train: {identical} of the first {len(first)} pairs have identical sides; "
                "are source and target the same file?"
            )
        for side in SIDES:
            if (unknown := self.valid.counts[f"{side}_unknown"]) > 0.5:
                yield (
                    f"data.valid.{side}: {unknown:.0%} of the words are unknown; "
                    "are source and target swapped, or is it another language?"
                )
        if len(self.valid) < FEW:
            yield f"data.valid: only {counted(len(self.valid), 'pair')} to choose the best checkpoint on"

    def summary(self) -> str:
        """Returns a table of the counts of each split."""
        splits = {"train": self.train, "valid": self.valid}
        splits |= {f"test.{name}": pairs for name, pairs in self.test.items()}
        rows = {
            name: {
                key.replace("_", " "): f"{count:.2%}" if isinstance(count, float) else f"{count:,}"
                for key, count in pairs.counts.items()
            }
            for name, pairs in splits.items()
        }
        import pandas as pd  # imported late: the first preparation need not wait for it

        table = pd.DataFrame.from_dict(rows, orient="index").to_string(na_rep="")
        source, target = map(len, self.vocabularies)
        sizes = f"{source:,} and {target:,} symbols"
        return f"{table}\nvocabularies: {sizes}\nfingerprint: {self.fingerprint}"


def prepare(
    data: DataConfig,
    tokenizer: TokenizerConfig,
    vocabularies: Vocabularies | None = None,
    fingerprint: str | None = None,
) -> Prepared:
    """Tokenises and encodes text and learns vocabularies, or reads the results from the cache.

    Args:
        data, tokenizer: sections of the configuration.
        vocabularies: vocabularies of a trained model; None: they are learnt from the text.
        fingerprint: fingerprint of the text that a model was trained on; None: any text.

    Raises:
        InputError: if the configuration or a text is invalid, or if the text has another fingerprint.
        RunError: if the disk is full.
    """
    texts = {"train": data.train, "valid": data.valid}
    texts |= {f"test.{name}": text for name, text in data.test.items()}
    tokenised = {name: tokenise_text(text, data, f"data.{name}") for name, text in texts.items()}
    train = training_pairs(tokenised.pop("train"), data, tokenizer, vocabularies)
    valid, *tests = [
        held_out_pairs(name.removeprefix("test."), text, train.vocabularies)
        for name, text in tokenised.items()
    ]
    text = Prepared(train, valid, {pairs.name: pairs for pairs in tests})
    if fingerprint not in (None, text.fingerprint):
        raise InputError(
            "the training or development text differs from the checkpoint's; restore the text, or "
            "start a new run"
        )
    return text


def tokenise_text(text: TextConfig, data: DataConfig, key: str) -> Stored:
    """Tokenises the text of a section `key`, such as `data.test.mine`, or reads it from the cache.

    Returns:
        Rows with the columns `line` (index of the pair, from 0), `source` and `target` (tokens joined
        by spaces), `source_words` and `target_words` (numbers of tokens), `alignment`, and
        `target_text` (raw; null in training text). The facts are `empty` (number of pairs dropped
        because a side has no words) and `fingerprint` (digest of everything that determines the rows).

    Raises:
        InputError: if the text is empty or cannot be read.
    """
    source = open_source(text, data, key)
    keep_text = key != "data.train"
    first, raw = text.skip or 0, not (text.tokenised or text.grammar)
    settings = [data.languages, raw, first, keep_text]
    version = importlib.metadata.version("sacremoses")
    fingerprint = digest(TEXT_FORMAT, source.identity, version, settings)
    cache, name = Path(data.cache), f"text-{fingerprint}"
    pairs = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal pairs
        tools = list(map(tokeniser, data.languages))
        work = partial(_tokenise, source.read, tools, raw, keep_text)
        for size, batch in map_chunks(work, zip(itertools.count(first, CHUNK), source.chunks)):
            pairs += size
            yield batch

    with filling(cache, name) as folder:
        if folder is not None:
            for language in data.languages:
                if raw and language not in LANGUAGES:
                    _warn_without_rules(language)
            rows = write_rows(folder, TEXT, batches(), f"preparing {key}")
            if not len(rows):
                raise InputError(f"{key}: empty corpus; none of {pairs} pairs has words")
            write_facts(folder, {"empty": pairs - len(rows), "fingerprint": fingerprint})
    return read_stored(cache, name)


@cache
def _warn_without_rules(language: str) -> None:
    log.warning("data.languages: Moses has no rules for %r; using the English rules", language)


def _tokenise(
    read: Callable[[Any], Sequence[Pair]],
    tools: Sequence[Tokeniser],
    raw: bool,
    keep_text: bool,
    numbered: tuple[int, Any],
) -> tuple[int, pa.RecordBatch]:
    """Tokenises a chunk of a text; `numbered` is the tuple (index of the first pair, chunk).

    Returns the number of pairs, and a row for each pair with words on both sides.
    """
    first, chunk = numbered
    pairs = read(chunk)
    rows = []
    for line, (source_text, target_text, alignment) in enumerate(pairs, first):
        if raw:
            source, target = (
                tools[0].tokenise(source_text or ""),
                tools[1].tokenise(target_text or ""),
            )
        else:
            source, target = split(source_text or ""), split(target_text or "")
        if source and target:
            text = None
            if keep_text:
                text = target_text if raw else tools[1].detokenise(target)
            words = len(source), len(target)
            rows.append((line, " ".join(source), " ".join(target), *words, alignment, text))
    columns = zip(*rows, strict=True) if rows else [()] * len(TEXT)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, TEXT, strict=True)]
    return len(pairs), pa.RecordBatch.from_arrays(arrays, schema=TEXT)


def training_pairs(
    text: Stored, data: DataConfig, tokenizer: TokenizerConfig, given: Vocabularies | None
) -> Pairs:
    """Encodes the training pairs with given or newly learnt vocabularies."""
    sizes = [tokenizer.kind, tokenizer.source_size, tokenizer.target_size]
    settings = [vocabulary.state() for vocabulary in given] if given else sizes
    version = importlib.metadata.version("tokenizers")
    fingerprint = digest(PAIRS_FORMAT, text.facts["fingerprint"], settings, version)
    cache, name = Path(data.cache), f"pairs-{fingerprint}"
    with filling(cache, name) as folder:
        if folder is not None:
            vocabularies, types = (given, {}) if given else _learn(text.rows, tokenizer)
            encode_chunk = partial(encode, vocabularies=vocabularies)
            encoded = map_chunks(encode_chunk, text.rows.to_batches())
            rows = write_rows(folder, PAIRS, encoded, "encoding data.train")
            counts = {"empty": text.facts["empty"], **count_encoded(rows), **types}
            states = [each.state() for each in vocabularies]
            write_facts(folder, {"vocabularies": states, "counts": counts})
    rows, facts = read_stored(cache, name)
    source, target = map(load_vocabulary, facts["vocabularies"])
    counts = facts["counts"]
    cap = data.max_length
    train = Pairs("train", rows, (source, target), counts, fingerprint, cap)
    if not len(train):
        raise InputError(f"data.max_length={cap}: no training pair is short enough on both sides")
    return train


def _learn(rows: pa.Table, tokenizer: TokenizerConfig) -> tuple[Vocabularies, dict[str, int]]:
    """Learns the vocabularies of both sides, and counts the distinct words of each side."""
    types = {}

    def learn(side: str, size: int) -> Vocabulary:
        sentences = (line for batch in rows.to_batches() for line in batch.column(side).to_pylist())
        if tokenizer.kind == BpeVocabulary.kind:
            return BpeVocabulary.learn(sentences, size)
        words = rank_words(sentences)
        types[f"{side}_types"] = len(words)
        return WordVocabulary(words[:size])

    log.info("learning vocabularies")
    sizes = (tokenizer.source_size, tokenizer.target_size)
    source, target = map(learn, SIDES, sizes)
    return (source, target), types


def map_chunks(function: Callable[[Chunk], Done], chunks: Iterable[Chunk]) -> Iterator[Done]:
    """Yields `map(function, chunks)` in order; uses one process per core if there are many chunks.

    Only a few chunks are in memory at a time.
    """
    chunks = iter(chunks)
    cores = shared_cores()
    first = list(itertools.islice(chunks, MANY))
    chunks = itertools.chain(first, chunks)
    if cores == 1 or len(first) < MANY:
        yield from map(function, chunks)
        return
    with ProcessPoolExecutor(cores, initializer=_start_worker, initargs=(function,)) as pool:
        pending = deque(pool.submit(_work, chunk) for chunk in itertools.islice(chunks, 4 * cores))
        while pending:
            yield pending.popleft().result()
            pending.extend(pool.submit(_work, chunk) for chunk in itertools.islice(chunks, 1))


def _start_worker(function: Callable[[Any], Any]) -> None:
    global _function
    _function = function
    follow_parent()


def _work(chunk: Any) -> Any:
    return _function(chunk)
