"""The page docs/demo.html, which has trained models and is linked from the README."""

import re
from typing import Any

import pytest

from tests.helpers import ROOT
from tests.report.page.browser import IN_BROWSER, Opened, until
from tests.report.page.elements import Elements

DEMO = ROOT / "docs" / "demo.html"


@pytest.fixture(scope="module")
def demo() -> Elements:
    return Elements(DEMO.read_text(encoding="utf-8"))


def test_demo_is_small_and_names_no_local_folder(demo: Elements) -> None:
    assert DEMO.stat().st_size <= 9e6
    data = demo.packed("data")
    assert not re.search(r"/(tmp|work|home)/", str(data))
    page = DEMO.read_text(encoding="utf-8")
    # The page shows the command that a user types.
    assert "<code>python -m nmt.train +experiment=rnnsearch50" in page
    labels = {run["label"] for run in data["overview"]["runs"]}
    assert labels == {"RNNencdec-50", "RNNsearch-50"}


@IN_BROWSER[0]
@IN_BROWSER[1]
def test_demo_models_translate(chromium: Any) -> None:
    """After three clicks on `longer`, RNNsearch skips at most two source words."""
    opened = Opened(chromium, DEMO)
    page = opened.page
    until(page, "document.documentElement.dataset.translated === '1'")
    page.fill("#live-text", "The young woman eats a red apple.")
    page.press("#live-text", "Enter")
    until(page, "document.documentElement.dataset.translated === '2'")
    written = page.locator(".live-column").nth(1).locator(".written button").all_inner_texts()
    assert written == ["La", "jeune", "femme", "mange", "une", "pomme", "rouge", ".", "</s>"]
    for turn in (3, 4, 5):
        page.click("#live-longer")
        until(page, f"document.documentElement.dataset.translated === '{turn}'")
    assert page.input_value("#live-text").startswith("The young woman eats a red apple, and ")
    words, _, _, unread = page.locator("#live-table tbody tr").last.locator("th, td").all()
    assert int(words.inner_text()) >= 20
    assert int(unread.inner_text()) <= 2
    opened.close()
