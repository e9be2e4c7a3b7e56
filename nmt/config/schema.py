"""Every key of every command: type, meaning and bounds.

Hydra checks a composed configuration against these dataclasses, so that a misspelt key or a value of
the wrong type is refused; `nmt.config.loading` checks bounds and combinations. A default given here
holds if no file of `conf/` sets the key.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from omegaconf import OmegaConf

from nmt.config.keys import EDGES, LENGTH, LOCAL, MACHINE, TESTS, TRAINING, WEIGHTS, key

# The text


@dataclass
class TextConfig:
    """One parallel text: line-aligned files, or a published set fetched by a library."""

    source: str | None = key(None, "file of source sentences, one per line (plain or compressed)")
    target: str | None = key(None, "file of target sentences: line i translates line i of `source`")
    alignment: str | None = key(
        None, "file of gold links of a test set, in Pharaoh format (i-j sure, ipj possible)"
    )
    documents: str | None = key(
        None,
        "file that names the document of each line of a test set; the bootstrap then draws documents",
    )
    tokenised: bool = key(False, "the files are already tokenised: split them at spaces only")
    files: list[str] | None = key(
        None,
        "files in data.root, read in order: train stands for train.en and train.fr, plain or .gz, .bz2, "
        ".xz, .zst; if they are missing and data.root is null, hub is used",
    )
    hub: dict[str, Any] | None = key(
        None,
        "arguments of datasets.load_dataset; path may be a folder of save_to_disk; default split: train",
    )
    grammar: str | None = key(
        None,
        "draw from the built-in grammar: natural lengths, or equally many pairs per length bucket",
        choices=("natural", "by_length"),
    )
    skip: int | None = key(None, "pairs to skip at the start", minimum=1)
    pairs: int | None = key(
        None, "maximum number of pairs to read, or number of pairs to draw (grammar)", minimum=1
    )


@dataclass
class FilterConfig:
    """Filters of training pairs; all off by default."""

    length_ratio: float = key(
        0.0, "maximum length of the longer side divided by the shorter; 0: no limit", minimum=0
    )
    identical: bool = key(False, "drop pairs whose sides are identical")
    duplicates: str = key(
        "none",
        "drop pairs whose source, target or both (pair) occurred before",
        choices=("none", "pair", "source", "target"),
    )


@dataclass
class HeldOutConfig:
    """The text that a trained model is tested on."""

    root: str | None = key(None, "folder that relative file names start from", MACHINE)
    test: dict[str, Any] = key({}, "test sets by name, each with the keys of `data.train`", TESTS)
    cache: str = key("data", "folder of prepared (tokenised and encoded) text", LOCAL)


@dataclass
class DataConfig(HeldOutConfig):
    """The text of an experiment, and how it is cut into batches."""

    title: str = key("text", "the corpus' name in tables and figures")
    languages: list[str] = key(["en", "fr"], "source and target language (Moses codes)", WEIGHTS)
    train: Any = key({}, "training pairs, described by keys such as source and target")
    valid: Any = key({}, "development pairs, described by the same keys as `data.train`")
    filters: FilterConfig = key(FilterConfig, "filters of training pairs")
    max_length: int = key(
        50, "maximum words of either side of a training pair, before any subword split", minimum=1
    )
    batch_size: int = key(80, "pairs per update, over all devices and micro-batches", minimum=1)
    batch_tokens: int | None = key(
        None,
        "replaces batch_size: maximum tokens per update (number of pairs times longest sentence)",
        minimum=1,
    )
    pool: int = key(
        20,
        "batches per pool: the pairs of a pool are sorted by length, then cut into batches",
        minimum=1,
    )
    reverse_source: bool = key(
        False,
        "the encoder reads the last source word first; alignments keep the order of the text",
        WEIGHTS,
    )
    pool_order: str = key(
        "ascending",
        "order of a pool's batches: shortest sentences first, or random",
        choices=("ascending", "random"),
    )
    workers: int = key(0, "extra processes that prepare batches; 0: none", MACHINE, minimum=0)


@dataclass
class TokenizerConfig:
    """How a line is split into the symbols of the model."""

    kind: str = key(
        "words", "shortlist of the most frequent words, or subwords", choices=("words", "bpe")
    )
    source_size: int = key(30000, "source vocabulary size, in words or subwords", minimum=1)
    target_size: int = key(30000, "target vocabulary size, in words or subwords", minimum=1)
    joint: bool = key(False, "one vocabulary of source_size for both languages")
    normalise: bool = key(True, "Moses punctuation normalisation before tokenisation")
    characters: bool = key(False, "in scripts without spaces, each character is a token")


# The model and its training

INITS = ("paper", "glorot", "wide")  # as in nmt.layers.initialisation


@dataclass
class ModelConfig:
    """The model to train, and how its equations are computed."""

    _target_: str = key("nmt.models.RNNsearch", "class of the Lightning module")
    encoder: dict[str, Any] | None = key(
        None, "the encoder; null: bidirectional for RNNsearch, forward for RNNencdec"
    )
    unit: dict[str, Any] | None = key(None, "recurrent unit of encoder and decoder; null: gated")
    attention: dict[str, Any] | None = key(None, "source positions to attend to; null: all")
    scoring: dict[str, Any] | None = key(None, "scoring function of the attention")
    state_input: str = key(
        "previous",
        "target word that enters the state s_i: y_{i-1} (the paper) or y_i (the authors' program)",
        choices=("previous", "current"),
    )
    init: str = key("glorot", "initialisation of the weights", TRAINING, choices=INITS)
    dropout: float = key(0.0, "dropout of embeddings and readouts", TRAINING, minimum=0, below=1)
    recurrence: str = key(
        "fused",
        "plain: readable loop, differentiated by autograd; fused: own backward pass over a whole sentence",
        TRAINING,
        choices=("plain", "fused"),
    )
    kernels: bool | str = key(
        "auto",
        "Triton kernels on a GPU, if they compute correctly; auto: only if faster",
        MACHINE,
        choices=("auto", True, False),
    )
    graphs: bool | str = key(
        "auto",
        "replay each update from a CUDA graph on a GPU; auto: only if faster",
        MACHINE,
        choices=("auto", True, False),
    )
    hidden: int = key(256, "hidden units per recurrent network (n; paper: 1000)", minimum=1)
    embedding: int = key(128, "size of word embeddings (m; paper: 620)", minimum=1)
    alignment: int | None = key(
        None, "size of queries and keys (n'; paper: 1000); null: no attention", minimum=1
    )
    maxout: int = key(128, "maxout units of the readout (l; paper: 500)", minimum=1)
    options: dict[str, Any] = key({}, "keys of your own model class, by name")


@dataclass
class OptimizerConfig:
    """The optimizer and its learning rate."""

    _target_: str = key("torch.optim.Adadelta", "class of the optimizer")
    lr: float = key(1.0, "learning rate (1 for Adadelta, about 1e-3 for Adam)", above=0)
    options: dict[str, Any] = key({}, "other arguments of the class, by name")
    schedule: dict[str, Any] = key(
        {"_target_": "nmt.models.optimizer.constant"}, "learning-rate schedule, with its arguments"
    )


# Arguments of `pytorch_lightning.Trainer`; users can add any other argument. All names and values are
# Lightning's except `precision: auto`, which means bf16-mixed if the device multiplies bf16 faster
# than float32, otherwise 32-true.
TRAINER: dict[str, Any] = {
    "max_steps": 1000,
    "val_check_interval": 200,  # batches between two validations
    "log_every_n_steps": 20,
    "gradient_clip_val": 1.0,  # largest L2 norm of the gradient (appendix B.2); null: no clipping
    "accelerator": "auto",
    "devices": 1,
    "precision": "32-true",
    "enable_progress_bar": True,
}
SHOWN = ("log_every_n_steps", "enable_progress_bar", "enable_model_summary", "profiler")
DEVICES = ("accelerator", "devices", "num_nodes", "strategy", "deterministic", "benchmark")
TRAINER_EFFECTS = {  # all other arguments change the training
    **dict.fromkeys(("max_steps", "max_epochs", "max_time"), LENGTH),
    **dict.fromkeys((*DEVICES, *SHOWN), MACHINE),
}

# Search, scores and figures

INTERVENTIONS = ("as_trained", "uniform", "argmax", "shifted")


@dataclass
class SearchConfig:
    """The search for the most probable translation."""

    beam_size: int = key(12, "hypotheses kept per sentence; 1: greedy", minimum=1)
    nbest: int = key(1, "hypotheses that nmt.translate prints per line, best first", minimum=1)
    max_ratio: float = key(3.0, "maximum translation length, in symbols per source symbol", above=0)
    min_ratio: float = key(
        0.0, "minimum translation length without </s>, in symbols per source symbol", minimum=0
    )
    length_penalty: float = key(0.0, "p in the score: log-probability / length^p", minimum=0)
    batch_size: int = key(64, "sentences translated at a time", minimum=1)
    replace_unk: str = key(
        "none",
        "replace <unk> by the attended source word (copy), or by its translation in the model's dictionary",
        choices=("none", "copy", "dictionary"),
    )


@dataclass
class EvaluationConfig:
    """What is measured on a test set."""

    attention: str = key(
        "as_trained",
        "attention weights in nmt.evaluate, translate and score: as_trained, all equal (uniform), only "
        "the largest (argmax), or shifted by one position",
        choices=INTERVENTIONS,
    )
    valid_sentences: int = key(
        200, "development pairs translated for BLEU at each validation", minimum=0
    )
    scores: list[str] | None = key(
        None,
        "scores in addition to BLEU, such as [chrf,ter], [default,ter], or your own as MODULE.NAME; null: "
        "default (all but ter)",
    )
    edges: list[int] | None = key(
        None,
        f"maximum words of each length bucket but the open last one; null: {list(EDGES)}",
        minimum=1,
    )
    resamples: int = key(1000, "bootstrap resamples for intervals; 0: no intervals", minimum=0)
    train_sample: int = key(
        3000, "training pairs to measure train.nll_per_sentence on; 0: none", minimum=0
    )

    def __post_init__(self) -> None:
        self.edges = list(EDGES) if self.edges is None else self.edges


@dataclass
class StressConfig:
    """Neighbouring sentences joined to longer inputs (`+stress=position`)."""

    positions: list[int] = key(
        [], "numbers of sentences joined to one input, scored by position in it", minimum=2
    )
    pairs: int = key(480, "maximum sentences of a test set to join", minimum=1)


@dataclass
class PageConfig:
    """What a page and its figures show."""

    sentences: int = key(60, "sentences per test set whose alignments are stored", minimum=0)
    live: bool | str = key(
        "auto",
        "put trained models into the page, which then translates in the browser: one run per group; auto: "
        "at most 12 MB in total",
        choices=("auto", True, False),
    )


@dataclass
class ReportConfig(PageConfig):
    """What a run stores and draws."""

    heatmaps: int = key(4, "alignment heatmaps per test set", minimum=0)
    figures: list[str] = key(["png", "svg"], "formats of figures", choices=("png", "svg", "pdf"))


# The whole configuration


@dataclass
class ModelRunConfig:
    """Keys of every command that runs a model."""

    threads: int | str = key(
        "auto",
        "CPU threads per process; auto: chosen by the cores and the size of the layers",
        LOCAL,
        minimum=1,
    )
    trust: list[str] = key([], "modules or names outside nmt that checkpoints may use", LOCAL)
    trainer: dict[str, Any] = key(
        TRAINER, "arguments of pytorch_lightning.Trainer", inside=TRAINER_EFFECTS
    )
    search: SearchConfig = key(SearchConfig, "the search for a translation", TESTS)
    evaluation: EvaluationConfig = key(EvaluationConfig, "what is measured", TESTS)


@dataclass
class Config(ModelRunConfig):
    """A model, its text, its training and its tests."""

    name: str = key("${class_name:${model._target_}}-${data.max_length}", "title of the run", TESTS)
    experiment: str = key("custom", "row of the paper's Table 1 that this run reproduces")
    regime: str = key("laptop", "scale of the run", choices=("tiny", "laptop", "gpu", "paper"))
    seed: int = key(
        1, "seed of initialisation, data order and dropout", minimum=0, maximum=2**32 - 1
    )
    tags: list[str] = key([], "tags of the run in W&B", MACHINE)
    model: ModelConfig = key(ModelConfig, "the model", WEIGHTS)
    tokenizer: TokenizerConfig = key(TokenizerConfig, "the tokenizer", WEIGHTS)
    data: DataConfig = key(DataConfig, "the text")
    optimizer: OptimizerConfig = key(OptimizerConfig, "the optimizer")
    callbacks: dict[str, Any] = key({}, "Lightning callbacks by name, each with a `_target_`")
    stress: StressConfig = key(
        StressConfig, "neighbouring sentences joined to longer inputs", TESTS
    )
    report: ReportConfig = key(ReportConfig, "figures, and sentences kept for the page", MACHINE)
    logger: dict[str, Any] = key({}, "Lightning loggers by name, each with a `_target_`", LOCAL)


def class_name(target: str) -> str:
    """Returns the last part of a dotted name.

    >>> class_name("nmt.models.RNNsearch")
    'RNNsearch'
    """
    return target.rpartition(".")[2]


OmegaConf.register_new_resolver("class_name", class_name, replace=True)


def scoring_of(model: ModelConfig) -> str | None:
    """Returns the dotted class name of a model's scoring function; None if it has no scoring function."""
    return (model.scoring or {}).get("_target_")


def to_containers(config: Any) -> dict[str, Any]:
    """Converts a configuration, or a section, to dictionaries and lists for files and checkpoints."""
    return dataclasses.asdict(config)
