"""A page with the two models of the lesson (examples/models), as examples/demo.sh makes it."""

from pathlib import Path
from typing import Any

import pytest

import nmt
from nmt.report.comparison import compare_finished
from nmt.report.page.builder import build_page
from nmt.report.runs import find_runs
from tests.helpers import ROOT
from tests.helpers.models import write_live
from tests.helpers.run_folders import make_run
from tests.report.page.browser import IN_BROWSER, Opened, until

pytestmark = IN_BROWSER


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    for name in ("RNNencdec", "RNNsearch"):
        run = make_run(folder / name, model=name, pairs=40, kept=4)
        checkpoint = ROOT / "examples" / "models" / f"{name.lower()}.ckpt"
        write_live(nmt.load(checkpoint, accelerator="cpu", threads=1), run)
    return build_page(compare_finished(find_runs([folder]), resamples=0), folder / "demo.html")


def test_demo_models_translate(chromium: Any, demo: Path) -> None:
    """Of 24 words, RNNsearch skips at most two; sentence, translation and picture share a screen."""
    opened = Opened(chromium, demo, viewport={"width": 1280, "height": 800})
    page = opened.page
    until(page, "document.documentElement.dataset.translated === '1'")
    page.fill("#live-text", "The young woman eats a red apple.")
    page.press("#live-text", "Enter")
    until(page, "document.documentElement.dataset.translated === '2'")
    search = page.locator(".live-column").nth(1)
    written = search.locator(".written button").all_inner_texts()
    assert written == ["La", "jeune", "femme", "mange", "une", "pomme", "rouge", ".", "</s>"]
    page.fill(
        "#live-text",
        "The young woman eats a red apple, and the old man reads a letter, but the king sees a big house.",
    )
    page.press("#live-text", "Enter")
    until(page, "document.documentElement.dataset.translated === '3'")
    words, _, _, unread = page.locator("#live-table tbody tr").last.locator("th, td").all()
    assert int(words.inner_text()) == 24
    assert int(unread.inner_text()) <= 2
    page.locator("#live-section").evaluate("(part) => part.scrollIntoView()")
    assert page.locator("#live-text").bounding_box()["y"] >= 40
    last = search.locator(".map text.target").last.bounding_box()
    assert last["y"] + last["height"] <= 800
    opened.close()
