"""Restores a vocabulary of either kind from the state in a checkpoint or a cache."""

from __future__ import annotations

from typing import Any

from nmt.data.bpe_vocabulary import BpeVocabulary
from nmt.data.vocabulary import Vocabulary
from nmt.data.word_vocabulary import WordVocabulary
from nmt.utils.errors import InputError


def load_vocabulary(state: Any) -> Vocabulary:
    """The vocabulary that gave `state`.

    Raises:
        InputError: where `state` is not what `Vocabulary.state` returns.
    """
    kind = state.get("kind") if isinstance(state, dict) else None
    if kind == WordVocabulary.kind:
        words = state.get("words")
        if isinstance(words, list) and all(isinstance(word, str) for word in words):
            return WordVocabulary(words)
    if kind == BpeVocabulary.kind and isinstance(state.get("model"), str):
        return BpeVocabulary(state["model"])
    raise InputError("vocabulary: neither a list of words nor a set of subwords")
