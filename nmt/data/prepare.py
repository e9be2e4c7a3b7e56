"""Text preparation: tokenised, filtered and encoded once, then read memory-mapped from the cache.

Two kinds of folders lie in the cache: `text-*` is a tokenised text (`nmt.data.tokenised`), `pairs-*`
training text with its vocabularies, encoded (`nmt.data.encode`). The cap on length is applied when
they are opened, and test sets are encoded in memory, so that runs which differ in either share the
rest.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import datasets
import numpy as np

from nmt.config import DataConfig, TextConfig, TokenizerConfig
from nmt.data.encode import REASONS, EncodedText, encode_text
from nmt.data.pairs import Pairs
from nmt.data.sources import digest, leave_out_absent, text_sections
from nmt.data.tokenised import TokenisedText, tokenise_text
from nmt.data.vocabulary import SPECIAL, UNKNOWN, WORDS, Vocabularies, Vocabulary
from nmt.utils.environment import rank
from nmt.utils.errors import InputError
from nmt.utils.progress import has_terminal

LONGEST = np.iinfo(np.uint16).max  # lengths are kept in 16 bits; more is beyond any cap on length


@dataclass(frozen=True)
class Prepared:
    """The prepared text of a run.

    Attributes:
        source_vocabulary: learnt from the filtered training text, whatever the cap on length; or
            given.
        target_vocabulary: as `source_vocabulary`.
        train: pairs within the cap on length.
        valid: development pairs.
        test: test sets by name, in the order of the configuration.
        counts: by split (`train`, `valid`, `test.NAME`): `lines` read, `empty` and `too_long` (left
            out), `pairs` (kept), and of each side the words and the share of them that is `<unk>`
            (of the training text before the cap); of the training text also `dropped`, by reason.
        types: distinct words of source and target; None if they were not counted.
        fingerprints: of each split.
        fingerprint: of all that training depends on: training and development text, tokenisation
            and vocabularies, but not the test sets.
    """

    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    train: Pairs
    valid: Pairs
    test: dict[str, Pairs]
    counts: dict[str, dict[str, Any]]
    types: tuple[int | None, int | None]
    fingerprints: dict[str, str]
    fingerprint: str

    def identified(self) -> dict[str, Any]:
        """The fingerprints that results.json holds: of the training text, and of each test set."""
        sets = {name: self.fingerprints[f"test.{name}"] for name in self.test}
        return {"training": self.fingerprint, "test": sets}

    def summary(self) -> str:
        """A table of the counts."""
        width = max(map(len, [*self.counts, "split"]))
        lines = [
            f"{'split':<{width}} {'pairs':>10} {'empty':>8} {'too long':>9}"
            f" {'words (source / target)':>23} {'unknown':>17}"
        ]
        for name, count in self.counts.items():
            words = f"{count['source_words']:,} / {count['target_words']:,}"
            unknown = f"{count['source_unknown']:.2%} / {count['target_unknown']:.2%}"
            lines.append(
                f"{name:<{width}} {count['pairs']:>10,} {count['empty']:>8,}"
                f" {count['too_long']:>9,} {words:>23} {unknown:>17}"
            )
        vocabularies = (self.source_vocabulary, self.target_vocabulary)
        for side, vocabulary, types in zip(
            ("source", "target"), vocabularies, self.types, strict=True
        ):
            symbols = "words" if vocabulary.kind == WORDS else "subwords"
            of = f" of {types:,} types" if types else ""
            size = len(vocabulary) - len(SPECIAL)
            lines.append(f"{side} vocabulary: {size:,} {symbols}{of}, </s> and <unk>")
        dropped = self.counts["train"]["dropped"].items()
        listed = ", ".join(f"{name} {count:,}" for name, count in dropped) or "none"
        lines.append(f"training pairs left out by data.filters: {listed}")
        return "\n".join([*lines, f"fingerprint: {self.fingerprint}"])


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
    with progress_bars(progress):
        texts = {
            key.removeprefix("data."): tokenise_text(section, data, key, tokenizer)
            for key, section in text_sections(data).items()
        }
        encoded = encode_text(texts["train"], data, tokenizer, vocabularies)
    vocabularies = encoded.vocabularies
    train, counts = _train(texts["train"], encoded, data.max_length)
    pairs = {
        name: _encode(name, text, vocabularies) for name, text in texts.items() if name != "train"
    }
    fingerprints = {name: text.fingerprint for name, text in texts.items()}
    return Prepared(
        *vocabularies,
        train=train,
        valid=pairs["valid"],
        test={each.name: each for name, each in pairs.items() if name != "valid"},
        counts={"train": counts}
        | {name: _counts(each, texts[name]) for name, each in pairs.items()},
        types=(encoded.counts["source_types"], encoded.counts["target_types"]),
        fingerprints=fingerprints,
        fingerprint=digest(encoded.fingerprint, fingerprints["valid"]),
    )


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
    with progress_bars(progress):
        tokenised = tokenise_text(text, data, key, tokenizer)
    return _encode(key.removeprefix("data."), tokenised, vocabularies)


def _train(
    text: TokenisedText, encoded: EncodedText, max_length: int
) -> tuple[Pairs, dict[str, Any]]:
    """The training pairs within the cap on length, and the counts of the text."""
    words = [text.rows.data.column(f"{side}_words").to_numpy() for side in ("source", "target")]
    columns = [*words, *(column.sizes() for column in encoded.ids)]
    sizes = np.stack([np.minimum(column, LONGEST).astype(np.uint16) for column in columns], axis=1)
    unfiltered = encoded.reasons == 0
    kept = np.flatnonzero(unfiltered & (sizes[:, :2].max(axis=1) <= max_length)).astype(np.int32)
    if not len(kept):
        raise InputError(
            f"data.max_length={max_length}: no training pair is that short on both sides"
        )
    dropped = np.bincount(encoded.reasons, minlength=len(REASONS)).tolist()
    counts: dict[str, Any] = {
        "lines": text.lines,
        "empty": text.lines - len(text.rows),
        "dropped": {
            name: n for name, n in zip(REASONS, dropped, strict=True) if n and name != "kept"
        },
        "too_long": int(unfiltered.sum()) - len(kept),
        "pairs": len(kept),
    }
    for side, name in enumerate(("source", "target")):
        ids = columns[2 + side][unfiltered].sum(dtype=np.int64) - unfiltered.sum()
        counts[f"{name}_words"] = int(words[side][unfiltered].sum(dtype=np.int64))
        counts[f"{name}_unknown"] = encoded.counts[f"{name}_unknown"] / int(ids)
    return Pairs("train", text.rows, encoded.vocabularies, encoded.ids, sizes, kept), counts


def _encode(name: str, text: TokenisedText, vocabularies: Vocabularies) -> Pairs:
    return Pairs.encode(name.removeprefix("test."), text.rows, *vocabularies)


def _counts(pairs: Pairs, text: TokenisedText) -> dict[str, Any]:
    """Counts of a split that is not trained on: nothing of it is filtered or too long."""
    counts: dict[str, Any] = {"lines": text.lines, "empty": text.lines - len(pairs)}
    counts |= {"too_long": 0, "pairs": len(pairs)}
    for side, name in enumerate(("source", "target")):
        ids = np.concatenate([pairs.ids(number)[side] for number in range(len(pairs))])
        counts[f"{name}_words"] = int(pairs.words[:, side].sum(dtype=np.int64))
        counts[f"{name}_unknown"] = np.count_nonzero(ids == UNKNOWN) / (len(ids) - len(pairs))
    return counts


@contextlib.contextmanager
def progress_bars(shown: bool) -> Iterator[None]:
    """Whether `datasets` draws progress bars inside: on rank 0, if there is a terminal."""
    if (shown and has_terminal() and rank() == 0) or datasets.are_progress_bars_disabled():
        yield
        return
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        datasets.enable_progress_bars()
