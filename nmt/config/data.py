"""Keys of the text: where it comes from, what is left out of it, how it becomes batches of symbols."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nmt.config.keys import key


@dataclass
class TextConfig:
    """One parallel text: line-aligned files, or a published set fetched by a library."""

    source: str | None = key(None, "file of source sentences, one per line (plain or compressed)")
    target: str | None = key(
        None, "file of target sentences, line i the translation of line i of `source`"
    )
    alignment: str | None = key(
        None,
        "file of gold alignments in Pharaoh format (i-j sure, ipj possible); not for training text",
    )
    tokenised: bool = key(False, "the files hold tokens separated by spaces: only split them")
    files: list[str] | None = key(
        None,
        "files in data.root, read one after the other: train stands for train.en and train.fr, plain "
        "or .gz, .bz2, .xz, .zst; if they are missing, hub or sacrebleu is used where it is given",
    )
    hub: dict[str, Any] | None = key(
        None,
        "arguments of datasets.load_dataset (path, name, split, revision, …); path may be a folder of "
        "save_to_disk, and of several names the one that names data.languages is taken",
    )
    sacrebleu: list[str] | None = key(
        None,
        "sacrebleu test sets, such as [wmt12, wmt13], read one after the other; if they lack the "
        "languages, hub is used where it is given",
    )
    grammar: str | None = key(
        None,
        "drawn from the built-in grammar: with natural lengths, or equally many per length bucket",
        choices=("natural", "by_length"),
    )
    optional: bool = key(
        False, "leave the test set out, with a line that says so, if one of its files is missing"
    )
    skip: int | None = key(
        None, "number of pairs left out at the start, such as those of another set", minimum=1
    )
    pairs: int | None = key(
        None,
        "read at most this many pairs (built-in grammar: draw exactly this many)",
        minimum=1,
    )


@dataclass
class FilterConfig:
    """Filters of training pairs; all off by default."""

    length_ratio: float = key(
        0.0,
        "largest ratio of the words of the longer side to those of the shorter; 0: any",
        minimum=0,
    )
    identical: bool = key(False, "leave out pairs whose sides are identical")
    duplicates: str = key(
        "none",
        "leave out pairs whose source, target, or both (pair) occurred in an earlier pair",
        choices=("none", "pair", "source", "target"),
    )


@dataclass
class DataConfig:
    """The text an experiment runs on, and how it is cut into batches."""

    title: str = key("text", "the corpus' name in tables and figures")
    languages: list[str] = key(["en", "fr"], "source and target language, as Moses names them")
    root: str | None = key(
        None,
        "folder of local copies, where relative file names start",
        runtime=True,
    )
    train: Any = key({}, "training pairs, with the keys of `TextConfig`")
    valid: Any = key({}, "development pairs, with the same keys")
    test: dict[str, Any] = key({}, "test sets by name, each with the same keys", resumable=True)
    filters: FilterConfig = key(FilterConfig, "filters of training pairs")
    max_length: int = key(
        50,
        "longest training sentence, in words of either side before any subword split",
        minimum=1,
        maximum=65534,  # lengths are kept in 16 bits
    )
    batch_size: int = key(
        80,
        "sentence pairs per update, over all devices and accumulated micro-batches",
        minimum=1,
    )
    batch_tokens: int | None = key(
        None,
        "at most so many tokens per update, its sentences times the longest side of any, in place of "
        "batch_size sentences; null: batch_size, as in the paper",
        minimum=1,
    )
    pool: int = key(
        20,
        "batches' worth of pairs that are sorted by length together (a maxi-batch elsewhere)",
        minimum=1,
    )
    reverse_source: bool = key(
        False,
        "the encoder reads the source words from the last to the first; alignments and figures keep "
        "the order of the text",
    )
    pool_order: str = key(
        "ascending",
        "order of a pool's batches: by length, or random",
        choices=("ascending", "random"),
    )
    cache: str = key("data", "folder of prepared (tokenised and encoded) text", runtime=True)
    workers: int = key(
        0,
        "worker processes that prepare batches; 0: the training process itself",
        minimum=0,
        runtime=True,
    )


@dataclass
class TokenizerConfig:
    """How a line is split into the symbols of the model."""

    kind: str = key(
        "words",
        "words: shortlist of the most frequent words; bpe: subwords",
        choices=("words", "bpe"),
    )
    source_size: int = key(
        30000, "words (or subwords) of the source vocabulary, besides <unk> and </s>", minimum=1
    )
    target_size: int = key(
        30000, "words (or subwords) of the target vocabulary, besides <unk> and </s>", minimum=1
    )
    joint: bool = key(False, "one vocabulary of source_size learnt from both languages")
    normalise: bool = key(True, "Moses punctuation normalisation before tokenisation")
    characters: bool = key(
        False,
        "each character of scripts without spaces (Chinese, Japanese, Thai, …) is a token",
    )
