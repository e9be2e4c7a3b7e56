"""Schema of the lines of translations/*.jsonl and alignments/*.jsonl."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from nmt.evaluation.alignment import COUNTS
from nmt.evaluation.bleu import CORRECT, HYPOTHESIS_LENGTH, TOTAL, WIDTH
from nmt.utils.errors import InputError
from nmt.utils.untrusted import Count, Number, check_against

Tokens = list[str]
Statistic = Annotated[int, Field(ge=0, le=10**9)]
BleuStatistics = Annotated[list[Statistic], Field(min_length=WIDTH, max_length=WIDTH)]
LinkCounts = Annotated[list[Statistic], Field(min_length=len(COUNTS), max_length=len(COUNTS))]
Weight = Annotated[float, Field(ge=0, le=1.01, allow_inf_nan=False)]


class TranslationRow(TypedDict):
    """A line of translations/<set>.jsonl."""

    id: Count
    source: Tokens
    reference: Tokens
    hypothesis: Tokens
    detokenised: str
    length: Statistic
    bleu_stats: NotRequired[BleuStatistics]
    raw_reference: NotRequired[str | None]
    no_unk: NotRequired[bool | None]
    unknown_words: NotRequired[Annotated[list[Statistic], Field(min_length=2, max_length=2)] | None]
    nll: NotRequired[Number | None]
    score: NotRequired[Number | None]
    hypothesis_no_unk: NotRequired[Tokens]
    bleu_stats_no_unk: NotRequired[BleuStatistics]
    attention_entropy: NotRequired[Number | None]
    eos_weight: NotRequired[Number | None]
    alignment_counts: NotRequired[LinkCounts | None]
    attention_mass: NotRequired[list[Number] | None]
    without_text: NotRequired[bool]
    statistics: NotRequired[dict[str, Annotated[list[Number], Field(min_length=1)]] | None]


class AlignmentRow(TypedDict):
    """A line of alignments/<set>.jsonl."""

    id: Count
    source: Annotated[Tokens, Field(min_length=1)]
    target: Annotated[Tokens, Field(min_length=1)]
    weights: list[list[Weight]] | None
    length: NotRequired[Statistic]
    reference: NotRequired[Tokens | None]
    score: NotRequired[Number | None]
    log_normaliser: NotRequired[list[Number | None] | None]
    attention_entropy: NotRequired[list[Number | None] | None]
    log_probability: NotRequired[list[Number | None] | None]
    runners_up: NotRequired[
        list[list[Annotated[list[str | Number | None], Field(min_length=2, max_length=2)]]] | None
    ]


TRANSLATION = TypeAdapter(TranslationRow)
ALIGNMENT = TypeAdapter(AlignmentRow)


def check_translation(row: Any, where: str) -> None:
    """Validates a record of a sentence; raises InputError as `check_against`."""
    check_against(row, TRANSLATION, where)
    for key in ("bleu_stats", "bleu_stats_no_unk"):
        counts = row.get(key) or [0] * WIDTH
        written = counts[TOTAL]
        more_correct = any(map(int.__gt__, counts[CORRECT], written))
        if more_correct or max(written) > counts[HYPOTHESIS_LENGTH]:
            raise InputError(f"{where}: {key}: more n-grams correct than written, or than words")


def check_alignment(row: Any, where: str) -> None:
    """Validates an alignment, its lengths included; raises InputError as `check_against`."""
    check_against(row, ALIGNMENT, where)
    steps, words = len(row["target"]), len(row["source"])
    for key in (
        *("weights", "log_normaliser", "attention_entropy"),
        *("log_probability", "runners_up"),
    ):
        found = row.get(key)
        if found and len(found) != steps:
            raise InputError(f"{where}: {key}: {len(found)} entries for {steps} target words")
    if any(len(weights) != words for weights in row["weights"] or ()):
        raise InputError(f"{where}: weights: each row must have {words} entries, one a source word")
    for step in row.get("runners_up") or ():
        if not all(isinstance(token, str) and not isinstance(p, str) for token, p in step):
            raise InputError(f"{where}: runners_up: each must be a token and its log-probability")
