"""Schema of results.json: types, ranges and lengths, checked before anything is used.

A run folder may come from a stranger. Keys that are not listed here are kept and not used.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from nmt.config.validation import check_set_name
from nmt.evaluation.scores import REGISTERED
from nmt.utils.errors import InputError
from nmt.utils.untrusted import Count, Number, check_against

NO_SCORES = frozenset(  # of a test set and of its rows
    {"from", "to", "sentences", "no_unk", "mean_length", "score", "low", "high"}
    | {"pairs", "search", "bucket_by", "confidence", "by_length", "alignment", "bleu"}
    | {"degradation", "by_unknown_words"}
)

LONGEST_TEXT = 1000
ShortText = Annotated[str, Field(max_length=LONGEST_TEXT)]
Share = Annotated[float, Field(gt=0, lt=1)]
BleuPoints = Annotated[float, Field(ge=0, le=100.001, allow_inf_nan=False)]
Length = Annotated[int, Field(ge=1, le=10**9)]
Figures = dict[str, Number | None]  # of a validation


class ScoreValue(TypedDict):
    """A score with its interval."""

    score: Number | None
    low: Number | None
    high: Number | None
    sentences: NotRequired[Count]
    signature: NotRequired[ShortText | None]


class BleuValue(TypedDict):
    """BLEU with its interval."""

    score: BleuPoints
    low: BleuPoints | None
    high: BleuPoints | None
    sentences: Count


class BleuScores(TypedDict):
    """`test.<set>.bleu`."""

    all: BleuValue
    no_unk: NotRequired[BleuValue | None]


class BucketScore(TypedDict):
    """BLEU of the sentences of a bucket that is not empty."""

    sentences: Annotated[int, Field(ge=1, le=10**9)]
    score: BleuPoints
    low: BleuPoints | None
    high: BleuPoints | None


class LengthRow(BucketScore):
    """A row of `test.<set>.by_length`."""

    from_: Annotated[Length, Field(alias="from")]
    to: Length | None
    no_unk: NotRequired[BleuValue | None]
    mean_length: NotRequired[Annotated[float, Field(ge=0, le=1e9)] | None]


class UnknownRow(BucketScore):
    """A row of `test.<set>.by_unknown_words`."""

    from_: Annotated[Count, Field(alias="from")]
    to: Count | None


class Slope(TypedDict):
    """The change of a score for 10 more words, with its interval."""

    score: Number
    low: Number | None
    high: Number | None


class RangeFit(TypedDict):
    """What is fitted over a range of lengths."""

    slope: Slope | None


class LocatedLength(TypedDict):
    """A length that was looked for, in words; an end that is None lies outside the data."""

    status: Literal["found", "none", "before the data", "beyond the data"]
    score: Number | None
    low: Number | None
    high: Number | None


class Losses(TypedDict):
    """Where a tenth and a half of the best bucket's score are lost."""

    tenth: LocatedLength | None
    half: LocatedLength | None


class DegradationOfScore(TypedDict):
    """`test.<set>.degradation.<score>`."""

    all: RangeFit
    to_cap: RangeFit
    beyond_cap: RangeFit
    losses: NotRequired[Losses]
    breakpoint: NotRequired[LocatedLength | None]
    line: NotRequired[list[Annotated[list[Number], Field(min_length=2, max_length=2)]] | None]


class LinkScores(TypedDict):
    """How the links of an aligner agree with the gold ones."""

    sentences: Count
    alignment_error_rate: NotRequired[ScoreValue | None]
    precision: NotRequired[ScoreValue | None]
    recall: NotRequired[ScoreValue | None]


NamedLinks = dict[ShortText, LinkScores]


class Alignment(TypedDict, total=False):
    """`test.<set>.alignment`: the model's own scores, and those of links beside them."""

    sentences: Count
    systems: NamedLinks | None
    symmetrised: NamedLinks | None
    statistical_aligners: dict[ShortText, LinkScores | Count] | None


class TestSet(TypedDict):
    """`test.<set>`."""

    pairs: Count
    bucket_by: Literal["source", "target"]
    bleu: BleuScores
    by_length: list[LengthRow]
    by_unknown_words: NotRequired[list[UnknownRow] | None]
    search: NotRequired[dict[str, str | Number | bool | None] | None]
    confidence: NotRequired[Share]
    alignment: NotRequired[Alignment | None]
    degradation: NotRequired[dict[str, DegradationOfScore] | None]


class Description(TypedDict):
    """An entry of `scores`: how to show one."""

    title: ShortText
    unit: ShortText
    digits: Annotated[int, Field(ge=0, le=10)]
    higher_is_better: bool | None
    by_length: bool


class TrainFigures(TypedDict, total=False):
    """`train`."""

    updates: Number | None
    epochs: Number | None
    hours: Number | None
    device: ShortText | None
    nll_per_sentence: Number | None
    target_words_per_second: Number | None
    peak_memory: Number | None


class EvaluationSettings(TypedDict, total=False):
    """`config.evaluation`, what is used of it."""

    edges: Annotated[list[Length], Field(max_length=1000)]
    confidence: Share


class DataSettings(TypedDict, total=False):
    """`config.data`, what is used of it."""

    languages: Annotated[list[ShortText], Field(min_length=2, max_length=2)]


class TokenizerSettings(TypedDict, total=False):
    """`config.tokenizer`, what is used of it."""

    normalise: bool


class ConfigFields(TypedDict, total=False):
    """`config`, what is used of it."""

    seed: int
    evaluation: EvaluationSettings
    data: DataSettings
    tokenizer: TokenizerSettings


class TextFingerprints(TypedDict):
    """`text`."""

    training: ShortText
    test: dict[str, ShortText]


class LoggedSource(TypedDict):
    """`sources.wandb`: the W&B run that trained a checkpoint, and the artifact that holds it."""

    run: ShortText | None
    artifact: ShortText | None


class Sources(TypedDict):
    """`sources` of a run that evaluates a checkpoint."""

    checkpoint: NotRequired[str]
    sha256: NotRequired[ShortText]
    wandb: NotRequired[LoggedSource | None]
    others: NotRequired[list[Sources]]


class InitialCheckpoint(TypedDict):
    """`initial_checkpoint`: what a training started from."""

    checkpoint: str
    sha256: ShortText
    update: Count
    text: ShortText
    configuration: ShortText
    wandb: NotRequired[LoggedSource | None]


class Results(TypedDict):
    """results.json of the present schema (docs/results_schema.md)."""

    schema: Literal[2]
    name: ShortText
    title: ShortText
    experiment: ShortText
    regime: ShortText
    model: ShortText
    scoring: ShortText
    max_length: int
    seed: int
    parameters: Count | None
    config: ConfigFields
    overrides: list[str]
    command: str
    versions: dict[str, str]
    train: TrainFigures
    valid: Figures
    history: list[Figures]
    test: dict[str, TestSet]
    scores: dict[Annotated[str, Field(max_length=200)], Description]
    commit: NotRequired[ShortText | None]
    processor: NotRequired[ShortText | None]
    text: NotRequired[TextFingerprints | None]
    sources: NotRequired[Sources | None]
    initial_checkpoint: NotRequired[InitialCheckpoint | None]
    without_text: NotRequired[dict[str, ShortText]]


RESULTS = TypeAdapter(Results)
_VALUE = TypeAdapter(ScoreValue | None)


def check_results(content: dict[str, Any], where: str) -> None:
    """Holds results.json of the present schema against it; raises InputError as `check_against`."""
    if isinstance(content.get("test"), dict):
        for name in content["test"]:
            try:
                check_set_name(name)
            except InputError as refused:
                raise InputError(f"{where}: {refused}") from refused
    check_against(content, RESULTS, where)
    _check_edges(content["config"].get("evaluation", {}).get("edges"), where)
    known = {*content["scores"], *REGISTERED}
    for name, result in content["test"].items():
        key = f"test.{name}"
        aligned = result.get("alignment") or {}
        parts = [(key, result), (f"{key}.alignment", aligned)]
        parts += [(f"{key}.by_length.{n}", row) for n, row in enumerate(result["by_length"])]
        for path, part in parts:
            _check_scores(part, known, where, path)
        _check_rows(result["by_length"], where, f"{key}.by_length")


def _check_scores(part: Mapping[str, Any], known: set[str], where: str, path: str) -> None:
    for key in known & part.keys() - NO_SCORES:
        check_against(part[key], _VALUE, where, f"{path}.{key}")


def _check_edges(edges: list[int] | None, where: str) -> None:
    if edges is not None and any(a >= b for a, b in itertools.pairwise(edges)):
        raise InputError(f"{where}: config.evaluation.edges={edges}: must ascend")


def _check_rows(rows: list[dict[str, Any]], where: str, path: str) -> None:
    """Buckets must ascend and not overlap."""
    last = 0
    for number, row in enumerate(rows):
        upto = row["to"]
        final = number == len(rows) - 1
        if (
            row["from"] <= last
            or (upto is None and not final)
            or (upto or row["from"]) < row["from"]
        ):
            raise InputError(f"{where}: {path}.{number}: buckets must ascend and not overlap")
        last = upto or row["from"]
