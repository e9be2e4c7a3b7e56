"""The sections of the configuration: type, meaning and bounds of each key.

Hydra checks a composed configuration against these dataclasses, and refuses a misspelt key or a value of
the wrong type. `nmt.config.loading` checks bounds and combinations. A default given here applies if no
file of `conf/` sets the key.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from omegaconf import OmegaConf

from nmt.config.keys import (
    EDGES,
    LENGTH,
    LOCAL,
    MACHINE,
    MAX_LENGTH,
    MAX_RESAMPLES,
    TESTS,
    TRAINING,
    WEIGHTS,
    key,
)

# The text


@dataclass
class TextConfig:
    """One parallel text: line-aligned files, a data set of the Hugging Face hub, or the built-in corpus."""

    source: str | None = key(None, "file of source sentences, one per line (plain or compressed)")
    target: str | None = key(None, "file of target sentences: line i translates line i of `source`")
    alignment: str | None = key(
        None,
        "file of gold alignments of a test set, in Pharaoh format (sure link 3-4, possible 3p4)",
    )
    documents: str | None = key(
        None,
        "file that names the document of each line of a test set; the bootstrap then resamples documents",
    )
    tokenised: bool = key(False, "the files are already tokenised; only spaces separate tokens")
    files: list[str] | None = key(
        None,
        "names of files in data.root, read in order: train means train.en and train.fr, plain or compressed; "
        "if data.root is null and a file is missing, hub is used",
    )
    hub: dict[str, Any] | None = key(
        None,
        "arguments of datasets.load_dataset; its path may be a folder written by save_to_disk; default split: train",
    )
    grammar: str | None = key(
        None,
        "draw pairs from the built-in grammar: natural lengths, or equally many per length bucket (by_length)",
        choices=("natural", "by_length"),
    )
    skip: int | None = key(None, "pairs to skip at the start", minimum=1)
    pairs: int | None = key(
        None, "maximum number of pairs to read, or number to draw from the grammar", minimum=1
    )


@dataclass
class HeldOutConfig:
    """The text that a trained model is tested on."""

    root: str | None = key(None, "base folder of relative file names", MACHINE)
    test: dict[str, Any] = key({}, "test sets by name, each with the keys of `data.train`", TESTS)
    cache: str = key("data", "cache folder for tokenised and encoded text", LOCAL)


@dataclass
class DataConfig(HeldOutConfig):
    """The text of an experiment, and how it is cut into batches."""

    title: str = key("text", "name of the corpus in tables and figures")
    languages: list[str] = key(["en", "fr"], "codes of source and target language", WEIGHTS)
    train: Any = key({}, "training pairs, with keys such as source and target")
    valid: Any = key({}, "development pairs, with the keys of `data.train`")
    max_length: int = key(
        50, "maximum words per side of a training pair, before any split into subwords", minimum=1
    )
    batch_size: int = key(80, "pairs per update, summed over devices and micro-batches", minimum=1)
    batch_tokens: int | None = key(
        None,
        "maximum tokens per update (number of pairs times length of the longest sentence); replaces batch_size",
        minimum=1,
    )
    reverse_source: bool = key(
        False,
        "the encoder reads the source from last to first word; alignments keep the order of the text",
        WEIGHTS,
    )
    workers: int = key(0, "worker processes that prepare batches; 0: none", MACHINE, minimum=0)


@dataclass
class TokenizerConfig:
    """How a line is split into the symbols of the model."""

    kind: str = key(
        "words", "unit of the vocabulary: words, or subwords (bpe)", choices=("words", "bpe")
    )
    source_size: int = key(30000, "source vocabulary size", minimum=1)
    target_size: int = key(30000, "target vocabulary size", minimum=1)


# The model and its training

INITS = ("paper", "glorot", "wide")  # nmt.layers.initialisation describes them


@dataclass
class ModelConfig:
    """The model to train, and how its equations are computed."""

    _target_: str = key("nmt.models.RNNsearch", "class of the Lightning module")
    encoder: dict[str, Any] | None = key(
        None, "the encoder; null: bidirectional for RNNsearch, forward for RNNencdec"
    )
    unit: dict[str, Any] | None = key(None, "recurrent unit of encoder and decoder; null: gated")
    attention: dict[str, Any] | None = key(
        None, "class that selects source positions to attend to; null: all"
    )
    scoring: dict[str, Any] | None = key(None, "scoring function of the attention")
    state_input: str = key(
        "previous",
        "target word from which the state s_i is computed: y_{i-1} (the paper) or y_i (the authors' program)",
        choices=("previous", "current"),
    )
    init: str = key("glorot", "initialisation of the weights", TRAINING, choices=INITS)
    dropout: float = key(0.0, "dropout of embeddings and readouts", TRAINING, minimum=0, below=1)
    recurrence: str = key(
        "fused",
        "plain: loop over words, differentiated by autograd; fused: faster, with a custom backward pass",
        TRAINING,
        choices=("plain", "fused"),
    )
    kernels: bool | str = key(
        "auto",
        "use Triton kernels on a GPU if their results are correct; auto: only if they are also faster",
        MACHINE,
        choices=("auto", True, False),
    )
    graphs: bool | str = key(
        "auto",
        "replay each update from a CUDA graph on a GPU; auto: only if this is faster",
        MACHINE,
        choices=("auto", True, False),
    )
    hidden: int = key(256, "hidden units per recurrent network (paper: n=1000)", minimum=1)
    embedding: int = key(128, "size of word embeddings (paper: m=620)", minimum=1)
    alignment: int | None = key(
        None, "size of queries and keys (paper: n'=1000); null: no attention", minimum=1
    )
    maxout: int = key(128, "maxout units of the readout (paper: l=500)", minimum=1)
    options: dict[str, Any] = key({}, "options of your own model class, by name")


@dataclass
class OptimizerConfig:
    """The optimizer and its learning rate."""

    _target_: str = key("torch.optim.Adadelta", "class of the optimizer")
    lr: float = key(1.0, "learning rate (1 for Adadelta, about 1e-3 for Adam)", above=0)
    embedding_factor: float = key(
        1.0, "learning rate of word embeddings, as a multiple of lr", above=0
    )
    options: dict[str, Any] = key({}, "other arguments of the class, by name")
    schedule: dict[str, Any] = key(
        {"_target_": "nmt.models.optimizer.constant"}, "learning-rate schedule, with its arguments"
    )


# Default arguments of `pytorch_lightning.Trainer`; users can add any other argument. All names and values
# are Lightning's, except that `precision` can also be `auto`: bf16-mixed if the device multiplies bf16
# faster than float32, otherwise 32-true.
TRAINER: dict[str, Any] = {
    "max_steps": 1000,
    # Lightning counts batches, not updates: one update is `accumulate_grad_batches` batches
    "val_check_interval": 200,
    "log_every_n_steps": 20,
    "gradient_clip_val": 1.0,  # maximum L2 norm of the gradient (appendix B.2); null: no clipping
    "accelerator": "auto",
    "devices": 1,
    "precision": "32-true",
    "enable_progress_bar": True,
}
SHOWN = ("log_every_n_steps", "enable_progress_bar", "enable_model_summary", "profiler")
DEVICES = ("accelerator", "devices", "num_nodes", "strategy", "deterministic", "benchmark")
TRAINER_EFFECTS = {  # all other arguments have the effect TRAINING
    **dict.fromkeys(("max_steps", "max_epochs", "max_time"), LENGTH),
    **dict.fromkeys((*DEVICES, *SHOWN), MACHINE),
}

# Search, scores and figures

INTERVENTIONS = ("as_trained", "uniform", "argmax", "shifted")


@dataclass
class SearchConfig:
    """The search for the most probable translation."""

    beam_size: int = key(12, "hypotheses kept per sentence; 1: greedy search", minimum=1)
    nbest: int = key(1, "hypotheses that nmt.translate prints per line, best first", minimum=1)
    max_ratio: float = key(3.0, "maximum translation length, in symbols per source symbol", above=0)
    min_ratio: float = key(
        0.0, "minimum translation length in symbols (</s> not counted) per source symbol", minimum=0
    )
    length_penalty: float = key(0.0, "exponent p in score = log-probability / length^p", minimum=0)
    batch_size: int = key(64, "sentences per batch", minimum=1)
    replace_unk: str = key(
        "none",
        "replace <unk> by the most attended source word (copy), or by that word's translation (dictionary)",
        choices=("none", "copy", "dictionary"),
    )


@dataclass
class EvaluationConfig:
    """What is measured on a test set."""

    attention: str = key(
        "as_trained",
        "attention weights in nmt.evaluate, nmt.translate and nmt.score: as_trained, uniform, only the largest "
        "(argmax), or shifted by one position",
        choices=INTERVENTIONS,
    )
    valid_sentences: int = key(
        200, "development pairs translated for BLEU at each validation", minimum=0
    )
    scores: list[str] | None = key(
        None,
        "scores besides BLEU, like [chrf,ter] or [default,MODULE.NAME]; null: [default], all built-in scores but ter",
    )
    edges: list[int] | None = key(
        None,
        f"maximum number of words in each length bucket except the last; null: {list(EDGES)}",
        minimum=1,
        maximum=MAX_LENGTH,
    )
    resamples: int = key(
        1000,
        "bootstrap resamples for intervals; 0: no intervals",
        minimum=0,
        maximum=MAX_RESAMPLES,
    )
    train_sample: int = key(
        3000, "number of training pairs used for train.nll_per_sentence; 0: none", minimum=0
    )

    def __post_init__(self) -> None:
        self.edges = list(EDGES) if self.edges is None else self.edges


@dataclass
class PageConfig:
    """What an HTML page and its figures show."""

    sentences: int = key(60, "sentences per test set whose alignments are stored", minimum=0)
    live: bool | str = key(
        "auto",
        "embed one trained model per group of runs in the page, for translation in the browser; auto: at most "
        "12 MB in total",
        choices=("auto", True, False),
    )


@dataclass
class ReportConfig(PageConfig):
    """Which alignments a run stores, and the formats of its figures."""

    figures: list[str] = key(["png"], "formats of figures", choices=("png", "svg", "pdf"))


# The whole configuration


@dataclass
class ModelRunConfig:
    """Keys of every command that runs a model."""

    threads: int | str = key(
        "auto",
        "CPU threads per process; auto: depends on cores and layer sizes",
        LOCAL,
        minimum=1,
    )
    trust: list[str] = key(
        [], "modules outside nmt, or names in them, that checkpoints may use", LOCAL
    )
    trainer: dict[str, Any] = key(
        TRAINER, "arguments of pytorch_lightning.Trainer", inside=TRAINER_EFFECTS
    )
    search: SearchConfig = key(SearchConfig, "the search for a translation", TESTS)
    evaluation: EvaluationConfig = key(EvaluationConfig, "what is measured", TESTS)


@dataclass
class Config(ModelRunConfig):
    """The configuration of a model, its text, its training and its tests."""

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
