"""Every key of the configuration: its type, its meaning, and the values it accepts.

The dataclasses below are the schema that Hydra checks a composed configuration against, so that a
misspelt key or a value of the wrong type is refused; `nmt.config.validation` adds what types cannot say. Values
live in `conf/`: a default in this file is only what holds when no file of `conf/` says otherwise.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING, DictConfig, OmegaConf

from nmt.config.keys import key, marked

EDGES = (10, 20, 30, 40, 50, 60)  # last length of each bucket where nothing says another
CONFIDENCE = 0.95  # share of the resamples inside an interval, likewise
INITS = ("paper", "glorot", "wide")  # as in nmt.layers.initialisation


@dataclass
class SizeConfig:
    """Sizes of the layers; the paper's letters and values in brackets."""

    hidden: int = key(256, "hidden units of one recurrent network (n, 1000)", minimum=1)
    embedding: int = key(128, "entries of a word's embedding (m, 620)", minimum=1)
    alignment: int = key(
        256, "entries of the space that queries and keys are compared in (n', 1000)", minimum=1
    )
    maxout: int = key(128, "maxout units of the readout (l, 500)", minimum=1)


@dataclass
class ModelConfig:
    """Which model is trained, and how its equations are run."""

    _target_: str = key("nmt.models.RNNsearch", "class of the Lightning module")
    title: str = key("RNNsearch", "the model's name in tables and figures")
    scoring: dict[str, Any] | None = key(
        None, "scoring function of the attention (group `scoring`)"
    )
    state_input: str = key(
        "previous",
        "word that enters the state s_i: y_{i-1} (the paper) or y_i (the authors' program)",
        choices=("previous", "current"),
    )
    init: str = key("paper", "initialisation of the weights", choices=INITS)
    dropout: float = key(
        0.0, "share of embedding and readout entries dropped in training", minimum=0, below=1
    )
    recurrence: str = key(
        "fused",
        "plain: readable loop under autograd; fused: own backward over the whole sentence",
        choices=("plain", "fused"),
    )
    graphs: bool = key(
        True,
        "capture the recurrence in CUDA graphs (fused, on a GPU, batches of sentences)",
        runtime=True,
    )
    hidden: int = key("${size.hidden}", "see size.hidden", minimum=1)
    embedding: int = key("${size.embedding}", "see size.embedding", minimum=1)
    alignment: int | None = key(
        None, "see size.alignment; null: the model has no attention, and no scoring", minimum=1
    )
    maxout: int = key("${size.maxout}", "see size.maxout", minimum=1)
    options: dict[str, Any] = key({}, "keys of a model of your own, by name")


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


@dataclass
class OptimizerConfig:
    """The step that follows a gradient."""

    _target_: str = key("torch.optim.Adadelta", "class of the optimizer")
    lr: float = key(1.0, "learning rate (1 for Adadelta, about 1e-3 for Adam)", above=0)
    clip_norm: float = key(1.0, "largest L2 norm of the gradient; 0: no clipping", minimum=0)
    options: dict[str, Any] = key({}, "the class' other arguments, by name")
    schedule: dict[str, Any] = key(
        {"_target_": "nmt.models.optimizer.constant"},
        "how the learning rate moves over the updates; type schedule=linear",
    )
    warmup: int = key(0, "updates over which the learning rate rises from 0", minimum=0)
    decay_from: float = key(
        0.0, "linear: share of the updates after which the decay begins", minimum=0, below=1
    )


@dataclass
class TrainerConfig:
    """How long and on what a model is trained."""

    max_steps: int = key(1000, "updates of the weights", minimum=1, resumable=True)
    valid_every: int = key(200, "updates between two validations", minimum=1)
    valid_translate: int = key(
        200, "development sentences translated (greedily) for BLEU at each validation", minimum=0
    )
    patience: int = key(
        0, "stop after this many validations without a better score; 0: never", minimum=0
    )
    monitor: str = key(
        "nll",
        "score that names the best checkpoint: NLL a word, or BLEU of the translated sentences",
        choices=("nll", "bleu"),
    )
    accelerator: str = key(
        "auto", "device kind", choices=("auto", "cpu", "gpu", "cuda"), runtime=True
    )
    devices: int = key(1, "devices of a machine", minimum=1, runtime=True)
    num_nodes: int = key(1, "machines", minimum=1, runtime=True)
    strategy: str = key("auto", "Lightning strategy; ddp for several devices", runtime=True)
    precision: str = key(
        "32",
        "32, bf16-mixed, or auto: bf16-mixed where the device multiplies bf16 faster, else 32",
        choices=("32", "bf16-mixed", "auto"),
    )
    accumulate: int = key(
        1,
        "micro-batches an update; each device has an equal share of its sentences in each",
        minimum=1,
    )
    threads: int = key(
        1,
        "threads of one process on a CPU; more pay only on an idle machine with large layers",
        minimum=1,
        runtime=True,
    )
    progress: bool = key(
        True, "show bars and the lines between them, in preparing and testing too", runtime=True
    )
    log_every: int = key(
        20, "updates between two lines of training scores", minimum=1, runtime=True
    )
    lightning: dict[str, Any] = key(
        {},
        "other arguments of Lightning's Trainer, by name: +trainer.lightning.profiler=simple",
    )


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
class LoggerConfig:
    """Where training scores go while they are made."""

    name: str = key(
        "wandb", "where the scores of training go", choices=("wandb", "csv", "tensorboard", "none")
    )
    mode: str = key(
        "offline",
        "wandb: kept here for `wandb sync` (no account), sent at once, or nothing at all",
        choices=("offline", "online", "disabled"),
    )
    project: str = key("nmt", "wandb: project")
    entity: str | None = key(None, "wandb: user or team")
    group: str | None = key(None, "wandb: group; a sweep names its folder here")
    tags: list[str] = key([], "wandb: tags")


@dataclass
class CheckpointConfig:
    """When the state of training is written."""

    minutes: float = key(
        10.0, "minutes between two checkpoints, besides the one at each validation", above=0
    )


@dataclass
class Config:
    """A model, its text and its tests: what all commands on one share.

    A command that starts from a checkpoint names in `overridable` what of the training run's
    configuration may be typed; the rest is the checkpoint's.
    """

    overridable: ClassVar[tuple[str, ...]] = ()

    name: str = key(
        "${model.title}-${data.max_length}", "the run's name in tables and figures", resumable=True
    )
    experiment: str = key(
        "custom",
        "row of the paper's Table 1 this run stands for; `updates` has an entry of this name",
    )
    regime: str = key("laptop", "scale of the run", choices=("tiny", "laptop", "paper"))
    updates: dict[str, int] = key(
        {},
        "updates of each experiment at this scale (set by the regime)",
        runtime=True,  # a table: the run's own number is trainer.max_steps
    )
    seed: int = key(
        1, "seed of initialisation, order of the data and dropout", minimum=0, maximum=2**32 - 1
    )
    deterministic: bool = key(False, "on a GPU: only deterministic kernels (slower)")
    trust: list[str] = key(
        [], "modules outside nmt that a stored configuration may name", runtime=True
    )
    size: SizeConfig = key(SizeConfig, "sizes of the layers")
    model: ModelConfig = key(ModelConfig, "the model")
    tokenizer: TokenizerConfig = key(TokenizerConfig, "the tokenizer")
    data: DataConfig = key(DataConfig, "the text")
    optimizer: OptimizerConfig = key(OptimizerConfig, "the optimizer")
    callbacks: dict[str, Any] = key(
        {}, "Lightning callbacks by name, each a `_target_` with its arguments (group `callbacks`)"
    )
    trainer: TrainerConfig = key(TrainerConfig, "the training loop")
    search: SearchConfig = key(SearchConfig, "the search for a translation", resumable=True)
    evaluation: EvaluationConfig = key(EvaluationConfig, "what is measured", resumable=True)
    stress: StressConfig = key(StressConfig, "stress of length", resumable=True)
    report: ReportConfig = key(ReportConfig, "what is kept and drawn", runtime=True)
    logger: LoggerConfig = key(LoggerConfig, "the logger", runtime=True)


@dataclass
class TrainConfig(Config):
    """`nmt.train`, and what a checkpoint stores: the whole configuration of a training run."""

    resume: str | None = key(
        None,
        "run folder to go on with; auto: hydra.run.dir, if a checkpoint is there",
        runtime=True,
    )
    checkpoint: CheckpointConfig = key(CheckpointConfig, "checkpoints", runtime=True)


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
        "trainer",
        "data.test",
        "data.root",
        "data.cache",
    )

    checkpoint: str = key(MISSING, "file of the trained model")
    sets: list[str] = key([], "test sets to run, by name; none: all")


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


@dataclass
class BaselineConfig(Config):
    """`nmt.baseline`: a phrase-based system on the text of a training run."""

    phrase_based: PhraseBasedConfig = key(PhraseBasedConfig, "the phrase-based system")


@dataclass
class TranslateConfig(Config):
    """`nmt.translate`: what is written for each line of standard input."""

    overridable: ClassVar = ("search", "trainer", "evaluation.alignment")

    checkpoint: str = key(MISSING, "file of the trained model")
    nbest: int = key(1, "translations a line, best first", minimum=1)
    scores: bool = key(False, "write the log-probability before each translation, and a tab")
    detokenise: bool = key(True, "write ordinary text; false: tokens separated by spaces")
    tokenised: bool = key(False, "the input holds tokens separated by spaces")
    alignments: str | None = key(
        None,
        "write the links after each translation (pharaoh), or a JSON object a line (json)",
        choices=("pharaoh", "json"),
    )
    heatmap: str | None = key(None, "folder for a heatmap of each line (PNG)")
    page: str | None = key(None, "HTML file for the alignment explorer of all lines")


@dataclass
class CompareConfig:
    """`nmt.compare`: which runs are set side by side, and where the page goes."""

    runs: list[str] = key(MISSING, "run folders, sweep folders, or globs of them")
    output: str = key("comparison", "folder for comparison.html and the tables")
    external: dict[str, dict[str, str]] = key(
        {}, "hypotheses of other systems: external.<system>.<test set>=file"
    )
    resamples: int = key(1000, "bootstrap resamples behind intervals and tests", minimum=0)
    scores: list[str] | None = key(
        None,
        "scores whose differences are tested, such as [bleu,chrf] or one of your own as "
        "MODULE.NAME; null: all that the runs have",
    )
    figures: Any = key(
        [],
        "also draw figures for papers: pdf, or several as [pdf,svg]",
        choices=("png", "svg", "pdf"),
    )
    wandb: str | None = key(None, "ENTITY/PROJECT: also save a W&B workspace and report there")
    report: PageConfig = key(PageConfig, "what is shown of each run")


# Where a run is made, and what is kept and said of it: nothing that it learns or scores.
RUNTIME_KEYS = tuple(marked(TrainConfig, "runtime"))

SCHEMAS = {  # of each command; preparing takes the line that training will
    "train": TrainConfig,
    "prepare": TrainConfig,
    "evaluate": EvaluateConfig,
    "translate": TranslateConfig,
    "compare": CompareConfig,
    "baseline": BaselineConfig,
}


def register(commands: Iterable[str] = SCHEMAS) -> None:
    """Makes the schemas of these commands known to Hydra.

    Hydra copies all that it knows once for each config group that `--help` lists.
    """
    store = ConfigStore.instance()
    for command in commands:
        store.store(name=f"{command}_schema", node=SCHEMAS[command])


def scoring_of(model: ModelConfig | DictConfig) -> str | None:
    """Class of a model's scoring function; None where it has none."""
    return (model.scoring or {}).get("_target_")


def plain(config: Any) -> dict[str, Any]:
    """A configuration, or a section of one, as dictionaries and lists, for files and checkpoints."""
    if isinstance(config, DictConfig):
        config = OmegaConf.to_object(config)
    return dataclasses.asdict(config)
