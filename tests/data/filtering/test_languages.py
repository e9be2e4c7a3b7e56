"""Languages of single lines."""

from __future__ import annotations

import pytest

from nmt.data.filtering.languages import check_identifier, is_other
from nmt.utils.errors import InputError


def test_language_is_identified() -> None:
    pytest.importorskip("py3langid", reason="the extra 'languages' is not installed")
    english = "The committee has voted on the proposal of the commission ."
    french = "Le comité a voté sur la proposition de la commission ."
    assert not is_other(english, "en", 0.5)
    assert is_other(english, "fr", 0.5)
    assert is_other(french, "en", 0.5)
    assert not is_other("Koch ( A5-0105 / 1999 )", "en", 0.5)  # too little to be sure of anything
    check_identifier(("en", "yue"), "key")
    with pytest.raises(InputError, match=r"^key: the identifier does not know the language 'tdt'"):
        check_identifier(("en", "tdt"), "key")
