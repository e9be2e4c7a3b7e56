"""Keys of the text: where it comes from, what is left out of it, how it becomes batches of symbols."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nmt.config.keys import EDGES, key
from nmt.config.model import INITS


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
    alignment_base: int = key(0, "number of the first word in `alignment`", choices=(0, 1))
    tokenised: bool = key(False, "the files hold tokens separated by spaces: only split them")
    files: list[str] | None = key(
        None,
        "files in data.root, concatenated: train stands for train.en and train.fr, plain or .gz, .xz, "
        ".zst; if a published set is named too, it is used where they are missing",
    )
    hub: str | None = key(
        None,
        "data set for datasets.load_dataset, such as wmt/wmt14 or wmt/wmt14@COMMIT, or a folder that "
        "save_to_disk wrote",
    )
    hub_config: Any = key(
        None, "its configuration; of several, [cs-en, fr-en], the one named after data.languages"
    )
    hub_split: str | None = key(None, "its split, such as train")
    sacrebleu: list[str] | None = key(
        None,
        "sacrebleu test sets, such as [wmt12, wmt13], concatenated; if hub is named too, it is used "
        "for languages that they lack",
    )
    grammar: str | None = key(
        None,
        "sampled from the built-in grammar: with natural lengths, or equally many per length bucket",
        choices=("natural", "by_length"),
    )
    optional: bool = key(
        False, "of a test set: left out, with a line that says so, where a file of it is missing"
    )
    skip: int | None = key(
        None, "leave out so many pairs at the start, such as those of another set", minimum=1
    )
    pairs: int | None = key(
        None,
        "use at most this many pairs (built-in grammar: sample exactly this many)",
        minimum=1,
    )


@dataclass
class GrammarConfig:
    """Size and length distribution of the built-in corpus."""

    train_pairs: int = key(60000, "training pairs", minimum=1)
    valid_pairs: int = key(1000, "development pairs", minimum=1)
    test_pairs: int = key(1000, "pairs of the test set of natural lengths", minimum=1)
    by_length_pairs: int = key(1400, "pairs of the test set with equally full buckets", minimum=1)
    seed: int = key(
        1, "seed of the corpus; another seed is another corpus of the same language", minimum=0
    )
    mean_length: float = key(
        22.0, "mean number of source words with natural lengths", minimum=4, maximum=60
    )
    max_length: int = key(80, "longest sentence, in words of either side", minimum=10, maximum=200)
    edges: list[int] = key(
        list(EDGES),
        "last length of each equally full bucket; longer sentences form the open bucket",
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
        path=True,
        runtime=True,
    )
    train: Any = key({}, "training pairs, with the keys of `TextConfig`")
    valid: Any = key({}, "development pairs, with the same keys")
    test: dict[str, Any] = key({}, "test sets by name, each with the same keys", resumable=True)
    grammar: GrammarConfig = key(GrammarConfig, "settings of the built-in corpus")
    filters: FilterConfig = key(FilterConfig, "filters of training pairs")
    init: str = key(
        "glorot",
        "model.init recommended for the text; used by regime=laptop and tiny",
        choices=INITS,
    )
    source_shortlist: int = key(
        30000,
        "source shortlist recommended for the text; the default of tokenizer=words",
        minimum=1,
        runtime=True,  # the run's own number is tokenizer.source_size
    )
    target_shortlist: int = key(
        30000,
        "target shortlist recommended for the text; the default of tokenizer=words",
        minimum=1,
        runtime=True,
    )
    max_length: int = key(
        50,
        "longest training sentence, in words of either side before any subword split",
        minimum=1,
        maximum=65534,  # lengths are kept in 16 bits
    )
    batch_by: str = key(
        "sentences",
        "size of a batch: batch_size sentences (the paper), or at most batch_tokens tokens",
        choices=("sentences", "tokens"),
    )
    batch_size: int = key(
        80,
        "sentence pairs per update, over all devices and accumulated micro-batches",
        minimum=1,
        maximum=1_000_000,
    )
    batch_tokens: int = key(
        2400,
        "batch_by=tokens: most tokens per update: its sentences times the longest side of any",
        minimum=1,
        maximum=100_000_000,
    )
    pool: int = key(
        20,
        "batches' worth of pairs that are sorted by length together (a maxi-batch elsewhere)",
        minimum=1,
        maximum=1_000_000,
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
    cache: str = key(
        "data", "folder of prepared (tokenised and encoded) text", path=True, runtime=True
    )
    workers: int = key(
        0,
        "worker processes that prepare batches; 0: the training process itself",
        minimum=0,
        maximum=1024,
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
