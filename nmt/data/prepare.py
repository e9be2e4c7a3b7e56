"""Text preparation: tokenised, filtered and encoded once, then read memory-mapped from the cache.

Three kinds of folders lie in the cache. `text-*` is a tokenised corpus (`nmt.data.tokenised`),
`filtered-*` what filters left of one (`nmt.data.filtering.filters`), `pairs-*` training text encoded with the
vocabularies learnt from it, or with given ones, with a manifest. The cap on length is applied when they are opened, and
test sets are encoded in memory, so that runs which differ in either share the rest.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from datasets.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

from nmt.config import DataConfig, TextConfig, TokenizerConfig
from nmt.config.validation import check_text
from nmt.data import manifest
from nmt.data.encode import Vocabularies, encode_text
from nmt.data.filtering.filters import check_filters, filter_text
from nmt.data.sources.corpus import digest
from nmt.data.sources.open import open_corpus, text_sections
from nmt.data.splits import HeldOut, Train
from nmt.data.tokenised import TokenisedText, tokenise_corpus
from nmt.data.vocabulary import Vocabulary
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
            `selection`, and `splits.<name>`: `lines`, `empty` and `too_long` (left out), `pairs`
            (kept), and for each side `<side>_words` and `<side>_unknown` (share of the words
            outside the vocabulary; of the training split before the cap); of the training split
            also `dropped`, by reason.
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
        """The fingerprints that results.json holds: of all that is learnt from, and of each test set."""
        sets = {name: self.fingerprints[f"test.{name}"] for name in self.test}
        return {"training": self.fingerprint, "test": sets}

    def summary(self) -> str:
        """A short table of counts, for people."""
        return manifest.summary_table(self.manifest, self.fingerprint)


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
        InputError: where the configuration or a text is wrong.
        RunError: where the disk is full.
    """
    check_text(data, tokenizer)
    check_filters(data)
    with progress_bars(progress):
        normalise, in_domain = tokenizer.normalise, None
        if data.selection != "none":  # the small text first: what is wrong with it shows at once
            with _stage("preparing data.in_domain", progress):
                in_domain = _tokenised(data.in_domain, data, "data.in_domain", normalise)
        with _stage("preparing data.train", progress):
            text = _tokenised(data.train, data, "data.train", normalise)
        with _stage("filtering data.train", progress):
            text = filter_text(text, data, in_domain)
        with _stage("encoding data.train", progress):
            encoded = encode_text(
                text, tokenizer, Path(data.cache), progress, data.verify, vocabularies
            )
        counts = encoded.counts
        train = Train(
            cast(Any, text.rows),
            encoded.source_vocabulary,
            encoded.target_vocabulary,
            encoded.ids(),
            encoded.lengths,
            data.max_length,
        )
        words = encoded.lengths[:, :2]
        manifest.write_manifest(encoded.folder, data, tokenizer, text, counts, words)
        if not len(train):
            raise InputError(
                f"data.max_length={data.max_length}: no training pair is that short on both sides"
            )
        held_out = {
            key: prepare_held_out(
                section,
                data,
                key,
                encoded.source_vocabulary,
                encoded.target_vocabulary,
                normalise=tokenizer.normalise,
                progress=progress,
            )
            for key, section in text_sections(data).items()
            if key not in ("data.train", "data.in_domain")
        }
    valid, *tests = held_out.values()
    splits = {key.removeprefix("data."): split for key, (split, _) in held_out.items()}
    counted = {
        "vocabulary": counts["vocabulary"],
        "max_length": data.max_length,
        "selection": data.selection,
        "splits": {
            "train": {
                "lines": text.lines,
                "empty": text.empty,
                "dropped": dict(text.dropped),
                "too_long": len(text.rows) - len(train),
                "pairs": len(train),
                **counts["train"],
            },
            **{
                name: manifest.held_out_counts(split, tokenised)
                for (name, split), (_, tokenised) in zip(
                    splits.items(), held_out.values(), strict=True
                )
            },
        },
    }
    fingerprints = {"train": text.fingerprint} | {
        key.removeprefix("data."): tokenised.fingerprint for key, (_, tokenised) in held_out.items()
    }
    return Prepared(
        source_vocabulary=encoded.source_vocabulary,
        target_vocabulary=encoded.target_vocabulary,
        train=train,
        valid=valid[0],
        test={split.name: split for split, _ in tests},
        manifest=counted,
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
    normalise: bool = True,
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
        normalise: as in training.
        progress: show progress bars.

    Raises:
        InputError: where the text cannot be had.
    """
    with progress_bars(progress), _stage(f"preparing {key}", progress):
        tokenised = _tokenised(text, data, key, normalise)
    name = key.removeprefix("data.").removeprefix("test.")
    rows = cast(Any, tokenised.rows)
    split = HeldOut(name, rows, source_vocabulary, target_vocabulary, tokenised.lines)
    return split, tokenised


@contextlib.contextmanager
def progress_bars(shown: bool) -> Iterator[None]:
    """Whether `datasets` draws progress bars inside: on rank 0, where there is a terminal."""
    if (shown and has_terminal() and rank() == 0) or are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()


def _stage(title: str, progress: bool) -> Stage:
    """A stage of which lines are written where `datasets` draws no bars."""
    return Stage(title, shown=progress and not has_terminal())


def _tokenised(text: TextConfig, data: DataConfig, key: str, normalise: bool) -> TokenisedText:
    split = {"data.train": "train", "data.in_domain": "train", "data.valid": "valid"}.get(
        key, "test"
    )
    source, target = data.languages
    return tokenise_corpus(
        open_corpus(text, data, key, split),
        (source, target),
        cache=Path(data.cache),
        normalise=normalise,
        raw=split != "train",
        verify=data.verify,
    )
