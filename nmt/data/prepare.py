"""Text preparation: tokenised, filtered and encoded once, then read memory-mapped from the cache.

Two kinds of folders lie in the cache: `text-*` is a tokenised text (`nmt.data.text`), `pairs-*`
training text that has been filtered and encoded, with its vocabularies. The cap on length is applied
when they are opened, and test sets are encoded in memory, so that runs which differ in either share
the rest.
"""

from __future__ import annotations

import importlib.metadata
import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pandas as pd
import pyarrow.compute as pc

from nmt.config import DataConfig, FilterConfig, TextConfig, TokenizerConfig
from nmt.data.cache import Facts, build_once, processes
from nmt.data.pairs import Array, Pairs, encode
from nmt.data.sources import SIDES, digest, leave_out_absent
from nmt.data.text import tokenise_text
from nmt.data.vocabulary import (
    UNKNOWN,
    BpeVocabulary,
    Vocabularies,
    Vocabulary,
    WordVocabulary,
    load_vocabulary,
    rank_words,
)
from nmt.utils.environment import rank
from nmt.utils.errors import InputError
from nmt.utils.progress import has_terminal

log = logging.getLogger(__name__)

FORMAT = 4
CHUNK = 10_000  # rows that are looked at together


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
    progress: bool = True,
    vocabularies: Vocabularies | None = None,
) -> Prepared:
    """Tokenises and encodes the text and learns vocabularies, or takes the results from the cache.

    Args:
        data: section `data` of the configuration.
        tokenizer: section `tokenizer`.
        progress: show progress bars (on stderr).
        vocabularies: of a trained model, to encode with; None: they are learnt from the text.

    Raises:
        InputError: if the configuration or a text is wrong.
        RunError: if the disk is full.
    """
    leave_out_absent(data)
    _show_progress(progress)
    train = _training_pairs(data, tokenizer, vocabularies)
    known = train.source_vocabulary, train.target_vocabulary

    def held_out(text: TextConfig, key: str) -> Pairs:
        return prepare_test_set(text, data, key, known, tokenizer, progress)

    valid = held_out(data.valid, "data.valid")
    test = {name: held_out(text, f"data.test.{name}") for name, text in data.test.items()}
    return Prepared(train, valid, test)


def prepare_test_set(
    text: TextConfig,
    data: DataConfig,
    key: str,
    vocabularies: Vocabularies,
    tokenizer: TokenizerConfig,
    progress: bool = True,
) -> Pairs:
    """Pairs to measure a model on, encoded with the vocabularies that it was trained with.

    Args:
        text: section of the configuration that describes the text.
        data: section `data`, for languages and cache.
        key: name of the section, such as `data.test.mine`; its last part names the split, and
            `data.valid` means the development pairs of the grammar.
        vocabularies: the model's, of source and target.
        tokenizer: as in training.
        progress: show progress bars.

    Raises:
        InputError: if the text cannot be read.
    """
    _show_progress(progress)
    rows, lines, fingerprint = tokenise_text(text, data, key, tokenizer)
    rows = encode(rows, vocabularies, keep_in_memory=True, new_fingerprint=fingerprint)
    counts = {"empty": lines - len(rows), **_count(rows)}
    return Pairs(
        key.removeprefix("data.").removeprefix("test."), rows, vocabularies, counts, fingerprint
    )


def _show_progress(shown: bool) -> None:
    """Lets `datasets` draw progress bars on rank 0, if there is a terminal."""
    if not (shown and has_terminal() and rank() == 0):
        datasets.disable_progress_bars()


def _count(rows: datasets.Dataset) -> dict[str, Any]:
    """Words of each side, and the share of its ids but for END that are UNKNOWN."""
    counts = {}
    for side in SIDES:
        ids = pc.list_flatten(rows.data.column(f"{side}_ids"))
        unknown = pc.sum(pc.equal(ids, UNKNOWN)).as_py()
        counts[f"{side}_words"] = pc.sum(rows.data.column(f"{side}_words")).as_py()
        counts[f"{side}_unknown"] = unknown / (len(ids) - len(rows))
    return counts


def _training_pairs(
    data: DataConfig, tokenizer: TokenizerConfig, given: Vocabularies | None
) -> Pairs:
    """The training pairs, filtered and encoded with the vocabularies that are learnt, or given."""
    text, lines, fingerprint = tokenise_text(data.train, data, "data.train", tokenizer)
    settings: list[Any] = [tokenizer.kind, tokenizer.source_size, tokenizer.target_size]
    settings.append(tokenizer.joint)
    if given is not None:
        settings = [vocabulary.state() for vocabulary in given]
    version = importlib.metadata.version("tokenizers")
    fingerprint = digest(FORMAT, fingerprint, asdict(data.filters), settings, version)

    def build(folder: Path) -> Facts:
        rows, dropped = filter_pairs(text, data.filters)
        if not len(rows):
            raise InputError(f"data.filters: none of {len(text):,} pairs is left")
        log.info("learning vocabularies")
        vocabularies, types = _learn(rows, tokenizer) if given is None else (given, {})
        log.info("encoding data.train")
        rows = encode(
            rows,
            vocabularies,
            num_proc=processes(len(rows)),
            cache_file_name=str(folder / "pairs.arrow"),
            new_fingerprint=fingerprint,
        )
        counts = {"empty": lines - len(text), **dropped, **_count(rows), **types}
        states = [vocabulary.state() for vocabulary in vocabularies]
        return {"vocabularies": states, "counts": counts}

    rows, facts = build_once(Path(data.cache), f"pairs-{fingerprint}", build)
    source, target = map(load_vocabulary, facts["vocabularies"])
    counts, cap = facts["counts"], data.max_length
    train = Pairs("train", rows, (source, target), counts, fingerprint, cap)
    if not len(train):
        raise InputError(f"data.max_length={cap}: no training pair is that short on both sides")
    return train


def filter_pairs(
    rows: datasets.Dataset, filters: FilterConfig
) -> tuple[datasets.Dataset, dict[str, int]]:
    """The pairs that pass all filters, and how many each filter drops of those that reach it.

    Duplicates are recognised by a 64-bit hash: any two of 40 million different pairs have the same
    one with a probability of 4 in 100,000.
    """
    kept = np.arange(len(rows))
    dropped = {}

    def drop(name: str, failed: Array) -> None:
        nonlocal kept
        if failed.any():
            dropped[name] = int(np.count_nonzero(failed))
            kept = kept[~failed]

    if filters.length_ratio:
        words = [rows.data.column(f"{side}_words").to_numpy() for side in SIDES]
        drop("length_ratio", np.maximum(*words) > filters.length_ratio * np.minimum(*words))
    if filters.identical:
        source, target = (rows.data.column(side) for side in SIDES)
        drop("identical", pc.equal(source, target).to_numpy()[kept])
    if filters.duplicates != "none":
        sides = SIDES if filters.duplicates == "pair" else (filters.duplicates,)
        frames = rows.select_columns(list(sides)).with_format("pandas").iter(CHUNK)
        hashes = [pd.util.hash_pandas_object(frame, index=False) for frame in frames]
        drop("duplicate", pd.concat(hashes).iloc[kept].duplicated().to_numpy())
    return (rows.select(kept) if dropped else rows), dropped


def _learn(
    rows: datasets.Dataset, tokenizer: TokenizerConfig
) -> tuple[Vocabularies, dict[str, int]]:
    """The vocabularies of both sides, and the number of distinct words of each."""
    types = {}

    def learn(sides: Sequence[str], size: int) -> Vocabulary:
        sentences = (sentence for side in sides for sentence in _sentences(rows, side))
        if tokenizer.kind == BpeVocabulary.kind:
            return BpeVocabulary.learn(sentences, size)
        words = rank_words(sentences)
        types.update({f"{side}_types": len(words) for side in sides})
        return WordVocabulary(words[:size])

    if tokenizer.joint:
        joint = learn(SIDES, tokenizer.source_size)
        return (joint, joint), types
    source = learn(SIDES[:1], tokenizer.source_size)
    return (source, learn(SIDES[1:], tokenizer.target_size)), types


def _sentences(rows: datasets.Dataset, side: str) -> Iterator[str]:
    for batch in rows.select_columns([side]).iter(CHUNK):
        yield from batch[side]
