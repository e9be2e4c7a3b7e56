"""The registry of scores; each module has one score or several related scores.

To add a score, write a subclass of `Score`. Either define it in this package and add it to `REGISTERED`, or
define it in your own module and name it in `evaluation.scores` (docs/extend.md).
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from nmt.evaluation.scores import bleu, model, text
from nmt.evaluation.scores.base import Score
from nmt.utils.errors import InputError, first_line

__all__ = ["NO_UNK", "REGISTERED", "Score", "choose_scores", "score_of_name"]

# This score cannot be chosen in evaluation.scores, because models with shortlists always have it.
NO_UNK = bleu.BleuNoUnk()

REGISTERED: dict[str, Score] = {
    score.key: score
    for score in (
        bleu.Bleu(),
        text.SacreBleu(),
        text.ChrF(),
        text.Ter(),
        model.NllPerSentence(),
        model.NllPerWord(),
        model.Perplexity(),
        bleu.LengthRatio(),
        bleu.BrevityPenalty(),
        bleu.BleuPrecisions(),
        model.AttentionEntropy(),
        model.EosWeight(),
        model.AlignmentErrorRate(),
        model.AlignmentPrecision(),
        model.AlignmentRecall(),
        model.EosShare(),
    )
}

DEFAULT = "default"  # name for all scores that are on by default


def choose_scores(
    names: Sequence[str] | None, key: str = "evaluation.scores", language: str | None = None
) -> list[Score]:
    """Returns the scores with these names; BLEU is always included as the first score.

    Args:
        names: keys of `REGISTERED`, `default` for all scores that are on by default, or MODULE.NAME for a
            subclass or instance of `Score` in another module. None means [default].
        key: configuration key, for the error message.
        language: target language, which determines the tokenisers of text scores.

    Raises:
        InputError: if a name is unknown or cannot be imported, or if it is not a `Score` with a new key.

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
    """Returns the score of a name: a key of `REGISTERED`, `bleu_no_unk` or MODULE.NAME; otherwise raises InputError."""
    known = {**REGISTERED, NO_UNK.key: NO_UNK}
    if name in known:
        return known[name]
    module, _, attribute = name.rpartition(".")
    if not module:
        raise InputError(
            f"{key}: no score '{name}'; choose {', '.join(REGISTERED)}, {DEFAULT}, "
            "or your own as MODULE.NAME"
        )
    try:
        named = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(f"{key}: {name}: {first_line(error)}") from error
    score = named() if isinstance(named, type) and issubclass(named, Score) else named
    if not isinstance(score, Score) or score.key in known:
        raise InputError(f"{key}: {name}: must be an nmt.evaluation.scores.Score with a new key")
    return score
