"""The registry of scores; one file holds a score or a family of scores.

To add one: a subclass of `Score` in a file here and its place in `REGISTERED`, or one of your own
module, named in `evaluation.scores` (docs/own-score.md).
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from nmt.evaluation.bleu import sentence_statistics
from nmt.evaluation.scores.alignment import (
    EosShare,
    ErrorRate,
    Precision,
    Recall,
    detailed_error_rates,
)
from nmt.evaluation.scores.attention import AttentionEntropy, EosWeight
from nmt.evaluation.scores.base import Record, Score
from nmt.evaluation.scores.bleu import Bleu, BleuNoUnk, BrevityPenalty, LengthRatio
from nmt.evaluation.scores.coverage import RepeatedNgrams, UnreadWords
from nmt.evaluation.scores.likelihood import NllPerSentence, NllPerWord, Perplexity
from nmt.evaluation.scores.text import ChrF, SacreBleu, Ter
from nmt.utils.errors import InputError, first_line

__all__ = ["NO_UNK", "REGISTERED", "Score", "choose_scores", "modules_of_scores", "score_of_name"]

# no choice of evaluation.scores: it stands beside BLEU wherever there are shortlists
NO_UNK = BleuNoUnk()

REGISTERED: dict[str, Score] = {
    score.key: score
    for score in (
        Bleu(),
        SacreBleu(),
        ChrF(),
        Ter(),
        NllPerSentence(),
        NllPerWord(),
        Perplexity(),
        LengthRatio(),
        BrevityPenalty(),
        AttentionEntropy(),
        EosWeight(),
        ErrorRate(),
        Precision(),
        Recall(),
        EosShare(),
        *detailed_error_rates(),
        UnreadWords(),
        RepeatedNgrams(),
    )
}


DEFAULT = "default"  # stands for the scores that are on by default

# Other keys of a test set's results and of a row of `by_length`, which no score may have.
RESERVED = {
    *("pairs", "search", "bucket_by", "confidence", "alignment", "degradation"),
    *("systems", "statistical_aligners", "symmetrised"),
    *("by_length", "by_unknown_words"),
    *("from", "to", "sentences", "score", "low", "high", "no_unk", "bleu_no_unk", "mean_length"),
    *("run", "bucket", "group"),
}

_HYPOTHESIS, _REFERENCE = ["a", "man", "sleeps"], ["a", "man", "is", "sleeping"]
_BLEU = sentence_statistics(_HYPOTHESIS, _REFERENCE).tolist()
MADE_UP: Record = {  # a record with every entry of `nmt.evaluation.records`
    **{"id": 0, "source": ["un", "homme", "dort"], "length": 3, "no_unk": True},
    **{"reference": _REFERENCE, "raw_reference": "A man is sleeping."},
    **{"hypothesis": _HYPOTHESIS, "detokenised": "A man sleeps", "bleu_stats": _BLEU},
    **{"hypothesis_no_unk": _HYPOTHESIS, "bleu_stats_no_unk": _BLEU},
    **{"nll": 7.5, "score": -4.5, "attention_entropy": 0.5, "eos_weight": 0.1},
    **{"alignment_counts": [3, 2, 3, 3, 0, 3], "statistics": {}},
    **{"attention_mass": [1.0, 0.9, 1.1], "unknown_words": [0, 0]},
}

_MADE: dict[str, tuple[Any, Score]] = {}  # by dotted name: what it is in its module, and its score


def choose_scores(names: Sequence[str] | None, key: str = "evaluation.scores") -> list[Score]:
    """The scores of these names, BLEU always and first.

    Args:
        names: of `REGISTERED`, or dotted: a subclass of `Score`, or an object of one, in a module of
            one's own, which is imported. `default`, and None: those that are on by default.
        key: of the configuration, for the message.

    Raises:
        InputError: naming what is not known, and what is.

    >>> [score.key for score in choose_scores(["chrf", "bleu"])]
    ['bleu', 'chrf']
    """
    chosen = {"bleu": REGISTERED["bleu"]}
    for name in _expanded([DEFAULT] if names is None else names):
        score = _named(name, key, DEFAULT)
        if chosen.setdefault(score.key, score) is not score:
            raise InputError(f"{key}: two scores have the key '{score.key}'; give yours another")
    return list(chosen.values())


def score_of_name(name: str, key: str) -> Score:
    """One score: of `REGISTERED`, `bleu_no_unk`, or one's own. Raises as `choose_scores`."""
    return NO_UNK if name == NO_UNK.key else _named(name, key, NO_UNK.key)


def modules_of_scores(names: Sequence[str] | None) -> list[str]:
    """The modules that choosing these scores would import.

    >>> modules_of_scores(["bleu", "mine.scores.ExactMatch"])
    ['mine.scores']
    """
    return [name.rpartition(".")[0] for name in names or () if "." in name]


def _expanded(names: Sequence[str]) -> list[str]:
    """The names with those that are on by default in place of `default`."""
    on = [key for key, score in REGISTERED.items() if score.default]
    return [each for name in names for each in (on if name == DEFAULT else [name])]


def _named(name: str, key: str, other: str) -> Score:
    """The score of a name; a refusal lists `other`, too, which the caller knows."""
    score = _own(name, key) if "." in name else REGISTERED.get(name)
    if score is None:
        raise InputError(
            f"{key}: no score '{name}'; there are {', '.join(REGISTERED)}, "
            f"{other}, and one of your own as MODULE.NAME"
        )
    return score


def _own(name: str, key: str) -> Score:
    """A score of one's own: made and tried once, for one that is slow may load a model for it."""
    module, _, attribute = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), attribute)
        if name in _MADE and _MADE[name][0] is found:
            return _MADE[name][1]
        score = found() if isinstance(found, type) else found
    except Exception as error:
        raise InputError(
            f"{key}: {name}: {first_line(error)} (is its module importable here?)"
        ) from error
    if not isinstance(score, Score):
        raise InputError(f"{key}: {name}: not an nmt.evaluation.scores.Score")
    own_key = getattr(score, "key", None)
    if not isinstance(own_key, str) or not own_key.isidentifier():
        raise InputError(f"{key}: {name}: its `key` must be a name, such as exact_match")
    if score.key in REGISTERED or score.key in RESERVED:
        raise InputError(f"{key}: {name}: the key '{score.key}' is taken; give it another")
    _try(score, f"{key}: {name}")
    _MADE[name] = found, score
    return score


def _try(score: Score, name: str) -> None:
    """Refuses a score that fails on a made-up sentence, before any model is tested."""
    try:
        row = score.checked(MADE_UP)
        if row is not None:
            with np.errstate(all="ignore"):
                score.values(np.array([row, row], dtype=np.float64))
    except InputError as error:
        what = str(error).removeprefix("scores: ").partition(": ")[2]
        what = what.replace(f"sentence {MADE_UP['id']}", "statistics of a made-up sentence", 1)
        raise InputError(f"{name}: {what}") from error
