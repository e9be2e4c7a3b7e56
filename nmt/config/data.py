"""Keys of the text: where it comes from, what is left out of it, how it becomes batches of symbols."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nmt.config.keys import EDGES, key
from nmt.config.model import INITS


@dataclass
class TextConfig:
    """One parallel text: line-aligned files, or a published set fetched by a library."""

    source: str | None = key(None, "file of source sentences, one a line (plain, .gz, .xz or .zst)")
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
        "files in data.root, put after one another: train stands for train.en and train.fr, or so "
        "with .gz, .xz or .zst; where a published set is named too, it serves if they are not there",
    )
    hub: str | None = key(None, "name of a data set for datasets.load_dataset, such as wmt/wmt14")
    hub_config: str | None = key(
        None, "its configuration, such as fr-en; pair: the one of hub_pairs for data.languages"
    )
    hub_pairs: list[str] | None = key(
        None, "pairs of languages that it has, such as [de-en, fr-en], in either direction"
    )
    hub_split: str | None = key(None, "its split, such as train")
    sacrebleu: list[str] | None = key(
        None,
        "sacrebleu test sets, such as [wmt12, wmt13], put after one another; where hub is named "
        "too, it serves for languages that one of them has not",
    )
    grammar: str | None = key(
        None,
        "drawn from the built-in grammar: at natural lengths, or as many in each length bucket",
        choices=("natural", "by_length"),
    )
    pairs: int | None = key(
        None,
        "use no more than this many pairs (built-in grammar: draw exactly this many)",
        minimum=1,
    )


@dataclass
class GrammarConfig:
    """Size of the built-in corpus and the distribution it is drawn from."""

    train_pairs: int = key(60000, "training pairs", minimum=1)
    valid_pairs: int = key(1000, "development pairs", minimum=1)
    test_pairs: int = key(1000, "pairs of the test set of natural lengths", minimum=1)
    by_length_pairs: int = key(1400, "pairs of the test set with equally full buckets", minimum=1)
    seed: int = key(
        1, "seed of the corpus; another seed is another corpus of the same language", minimum=0
    )
    mean_length: float = key(
        22.0, "mean number of source words of a natural draw", minimum=4, maximum=60
    )
    max_length: int = key(
        80, "longest sentence drawn, in words of either side", minimum=10, maximum=200
    )
    edges: list[int] = key(
        list(EDGES),
        "last length of each equally full bucket; longer ones form the open bucket",
        minimum=1,
    )


@dataclass
class FilterConfig:
    """Training pairs that are left out for what they are; none of them unless asked for."""

    length_ratio: float = key(
        0.0, "most words of the longer side for each word of the shorter; 0: any", minimum=0
    )
    identical: bool = key(False, "leave out pairs whose sides are the same")
    duplicates: str = key(
        "none",
        "leave out pairs whose source, target, or both (pair) stood in an earlier pair",
        choices=("none", "pair", "source", "target"),
    )
    other_language: float | None = key(
        None,
        "leave out pairs with a side that is in another language with more than this probability, "
        "such as 0.5 (extra `languages`); null: none",
        minimum=0,
        below=1,
    )


@dataclass
class DataConfig:
    """The text an experiment runs on, and how it is cut into batches."""

    title: str = key("text", "the corpus' name in tables and figures")
    languages: list[str] = key(["en", "fr"], "source and target language, as Moses names them")
    root: str | None = key(
        None, "folder of local copies; relative names of files are taken below it", runtime=True
    )
    train: TextConfig = key(TextConfig, "training pairs")
    valid: TextConfig = key(TextConfig, "development pairs")
    test: dict[str, Any] = key(
        {}, "test sets by name, each with the keys of data.valid", resumable=True
    )
    grammar: GrammarConfig = key(GrammarConfig, "settings of the built-in corpus")
    filters: FilterConfig = key(FilterConfig, "training pairs left out for what they are")
    init: str = key(
        "glorot", "model.init that suits the text; taken by regime=laptop and tiny", choices=INITS
    )
    source_shortlist: int = key(
        30000,
        "source words that suit the text; tokenizer=words takes them for its size",
        minimum=1,
        runtime=True,  # the run's own number is tokenizer.source_size
    )
    target_shortlist: int = key(
        30000,
        "target words that suit the text; tokenizer=words takes them for its size",
        minimum=1,
        runtime=True,
    )
    selection: str = key(
        "none",
        "axelrod: of the training pairs keep those nearest to data.in_domain, by the difference of "
        "cross-entropies on both sides (Axelrod et al., 2011; extra `thot`)",
        choices=("none", "axelrod"),
    )
    selection_target_words: int = key(
        0, "target words that the selected pairs have together, at most", minimum=0
    )
    selection_order: int = key(
        4, "longest n-gram of the language models of data.selection", minimum=1, maximum=6
    )
    in_domain: TextConfig = key(TextConfig, "text that data.selection compares with")
    max_length: int = key(
        50,
        "longest training sentence, in words of either side before any subword split",
        minimum=1,
        maximum=65534,  # lengths are kept in 16 bits
    )
    batch_by: str = key(
        "sentences",
        "what makes batches alike: batch_size sentences (the paper), or at most batch_tokens tokens",
        choices=("sentences", "tokens"),
    )
    batch_size: int = key(
        80, "sentence pairs an update, over all devices and accumulated micro-batches", minimum=1
    )
    batch_tokens: int = key(
        2400,
        "batch_by=tokens: most tokens an update: its sentences times the longest side of any",
        minimum=1,
    )
    pool: int = key(20, "batches' worth of pairs that are sorted by length together", minimum=1)
    pool_order: str = key("ascending", "order of a pool's batches", choices=("ascending", "random"))
    cache: str = key("data", "folder of prepared (tokenised and encoded) text", runtime=True)
    workers: int = key(
        0,
        "processes that make batches ahead of time; 0: the training process itself",
        minimum=0,
        runtime=True,
    )


@dataclass
class TokenizerConfig:
    """How a line becomes the symbols the model reads and writes."""

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
    joint: bool = key(False, "bpe: one set of subwords learnt from both languages")
    normalise: bool = key(True, "Moses punctuation normalisation before tokenisation")
