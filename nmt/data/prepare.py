"""Text preparation: tokenised, filtered and encoded once, then read memory-mapped from the cache.

Three kinds of folders lie in the cache. `text-*` is a tokenised corpus (`nmt.data.tokenised`),
`filtered-*` what filters left of one (`nmt.data.filters`), `pairs-*` training text encoded with the
vocabularies learnt from it, or with given ones, with a manifest. The cap on length is applied when
they are opened, and test sets are encoded in memory, so that runs which differ in either share the
rest.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from datasets.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

from nmt.config import DataConfig, TextConfig, TokenizerConfig
from nmt.config.validation import check_text
from nmt.data.encode import encode_text
from nmt.data.filters import filter_text
from nmt.data.sources import digest, open_corpus, text_sections
from nmt.data.splits import HeldOut, Train
from nmt.data.tokenised import TokenisedText, tokenise_corpus
from nmt.data.vocabulary import UNKNOWN, WORDS, Vocabularies, Vocabulary
from nmt.utils.environment import rank
from nmt.utils.errors import InputError
from nmt.utils.progress import Stage, has_terminal


@dataclass(frozen=True)
class Prepared:
    """The prepared text of a run.

    Attributes:
        source_vocabulary: learnt from the whole training side, whatever the cap on length; or given.
        target_vocabulary: as `source_vocabulary`.
        train: pairs that obey the cap.
        valid: development pairs.
        test: test sets by name, in the order of the configuration.
        manifest: counts, plain values: `vocabulary.<side>` (`kind`, `size`, `types`), `max_length`,
            and `splits.<name>`: `lines`, `empty` and `too_long` (left out), `pairs` (kept), and for
            each side `<side>_words` and `<side>_unknown` (share of the words outside the
            vocabulary; of the training split before the cap); of the training split also
            `dropped`, by reason.
        fingerprints: one for each split, by name (`train`, `valid`, `test.<name>`).
        fingerprint: of all that training depends on: training and development text, tokenisation
            and vocabularies. Test sets do not enter.
    """

    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    train: Train
    valid: HeldOut
    test: dict[str, HeldOut]
    manifest: dict[str, Any]
    fingerprints: dict[str, str]
    fingerprint: str

    def identified(self) -> dict[str, Any]:
        """The fingerprints that results.json holds: of the training text, and of each test set."""
        sets = {name: self.fingerprints[f"test.{name}"] for name in self.test}
        return {"training": self.fingerprint, "test": sets}

    def summary(self) -> str:
        """A short table of counts."""
        return summary_table(self.manifest, self.fingerprint)


def prepare(
    data: DataConfig,
    tokenizer: TokenizerConfig,
    progress: bool = True,
    vocabularies: Vocabularies | None = None,
) -> Prepared:
    """Reads, tokenises and encodes the text and learns vocabularies, or takes the results from the cache.

    Args:
        data: section `data` of the configuration.
        tokenizer: section `tokenizer`.
        progress: show progress bars (on stderr).
        vocabularies: of a trained model, to encode with; None: they are learnt from the text.

    Raises:
        InputError: if the configuration or a text is wrong.
        RunError: if the disk is full.
    """
    check_text(data, tokenizer)
    cache = Path(data.cache)
    with progress_bars(progress):
        with _stage("preparing data.train", progress):
            text = _tokenised(data.train, data, "data.train", tokenizer)
        with _stage("filtering data.train", progress):
            text = filter_text(text, data.filters, cache)
        with _stage("encoding data.train", progress):
            encoded = encode_text(text, tokenizer, cache, progress, vocabularies)
        source, target = encoded.source_vocabulary, encoded.target_vocabulary
        train = Train(
            cast(Any, text.rows), source, target, encoded.rows, encoded.lengths, data.max_length
        )
        if not len(train):
            raise InputError(
                f"data.max_length={data.max_length}: no training pair is that short on both sides"
            )
        held_out = {
            key.removeprefix("data."): prepare_held_out(
                section, data, key, source, target, tokenizer=tokenizer, progress=progress
            )
            for key, section in text_sections(data).items()
            if key != "data.train"
        }
    counts = dict(encoded.counts)
    counts |= {"too_long": len(text.rows) - len(train), "pairs": len(train)}
    manifest = {
        "vocabulary": counts.pop("vocabulary"),
        "max_length": data.max_length,
        "splits": {"train": counts} | {k: _counts(split, t) for k, (split, t) in held_out.items()},
    }
    fingerprints = {"train": text.fingerprint}
    fingerprints |= {name: tokenised.fingerprint for name, (_, tokenised) in held_out.items()}
    return Prepared(
        source_vocabulary=source,
        target_vocabulary=target,
        train=train,
        valid=held_out.pop("valid")[0],
        test={split.name: split for split, _ in held_out.values()},
        manifest=manifest,
        fingerprints=fingerprints,
        fingerprint=digest(encoded.fingerprint, fingerprints["valid"]),
    )


def prepare_held_out(
    text: TextConfig,
    data: DataConfig,
    key: str,
    source_vocabulary: Vocabulary,
    target_vocabulary: Vocabulary,
    *,
    tokenizer: TokenizerConfig,
    progress: bool = True,
) -> tuple[HeldOut, TokenisedText]:
    """Pairs to measure a model on, encoded with the vocabularies that it was trained with.

    Args:
        text: section of the configuration that describes the text.
        data: section `data`, for languages, grammar and cache.
        key: name of the section, such as `data.test.mine`; its last part names the split, and
            `data.valid` means the development pairs of the grammar.
        source_vocabulary: the model's.
        target_vocabulary: the model's.
        tokenizer: as in training.
        progress: show progress bars.

    Raises:
        InputError: if the text cannot be read.
    """
    with progress_bars(progress), _stage(f"preparing {key}", progress):
        tokenised = _tokenised(text, data, key, tokenizer)
    name = key.removeprefix("data.").removeprefix("test.")
    rows = cast(Any, tokenised.rows)
    return HeldOut(name, rows, source_vocabulary, target_vocabulary, tokenised.lines), tokenised


def summary_table(manifest: Mapping[str, Any], fingerprint: str) -> str:
    """A short table of counts; `manifest` as `Prepared` has it."""
    splits = manifest["splits"]
    width = max(map(len, [*splits, "split"]))
    lines = [
        f"{'split':<{width}} {'pairs':>10} {'empty':>8} {'too long':>9}"
        f" {'words (source / target)':>23} {'unknown':>17}"
    ]
    for name, counts in splits.items():
        words = f"{counts['source_words']:,} / {counts['target_words']:,}"
        unknown = f"{100 * counts['source_unknown']:.2f} / {100 * counts['target_unknown']:.2f} %"
        lines.append(
            f"{name:<{width}} {counts['pairs']:>10,} {counts['empty']:>8,}"
            f" {counts['too_long']:>9,} {words:>23} {unknown:>17}"
        )
    for side, counts in manifest["vocabulary"].items():
        of = f" of {counts['types']:,} types" if counts["types"] else ""
        symbols = "words" if counts["kind"] == WORDS else "subwords"
        lines.append(f"{side} vocabulary: {counts['size']:,} {symbols}{of}, </s> and <unk>")
    dropped = splits["train"]["dropped"].items()
    filtered = ", ".join(f"{name} {count:,}" for name, count in dropped) or "none"
    lines.append(f"training pairs left out by data.filters: {filtered}")
    lines.append(f"fingerprint: {fingerprint}")
    return "\n".join(lines)


def _counts(split: HeldOut, text: TokenisedText) -> dict[str, Any]:
    """Counts of a split that a model is measured on: nothing of it is filtered or too long."""
    counts: dict[str, Any] = {"lines": text.lines, "empty": text.empty}
    counts |= {"too_long": 0, "pairs": len(split)}
    pairs = [split.ids(number) for number in range(len(split))]
    for side, name in enumerate(("source", "target")):
        ids = np.concatenate([pair[side] for pair in pairs])
        counts[f"{name}_words"] = int(split.words[:, side].sum(dtype=np.int64))
        counts[f"{name}_unknown"] = np.count_nonzero(ids == UNKNOWN) / (len(ids) - len(split))
    return counts


@contextlib.contextmanager
def progress_bars(shown: bool) -> Iterator[None]:
    """Whether `datasets` draws progress bars inside: on rank 0, if there is a terminal."""
    if (shown and has_terminal() and rank() == 0) or are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()


def _stage(title: str, progress: bool) -> Stage:
    """A stage that logs lines where `datasets` draws no bars."""
    return Stage(title, shown=progress and not has_terminal())


def _tokenised(
    text: TextConfig, data: DataConfig, key: str, tokenizer: TokenizerConfig
) -> TokenisedText:
    split = {"data.train": "train", "data.valid": "valid"}.get(key, "test")
    source, target = data.languages
    corpus = open_corpus(text, data, key, split)
    return tokenise_corpus(
        corpus, (source, target), tokenizer, cache=Path(data.cache), raw=split != "train"
    )
