"""The configuration schema of each command, put together from its sections.

Hydra checks a composed configuration against these dataclasses, so that a misspelt key or a value of
the wrong type is refused; `nmt.config.validation` checks what types cannot express. A default given
here holds where no file of `conf/` sets the key.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING, DictConfig, OmegaConf

from nmt.config.data import DataConfig, TokenizerConfig
from nmt.config.evaluation import (
    EvaluationConfig,
    PageConfig,
    PhraseBasedConfig,
    ReportConfig,
    SearchConfig,
    StressConfig,
)
from nmt.config.keys import key, marked
from nmt.config.model import ModelConfig
from nmt.config.training import RUNTIME_ARGUMENTS, TRAINER, OptimizerConfig

# what may be asked of a trained model's attention, whatever is read with it
ATTENTION_KEYS = ("evaluation.attention",)
INITIAL_CHECKPOINT = "initial_checkpoint"
# How a command computes that starts from a checkpoint
COMPUTING = ("trainer.accelerator", "trainer.precision", "threads", "trainer.enable_progress_bar")
CHECKPOINT = (
    "file of the trained model, a run folder (its best one), or wandb:ENTITY/PROJECT/NAME:ALIAS; "
    "several, as [a,b,c]: their ensemble"
)


@dataclass
class Config:
    """A model, its text and its tests: the keys shared by the commands.

    A command that starts from a checkpoint names in `overridable` what of the training run's
    configuration may be typed; the rest is the checkpoint's.
    """

    overridable: ClassVar[tuple[str, ...]] = ()

    name: str = key(
        "${class_name:${model._target_}}-${data.max_length}",
        "the run's name in tables and figures",
        resumable=True,
    )
    experiment: str = key(
        "custom",
        "row of the paper's Table 1 that this run reproduces",
    )
    regime: str = key("laptop", "scale of the run", choices=("tiny", "laptop", "gpu", "paper"))
    seed: int = key(
        1, "seed of initialisation, order of the data and dropout", minimum=0, maximum=2**32 - 1
    )
    threads: int | str = key(
        "auto",
        "threads of one process on a CPU; auto: by the cores it may use and the size of the layers",
        minimum=1,
        runtime=True,
    )
    tags: list[str] = key([], "words to find the run by, in W&B", runtime=True)
    trust: list[str] = key(
        [],
        "modules outside nmt that a checkpoint's configuration may name, or single names of theirs",
        runtime=True,
    )
    model: ModelConfig = key(ModelConfig, "the model")
    tokenizer: TokenizerConfig = key(TokenizerConfig, "the tokenizer")
    data: DataConfig = key(DataConfig, "the text")
    optimizer: OptimizerConfig = key(OptimizerConfig, "the optimizer")
    callbacks: dict[str, Any] = key(
        {}, "Lightning callbacks by name, each a `_target_` with its arguments (group `callbacks`)"
    )
    trainer: dict[str, Any] = key(TRAINER, "arguments of pytorch_lightning.Trainer, by its names")
    search: SearchConfig = key(SearchConfig, "the search for a translation", resumable=True)
    evaluation: EvaluationConfig = key(EvaluationConfig, "what is measured", resumable=True)
    stress: StressConfig = key(StressConfig, "concatenated inputs", resumable=True)
    report: ReportConfig = key(ReportConfig, "figures and kept sentences", runtime=True)
    logger: dict[str, Any] = key(
        {},
        "Lightning loggers by name, each a `_target_` with its arguments (group `logger`)",
        runtime=True,
    )


@dataclass
class TrainConfig(Config):
    """`nmt.train`, and what a checkpoint stores: the whole configuration of a training run."""

    resume: str | None = key(
        None,
        "run folder to resume; auto: hydra.run.dir if it holds a checkpoint, otherwise a new run",
        runtime=True,
    )
    initial_checkpoint: str | None = key(
        None,
        "file of a trained model, a run folder (its best one), or wandb:ENTITY/PROJECT/NAME:ALIAS: "
        "the training starts from its weights, with its vocabularies",
    )
    ckpt_path: str | None = key(
        None,
        "file of a checkpoint: a new run goes on from it, as its configuration says and what is typed",
    )


@dataclass
class EvaluateConfig(Config):
    """`nmt.evaluate`: the stored configuration of a checkpoint, and what is typed here."""

    overridable: ClassVar = (
        "name",
        "search",
        "evaluation",
        "report",
        "stress",
        "logger",
        *COMPUTING,
        "trainer.devices",
        "trainer.num_nodes",
        "trainer.strategy",
        "data.test",
        "data.root",
        "data.cache",
    )

    checkpoint: Any = key(MISSING, CHECKPOINT)
    sets: list[str] = key([], "test sets to evaluate, by name; empty: all")


@dataclass
class BaselineConfig(Config):
    """`nmt.baseline`: a phrase-based system on the text of a training run.

    Of the keys it shares with a training run, those of `sections` apply to it.
    """

    sections: ClassVar = (
        "name",
        "experiment",
        "regime",
        "data",
        "tokenizer",
        "evaluation",
        "report",
        "seed",
        "phrase_based",
    )

    phrase_based: PhraseBasedConfig = key(PhraseBasedConfig, "the phrase-based system")


@dataclass
class TranslateConfig(Config):
    """`nmt.translate`: what is printed for each line of standard input."""

    overridable: ClassVar = ("search", *COMPUTING, *ATTENTION_KEYS)

    checkpoint: Any = key(MISSING, CHECKPOINT)
    scores: bool = key(False, "print the log-probability and a tab before each translation")
    detokenise: bool = key(True, "print detokenised text; false: tokens separated by spaces")
    tokenised: bool = key(False, "the input holds tokens separated by spaces")
    alignments: str | None = key(
        None,
        "print the links after each translation (pharaoh), or one JSON object per line (json)",
        choices=("pharaoh", "json"),
    )
    heatmap: str | None = key(None, "folder for one heatmap per line (PNG)")
    page: str | None = key(None, "HTML file for an alignment explorer of all lines")


@dataclass
class ScoreConfig(Config):
    """`nmt.score`: what is printed for each pair of lines of two files."""

    overridable: ClassVar = (*COMPUTING, "search.batch_size", *ATTENTION_KEYS)

    checkpoint: Any = key(MISSING, CHECKPOINT)
    source: str = key(MISSING, "file of the source sentences, one a line (plain, .gz, .xz, .zst)")
    target: str = key(MISSING, "file of their translations, line by line")
    tokenised: bool = key(False, "the files hold tokens separated by spaces")
    alignments: str | None = key(
        None,
        "print the links after each score (pharaoh), or one JSON object per pair (json)",
        choices=("pharaoh", "json"),
    )
    page: str | None = key(None, "HTML file for an alignment explorer of all pairs")


@dataclass
class CompareConfig:
    """`nmt.compare`: which runs and systems are compared, and where the page is written."""

    runs: list[str] = key([], "run folders, sweep folders, or globs of them")
    source: str | None = key(
        None, "source text of a test set without runs: plain, one sentence a line, or JSONL"
    )
    reference: Any = key(None, "its reference translation, or several as [F,G]")
    systems: dict[str, Any] = key(
        {}, "output of other systems: systems.NAME=F, or systems.NAME.SET=F of a test set of runs"
    )
    languages: list[str] | None = key(
        None, "languages of source and reference, such as [de,en]; null: as the files are named"
    )
    lengths: str = key(
        "tokens", "what the length of a source sentence counts: tokens, words, or a JSONL column"
    )
    output: str = key("comparison", "folder for comparison.html and the tables")
    resamples: int = key(1000, "bootstrap resamples for intervals and tests", minimum=0)
    scores: Any = key(
        None,
        "only these scores, such as [bleu,chrf] or your own as MODULE.NAME; or scores.NAME=F: also "
        "the numbers in the column NAME of a TSV or JSONL file; null: all that the runs have",
    )
    claims: Any = key(
        None, "decide the claims of this file of conf/claims, and write claims.md; null: none"
    )
    figures: Any = key(
        [],
        "also draw figures for papers: pdf, or several as [pdf,svg]",
        choices=("png", "svg", "pdf"),
    )
    wandb: str | None = key(
        None,
        "ENTITY/PROJECT: also save a W&B workspace and report there; preview: write them as files",
    )
    report: PageConfig = key(PageConfig, "sentences shown of each run")


# Keys that change neither what a run learns nor how it is scored: devices, folders, output.
RUNTIME_KEYS = (*marked(TrainConfig, "runtime"), *RUNTIME_ARGUMENTS)

SCHEMAS = {  # of each command; preparing takes the line that training will
    "train": TrainConfig,
    "prepare": TrainConfig,
    "evaluate": EvaluateConfig,
    "translate": TranslateConfig,
    "score": ScoreConfig,
    "compare": CompareConfig,
    "baseline": BaselineConfig,
}


# Sections that take any key without a plus
OPEN = (
    *("data.train", "data.valid", "data.test", "trainer", "callbacks", "logger"),
    *("optimizer.options", "optimizer.schedule", "model.options"),
)


def register(commands: Iterable[str] = SCHEMAS) -> None:
    """Makes the schemas of these commands known to Hydra.

    Hydra copies all that it knows once for each config group that `--help` lists.
    """
    store = ConfigStore.instance()
    for command in commands:
        schema = OmegaConf.structured(SCHEMAS[command])
        for path in OPEN:
            if (node := OmegaConf.select(schema, path)) is not None:
                OmegaConf.set_struct(node, False)
        store.store(name=f"{command}_schema", node=schema)


def class_name(target: str) -> str:
    """The last part of a dotted name.

    >>> class_name("nmt.models.RNNsearch")
    'RNNsearch'
    """
    return target.rpartition(".")[2]


OmegaConf.register_new_resolver("class_name", class_name, replace=True)


def scoring_of(model: ModelConfig | DictConfig) -> str | None:
    """Class of a model's scoring function; None where it has none."""
    return (model.scoring or {}).get("_target_")


def named_initial(config: Config) -> str | None:
    """The checkpoint that a training starts from; None of one that draws its weights, and of what is none."""
    return config.initial_checkpoint if isinstance(config, TrainConfig) else None


def to_containers(config: Any) -> dict[str, Any]:
    """A configuration, or a section of one, as dictionaries and lists, for files and checkpoints."""
    if isinstance(config, DictConfig):
        config = OmegaConf.to_object(config)
    return dataclasses.asdict(config)
