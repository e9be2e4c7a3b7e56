"""The registry of scores; one file holds a score or a family of scores.

To add one: a subclass of `Score` in a file here and its place in `REGISTERED`, or one of your own
module, named in `evaluation.scores` (docs/extend.md).
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from nmt.evaluation.scores.base import Score
from nmt.evaluation.scores.bleu import (
    Bleu,
    BleuNoUnk,
    BleuPrecisions,
    BrevityPenalty,
    LengthRatio,
)
from nmt.evaluation.scores.model import (
    AlignmentErrorRate,
    AlignmentPrecision,
    AlignmentRecall,
    AttentionEntropy,
    EosShare,
    EosWeight,
    NllPerSentence,
    NllPerWord,
    Perplexity,
)
from nmt.evaluation.scores.text import ChrF, SacreBleu, Ter
from nmt.utils.errors import InputError, first_line

__all__ = [
    "NO_UNK",
    "REGISTERED",
    "Score",
    "choose_scores",
    "score_of_name",
]

# no choice of evaluation.scores: it stands beside BLEU wherever there are shortlists
NO_UNK = BleuNoUnk()

REGISTERED: dict[str, Score] = {
    score.key: score
    for score in (
        *(Bleu(), SacreBleu(), ChrF(), Ter(), NllPerSentence(), NllPerWord(), Perplexity()),
        *(LengthRatio(), BrevityPenalty(), BleuPrecisions(), AttentionEntropy(), EosWeight()),
        *(AlignmentErrorRate(), AlignmentPrecision(), AlignmentRecall(), EosShare()),
    )
}

DEFAULT = "default"  # stands for the scores that are on by default


def choose_scores(
    names: Sequence[str] | None, key: str = "evaluation.scores", language: str | None = None
) -> list[Score]:
    """The scores of these names, BLEU always and first.

    Args:
        names: of `REGISTERED`, or dotted: a subclass of `Score`, or an object of one, in a module of
            one's own, which is imported. `default`, and None: those that are on by default.
        key: of the configuration, for the message.
        language: of the target, which the tokenisers of text scores follow.

    Raises:
        InputError: naming what is not known, and what is.

    >>> [score.key for score in choose_scores(["chrf", "bleu"])]
    ['bleu', 'chrf']
    """
    chosen = {"bleu": REGISTERED["bleu"]}
    default = [name for name, score in REGISTERED.items() if score.default]
    for name in [DEFAULT] if names is None else names:
        for each in default if name == DEFAULT else [name]:
            score = score_of_name(each, key)
            chosen[score.key] = score
    return [score.for_language(language) for score in chosen.values()]


def score_of_name(name: str, key: str) -> Score:
    """One score: of `REGISTERED`, `bleu_no_unk`, or one's own. Raises as `choose_scores`."""
    known = {**REGISTERED, NO_UNK.key: NO_UNK}
    if name in known:
        return known[name]
    module, _, attribute = name.rpartition(".")
    if not module:
        raise InputError(
            f"{key}: no score '{name}'; there are {', '.join(REGISTERED)}, {DEFAULT}, "
            "and one of your own as MODULE.NAME"
        )
    try:
        named = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(f"{key}: {name}: {first_line(error)}") from error
    score = named() if isinstance(named, type) else named
    if not isinstance(score, Score) or score.key in known:
        raise InputError(f"{key}: {name}: must be an nmt.evaluation.scores.Score with a new key")
    return score
