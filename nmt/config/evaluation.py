"""Keys of tests: the search, what is measured, what is kept and drawn."""

from __future__ import annotations

from dataclasses import dataclass

from nmt.config.keys import EDGES, key


@dataclass
class SearchConfig:
    """How the most probable translation is searched for."""

    beam_size: int = key(12, "hypotheses kept; 1: greedy", minimum=1)
    nbest: int = key(1, "hypotheses that nmt.translate prints per line, best first", minimum=1)
    max_ratio: float = key(
        3.0,
        "longest translation, in symbols per source symbol, </s> included",
        above=0,
    )
    min_ratio: float = key(
        0.0,
        "forbid </s> before this many words per source symbol, source </s> included",
        minimum=0,
    )
    length_penalty: float = key(
        0.0, "rank by log-probability / length^p; 0: by log-probability", minimum=0
    )
    batch_size: int = key(64, "sentences translated at a time", minimum=1)
    replace_unk: str = key(
        "none",
        "replacement of <unk>: the attended source word (copy), or its translation in a dictionary "
        "learnt from the attention",
        choices=("none", "copy", "dictionary"),
    )


INTERVENTIONS = ("as_trained", "uniform", "argmax", "shifted")


@dataclass
class EvaluationConfig:
    """What is measured on a test set."""

    attention: str = key(
        "as_trained",
        "weights of attention, replaced at every step: the mean of the annotations, the largest alone, "
        "one position on (nmt.evaluate, translate and score)",
        choices=INTERVENTIONS,
    )
    valid_sentences: int = key(
        200, "development sentences translated greedily for BLEU at each validation", minimum=0
    )
    scores: list[str] | None = key(
        None,
        "scores in addition to BLEU, such as [chrf,ter], [default,ter], or your own as "
        "MODULE.NAME; null: default, which leaves out ter",
    )
    edges: list[int] | None = key(
        None,
        f"last length of each bucket; longer sentences form the open one; null: {list(EDGES)}",
        minimum=1,
    )
    resamples: int = key(
        1000,
        "bootstrap resamples for intervals; 0: no intervals",
        minimum=0,
    )
    train_sample: int = key(3000, "training pairs for train.nll_per_sentence; 0: none", minimum=0)

    def __post_init__(self) -> None:
        self.edges = list(EDGES) if self.edges is None else self.edges


@dataclass
class StressConfig:
    """Neighbouring sentences concatenated into longer inputs (`+stress=lengths`, `position`)."""

    lengths: list[int] = key([], "lengths of the concatenated inputs, in source words", minimum=1)
    pairs: int = key(
        100, "concatenated inputs per length; sentences in all for positions", minimum=1
    )
    positions: list[int] = key(
        [],
        "sentences per input, each compared with its translation alone, by position",
        minimum=2,
    )


@dataclass
class PageConfig:
    """What a page and its figures show."""

    sentences: int = key(60, "sentences per test set whose alignments are kept", minimum=0)
    live: bool | str = key(
        "auto",
        "whether models translate in the page itself, one run a group; auto: as many as fit in 12 MB",
        choices=("auto", True, False),
    )
    live_bits: int = key(
        16, "bits of their weights in the page: 16, or 8 with a scale per row", choices=(16, 8)
    )


@dataclass
class ReportConfig(PageConfig):
    """What a run keeps and draws."""

    heatmaps: int = key(4, "alignment heatmaps per test set", minimum=0)
    figures: list[str] = key(
        ["png", "svg"], "file formats of the figures", choices=("png", "svg", "pdf")
    )


@dataclass
class PhraseBasedConfig:
    """How a phrase-based system is trained and tuned."""

    alignment: str = key(
        "hmm",
        "word aligner that phrases are extracted with",
        choices=("hmm", "fast_align", "ibm1", "ibm2"),
    )
    reordering: int = key(
        0,
        "source words that the search may skip over; 0: reordering only within phrases",
        minimum=0,
    )
    tune_sentences: int = key(
        300, "development sentences that the weights are tuned on; 0: no tuning", minimum=0
    )
