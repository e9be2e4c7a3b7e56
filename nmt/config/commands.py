"""The keys of each command, built from the sections of `nmt.config.schema`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omegaconf import MISSING

from nmt.config.keys import MACHINE, key
from nmt.config.schema import (
    Config,
    HeldOutConfig,
    ModelRunConfig,
    PageConfig,
    ReportConfig,
    StressConfig,
)

MODEL = "checkpoint file, run folder (its best checkpoint), or wandb:ENTITY/PROJECT/NAME:ALIAS"


@dataclass
class TrainConfig(Config):
    """`nmt.train`: the whole configuration of a training run, stored in its checkpoints."""

    resume: str | None = key(
        None, "run folder to resume; auto: hydra.run.dir, if it has a checkpoint", MACHINE
    )
    initial_checkpoint: str | None = key(
        None, f"start from the weights and vocabularies of a model: {MODEL}"
    )
    ckpt_path: str | None = key(
        None,
        "checkpoint file to continue in a new folder, with its configuration and your overrides",
    )


@dataclass
class PhraseBasedConfig:
    """How a phrase-based system is trained and tuned."""

    reordering: int = key(0, "maximum source words to jump over; 0: no reordering", minimum=0)
    tune_sentences: int = key(300, "development sentences for tuning; 0: no tuning", minimum=0)


@dataclass
class BaselineConfig(Config):
    """`nmt.baseline`: a phrase-based system on the text of a training run."""

    phrase_based: PhraseBasedConfig = key(PhraseBasedConfig, "the phrase-based system")


@dataclass
class CheckpointConfig(ModelRunConfig):
    """Keys of commands that start from a checkpoint; overrides replace the stored values."""

    checkpoint: Any = key(MISSING, f"the trained model: {MODEL}; [a,b,c]: an ensemble")


@dataclass
class EvaluateConfig(CheckpointConfig):
    """`nmt.evaluate`: the stored configuration of a checkpoint, with overrides."""

    sets: list[str] = key([], "test sets to evaluate, by name; empty: all")
    name: str | None = key(None, "title of the run; null: the training run's title")
    data: HeldOutConfig = key(HeldOutConfig, "the test sets")
    stress: StressConfig = key(StressConfig, "neighbouring sentences joined to longer inputs")
    report: ReportConfig = key(ReportConfig, "figures, and sentences kept for the page")
    logger: dict[str, Any] = key({}, "Lightning loggers by name (group `logger`)")


@dataclass
class LinesConfig(CheckpointConfig):
    """Keys of commands that read and print line by line."""

    tokenised: bool = key(False, "the input holds tokens separated by spaces")
    alignments: str | None = key(
        None,
        "print alignment links after each line (pharaoh), or one JSON object per line (json)",
        choices=("pharaoh", "json"),
    )


@dataclass
class TranslateConfig(LinesConfig):
    """`nmt.translate`: what is printed for each line of standard input."""

    scores: bool = key(False, "print the score and a tab before each translation")
    detokenise: bool = key(True, "print detokenised text; false: tokens separated by spaces")
    heatmap: str | None = key(None, "folder for one heatmap per line (PNG)")


@dataclass
class ScoreConfig(LinesConfig):
    """`nmt.score`: what is printed for each pair of lines of two files."""

    source: str = key(MISSING, "file of source sentences, one per line (plain, .gz, .xz, .zst)")
    target: str = key(MISSING, "file of target sentences: line i translates line i of `source`")


@dataclass
class CompareConfig:
    """`nmt.compare`: which runs and systems are compared, and where the page is written."""

    runs: list[str] = key([], "run folders, sweep folders, or globs of them")
    source: str | None = key(
        None, "source text of a test set from files: one sentence per line, or JSONL"
    )
    reference: Any = key(None, "reference translation of source, or several as [F,G]")
    systems: Any = key(
        None,
        "output of other systems: files such as [outputs/*.de], {NAME: F}, or {NAME: {SET: F}} by test "
        "set; a table (TSV, JSONL) in a list has a column per system",
    )
    languages: list[str] | None = key(
        None, "source and target language, such as [de,en]; null: from the file names"
    )
    lengths: str | None = key(
        None,
        "unit of source lengths: words, characters, tokens, or a column of numbers; null: words, or "
        "characters in a language without spaces",
    )
    edges: list[int] | None = key(
        None,
        "maximum length of each length bucket but the open last one; null: from the text",
        minimum=1,
    )
    short: int | None = key(
        None,
        "length at the start of retention, which is score at long / score at short; null: from the text",
        minimum=1,
    )
    long: int | None = key(None, "length at the end of retention; null: from the text", minimum=2)
    metadata: str | None = key(None, "TSV or JSONL file with a row per line of source")
    document: str | None = key(
        None, "column of metadata, or of a JSONL source, that names the document of a line"
    )
    domain: str | None = key(
        None,
        "column that names the domain of a line; adds curves by domain, and domain-adjusted ones",
    )
    output: str = key("comparison", "folder for comparison.html and the tables")
    resamples: int = key(1000, "bootstrap resamples for intervals and tests", minimum=0)
    scores: Any = key(
        None,
        "scores to test, such as [bleu,chrf] or MODULE.NAME; null: all scores of the runs. scores.NAME=F "
        "adds the column NAME of a TSV or JSONL file",
    )
    claims: Any = key(None, "claims to decide: name of a file in conf/claims; writes claims.md")
    figures: Any = key(
        [], "formats of extra figures for papers: pdf, [pdf,svg]", choices=("png", "svg", "pdf")
    )
    wandb: str | None = key(None, "ENTITY/PROJECT: save a W&B workspace there")
    report: PageConfig = key(PageConfig, "sentences shown of each run")


SCHEMAS = {  # by command; nmt.prepare takes the overrides of nmt.train
    "train": TrainConfig,
    "prepare": TrainConfig,
    "evaluate": EvaluateConfig,
    "translate": TranslateConfig,
    "score": ScoreConfig,
    "compare": CompareConfig,
    "baseline": BaselineConfig,
}
INITIAL_CHECKPOINT = "initial_checkpoint"
