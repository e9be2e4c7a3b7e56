"""Keys of tests: the search, what is measured, what is kept and drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nmt.config.keys import CONFIDENCE, EDGES, key


@dataclass
class SearchConfig:
    """How the most probable translation is looked for."""

    beam_size: int = key(12, "hypotheses kept; 1: greedy", minimum=1)
    nbest: int = key(1, "hypotheses returned a sentence; tests score the first", minimum=1)
    max_ratio: float = key(
        3.0,
        "stop after this many symbols for each source symbol, </s> counted",
        above=0,
        resumable=False,
    )
    min_ratio: float = key(
        0.0,
        "forbid </s> before this many words for each source symbol, </s> counted there",
        minimum=0,
    )
    length_penalty: float = key(
        0.0, "rank by log-probability / length^p; 0: by log-probability", minimum=0
    )
    batch_size: int = key(64, "sentences translated together", minimum=1)
    replace_unk: str = key(
        "none",
        "written for <unk>: the attended source word, or its learnt translation",
        choices=("none", "copy", "dictionary"),
    )


@dataclass
class AlignmentConfig:
    """How attention is read as a word alignment."""

    null: float = key(
        0.5, "no link for a target word whose weight on </s> is above this", minimum=0, maximum=1
    )
    statistical_aligners: bool = key(False, "also align with statistical aligners (extra `thot`)")
    statistical_aligner_pairs: int = key(
        30000, "training pairs that these aligners learn from, besides the test pairs", minimum=0
    )


@dataclass
class EvaluationConfig:
    """What is measured on a test set."""

    scores: list[str] | None = key(
        None,
        "scores besides BLEU, such as [chrf,ter], [default,ter], or one of your own as "
        "MODULE.NAME; null: default, which is all but ter",
    )
    edges: list[int] = key(
        list(EDGES),
        "last length of each bucket; longer ones form the open bucket",
        minimum=1,
    )
    bucket_by: str = key(
        "source", "side whose words are counted for the bucket", choices=("source", "target")
    )
    resamples: int = key(1000, "bootstrap resamples behind an interval; 0: no intervals", minimum=0)
    confidence: float = key(
        CONFIDENCE, "share of the resamples inside an interval", above=0, below=1
    )
    alignment: AlignmentConfig = key(AlignmentConfig, "alignment error rate")
    train_sample: int = key(3000, "training pairs whose NLL is reported; 0: none", minimum=0)
    dictionary_sample: int = key(
        20000,
        "training pairs whose attention teaches the dictionary of search.replace_unk; 0: none",
        minimum=0,
    )


@dataclass
class StressConfig:
    """Neighbouring sentences joined into longer inputs (`+stress=lengths`)."""

    lengths: list[int] = key([], "source words that joined inputs are to reach", minimum=1)
    pairs: int = key(100, "joined inputs of each length", minimum=1)


@dataclass
class PageConfig:
    """Which sentences a page and its figures show."""

    sentences: int = key(
        60, "sentences of a test set whose alignment is kept step by step", minimum=0
    )
    sentence: str | None = key(
        None, "the named sentence of the four-panel figure (source text); none: the set's first"
    )


@dataclass
class ReportConfig(PageConfig):
    """What a run keeps and draws for people to look at."""

    heatmaps: int = key(8, "alignment heatmaps drawn a test set", minimum=0)
    figures: list[str] = key(
        ["png", "svg"], "file formats of the figures", choices=("png", "svg", "pdf")
    )
    own: dict[str, Any] = key(
        {},
        "figures of your own by name, each a _target_: a function of the finished run that returns "
        "a matplotlib Figure",
    )


@dataclass
class PhraseBasedConfig:
    """How a phrase-based system is trained and tuned."""

    alignment: str = key(
        "hmm",
        "word alignment that phrases are taken from",
        choices=("hmm", "fast_align", "ibm1", "ibm2"),
    )
    options: int = key(10, "translations of a source phrase that the search considers", minimum=1)
    stack: int = key(10, "hypotheses kept in each stack of the search", minimum=1)
    reordering: int = key(
        0, "source words that the search may jump over; 0: none but inside phrases", minimum=0
    )
    tune_sentences: int = key(
        300, "development sentences the weights are tuned on; 0: not tuned", minimum=0
    )
    tune_rounds: int = key(3, "passes over the weights", minimum=1)
    keep: bool = key(False, "keep the system's tables in the run folder")
