"""Language identification of a line with py3langid (extra `languages`)."""

from __future__ import annotations

import functools
from typing import Any

from nmt.utils.errors import InputError
from nmt.utils.optional import need

IDENTIFIED_AS = {"yue": "zh", "tdt": None, "mni": None}  # codes that the identifier lacks


def is_other(text: str, language: str, probability: float) -> bool:
    """Whether `text` is in another language than `language` with more than this probability."""
    found, found_probability = _identifier().classify(text)
    return found != IDENTIFIED_AS.get(language, language) and bool(found_probability > probability)


def check_identifier(languages: tuple[str, str], key: str) -> None:
    """Refuses where the identifier is not installed or does not know one of the languages."""
    need("py3langid", "languages", key)
    for language in languages:
        if IDENTIFIED_AS.get(language, language) not in _identifier().labels:
            raise InputError(f"{key}: the identifier does not know the language {language!r}")


@functools.cache
def _identifier() -> Any:
    """py3langid (Lui and Baldwin 2012, langid.py), whose model lies in its package."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
