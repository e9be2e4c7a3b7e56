"""Display in notebooks, tested with IPython's formatters, without a kernel."""

from __future__ import annotations

import dataclasses
import math
import struct
from html.parser import HTMLParser

import numpy as np
import pytest

import nmt
from nmt.inference.sentence import ScoredSentence, ScoredSentences
from tests.helpers.run_folders import MARKUP, make_run

formatters = pytest.importorskip("IPython.core.formatters", reason="ipykernel is not installed")


def forms(result: object) -> dict[str, object]:
    """Returns what a notebook cell shows for an object, by MIME type."""
    data, _ = formatters.DisplayFormatter().format(result)
    return data


def text_of(html: str) -> tuple[str, set[str]]:
    """Returns the text of HTML, and the names of its elements."""
    texts, tags = [], set()
    parser = HTMLParser()
    parser.handle_data = texts.append
    parser.handle_starttag = lambda tag, _: tags.add(tag)
    parser.feed(html)
    return "".join(texts), tags


@pytest.fixture
def sentence() -> ScoredSentence:
    weights = np.array([[0.75, 0.25, 0], [0, 0.996, 0.004], [0, 0, 1]])
    return ScoredSentence(["<b>", MARKUP], ["un", "&amp;"], "un &amp;", -1.5, weights=weights)


def test_figure_is_displayed_once_and_closed(sentence):
    from matplotlib import pyplot

    shown = forms(nmt.plot_alignment(sentence))
    assert shown.keys() == {"text/plain", "image/png"}
    assert pyplot.get_fignums() == []
    picture = shown["image/png"]
    assert struct.unpack(">II", picture[16:24]) > (200, 200)


def test_sentence_html_escapes_text(sentence):
    text, tags = text_of(forms(sentence)["text/html"])
    assert text.startswith(f"<b> {MARKUP}un &amp; −1.50")
    assert tags == {"div", "b", "small", "img"}
    assert repr(sentence).splitlines()[1] == "-> un &amp; (log-probability -1.50)"
    unspaced = dataclasses.replace(sentence, text="字" * 150)
    assert repr(unspaced).splitlines()[1].startswith("-> " + "字" * 99 + "…")


def test_sentences_html_shows_100_sentences_and_counts_the_rest(sentence):
    plain = ScoredSentence(["a"], ["b"], "b", math.nan)
    text, tags = text_of(forms(ScoredSentences([sentence, plain]))["text/html"])
    assert tags == {"div", "b", "small"}
    assert text.endswith("ab –")
    text, _ = text_of(forms(ScoredSentences([plain] * 1300))["text/html"])
    assert text.endswith("… and 1,200 more")


def test_comparison_html_has_headline_curve_and_retention(tmp_path):
    runs = [make_run(tmp_path / name, model=name) for name in ("RNNencdec", "RNNsearch")]
    comparison = nmt.compare(runs, resamples=20)
    text, tags = text_of(forms(comparison)["text/html"])
    assert "RNNencdec-50 keeps" in text
    assert "What long sentences keep, on newstest" in text
    assert {"table", "img"} <= tags
    first, second = repr(comparison).splitlines()
    assert first == "Comparison of RNNencdec-50 and RNNsearch-50 on newstest"
    assert second.startswith("From 10 to 50 words, RNN")
