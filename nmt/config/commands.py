"""The keys of each command, built from the sections of `nmt.config.schema`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omegaconf import MISSING

from nmt.config.keys import MACHINE, MAX_LENGTH, MAX_RESAMPLES, key
from nmt.config.schema import (
    Config,
    HeldOutConfig,
    ModelRunConfig,
    PageConfig,
    ReportConfig,
)

MODEL = "checkpoint file, run folder (its best checkpoint), or wandb:ENTITY/PROJECT/NAME:ALIAS"


@dataclass
class TrainConfig(Config):
    """`nmt.train`: the whole configuration of a training run, stored in its checkpoints."""

    resume: str | None = key(
        None, "run folder to resume; auto: resume hydra.run.dir if it has a checkpoint", MACHINE
    )
    initial_checkpoint: str | None = key(
        None, f"model whose weights and vocabularies training starts from: {MODEL}"
    )
    ckpt_path: str | None = key(
        None,
        "checkpoint file whose training continues in a new folder, with its configuration and your overrides",
    )


@dataclass
class CheckpointConfig(ModelRunConfig):
    """Keys of commands that start from a checkpoint; overrides replace the stored values."""

    checkpoint: Any = key(MISSING, f"the trained model: {MODEL}; [a,b,c]: an ensemble")


@dataclass
class EvaluateConfig(CheckpointConfig):
    """`nmt.evaluate`: the stored configuration of a checkpoint, with overrides."""

    sets: list[str] = key([], "names of test sets to evaluate; empty: all")
    name: str | None = key(None, "title of the run; null: the training run's title")
    data: HeldOutConfig = key(HeldOutConfig, "the test sets")
    report: ReportConfig = key(ReportConfig, "figures, and sentences kept for the page")
    logger: dict[str, Any] = key({}, "Lightning loggers by name (group `logger`)")


@dataclass
class LinesConfig(CheckpointConfig):
    """Keys of commands that read and print line by line."""

    tokenised: bool = key(False, "input and output are tokenised, with spaces between tokens")
    alignments: str | None = key(
        None,
        "add a column of alignment links (pharaoh), or print one JSON object per line (json)",
        choices=("pharaoh", "json"),
    )


@dataclass
class TranslateConfig(LinesConfig):
    """`nmt.translate`: what is printed for each line of standard input."""

    scores: bool = key(False, "print the score and a tab before each translation")


@dataclass
class ScoreConfig(LinesConfig):
    """`nmt.score`: what is printed for each pair of lines of two files."""

    source: str = key(MISSING, "file of source sentences, one per line (plain or compressed)")
    target: str = key(MISSING, "file of target sentences: line i translates line i of `source`")


@dataclass
class CompareConfig:
    """`nmt.compare`: which runs and systems are compared, and where the page is written."""

    runs: list[str] = key([], "run folders, sweep folders, or globs of them")
    source: str | None = key(
        None, "file with the source of a test set: a line or row per sentence or document"
    )
    reference: Any = key(None, "file with the reference translation; several files: [F,G]")
    systems: Any = key(
        None,
        "files F with output of other systems: [outputs/*.de], {NAME: F}, or {NAME: {SET: F}} for several "
        "test sets; in a dictionary, F may be FILE:COLUMN",
    )
    languages: list[str] | None = key(
        None, "source and target language, such as [de,en]; null: taken from the file names"
    )
    lengths: str | None = key(
        None,
        "unit of source lengths: words, characters, tokens, position (of a segment in its document), document (its "
        "length), or a column of numbers in metadata or source; null: words, or characters in a language "
        "without spaces",
    )
    edges: list[int] | None = key(
        None,
        "maximum length of each bucket except the last; null: chosen from the text",
        minimum=1,
        maximum=MAX_LENGTH,
    )
    short: int | None = key(
        None,
        "shorter length for retention (score at long divided by score at short); null: chosen from the text",
        minimum=1,
        maximum=MAX_LENGTH,
    )
    long: int | None = key(
        None,
        "longer length for retention; null: chosen from the text",
        minimum=2,
        maximum=MAX_LENGTH,
    )
    metadata: str | None = key(None, "TSV or JSONL file with a row per line of source")
    id: str | None = key(
        None,
        "column that joins the rows of files; null: doc_id, docid, document_id, id, seg_id where two files have it; "
        "line: by line number, without a check of the order",
    )
    select: Any = key(
        None, "rows of the test set to use, such as domain=news or doc_id=en-ru_RU*; several: [A,B]"
    )
    document: str | None = key(None, "column of metadata or source with the document of each line")
    domain: str | None = key(
        None,
        "column of metadata or source with the domain of each line; adds curves by domain and domain-adjusted curves",
    )
    output: str = key("comparison", "folder for comparison.html and the tables")
    resamples: int = key(
        1000, "bootstrap resamples for intervals and tests", minimum=0, maximum=MAX_RESAMPLES
    )
    scores: Any = key(
        None,
        "scores to compare, such as [bleu,chrf] or MODULE.NAME; null: all scores of the runs; scores.NAME=F "
        "adds the score in column NAME of F, or scores.NAME={file: F, better: high|low, best, worst, per, weights}; "
        "scores.against=NAME compares the others with this score",
    )
    figures: Any = key(
        [],
        "formats of extra figures for papers, such as pdf or [pdf,svg]",
        choices=("png", "svg", "pdf"),
    )
    wandb: str | None = key(None, "ENTITY/PROJECT in which to save a W&B workspace")
    report: PageConfig = key(PageConfig, "sentences shown of each run")


SCHEMAS = {  # by command; nmt.prepare takes the overrides of nmt.train
    "train": TrainConfig,
    "prepare": TrainConfig,
    "evaluate": EvaluateConfig,
    "translate": TranslateConfig,
    "score": ScoreConfig,
    "compare": CompareConfig,
}
INITIAL_CHECKPOINT = "initial_checkpoint"
