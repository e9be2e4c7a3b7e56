"""The alignment explorer in a browser: every step, key and link."""

import math
import re
from pathlib import Path
from typing import Any

import pytest

from nmt.report.runs import FinishedRun
from tests.report.page.browser import ENCDEC, IN_BROWSER, SEARCH, Opened, until

pytestmark = IN_BROWSER


def said(page: Any) -> str:
    return page.inner_text("#explorer-said")


def place(page: Any) -> str:
    return page.inner_text("#explorer-place").split(",")[0]


def test_step_shows_weights_energies_entropy_and_runners_up(
    page: Any, runs: list[FinishedRun]
) -> None:
    page.select_option("#explorer-sort", "length")
    page.select_option("#explorer-sentence", index=6)
    page.select_option("#explorer-run", SEARCH)
    identity = int(page.input_value("#explorer-sentence"))
    row = next(r for r in runs[2].alignments("newstest") if r["id"] == identity)
    page.click("#explorer-next")
    page.click("#explorer-next")
    weights = row["weights"][2]
    cells = page.locator("#explorer-energies tbody tr")
    listed = [float(cell.locator("td").nth(1).inner_text()) for cell in cells.all()]
    assert listed == pytest.approx(sorted(weights, reverse=True)[: len(listed)], abs=1.5e-3)
    assert 1 <= len(listed) <= 6
    most = max(range(len(weights)), key=lambda j: weights[j])
    shown = cells.first.locator("td").all_inner_texts()
    assert float(shown[1]) == pytest.approx(weights[most], abs=1.5e-3)
    energy = math.log(weights[most]) + row["log_normaliser"][2]
    assert float(shown[2].replace("\u2212", "-")) == pytest.approx(energy, abs=0.02)
    totals = page.inner_text("#explorer-totals")
    assert f"entropy {row['attention_entropy'][2]:.2f} nats" in totals
    percent = round(100 * weights[most])
    assert said(page).startswith(f"writing {row['target'][2]}, reads {row['source'][most]} ")
    assert re.search(rf"reads .* ({percent - 1}|{percent}|{percent + 1})\s%", said(page))
    assert f"{weights[most]:.2f} h({row['source'][most]})" in page.inner_text("#explorer-context")
    runners = page.locator("#explorer-runners tbody tr")
    assert runners.count() == 6
    assert row["target"][2] in runners.first.inner_text()
    assert row["runners_up"][2][0][0] in runners.nth(1).inner_text()
    assert page.locator("#explorer-map .cells rect").count() > len(row["target"])


def test_steps_change_by_button_key_slider_and_click(page: Any) -> None:
    page.select_option("#explorer-sentence", index=11)
    size = int(place(page).split()[-1])
    assert place(page) == f"word 1 of {size}"
    stage = page.locator("#explorer-stage")
    stage.focus()
    for key, number in (
        ("ArrowRight", 2),
        ("ArrowDown", 3),
        ("ArrowLeft", 2),
        ("End", size),
        ("Home", 1),
        ("ArrowUp", 1),
    ):
        page.keyboard.press(key)
        assert place(page) == f"word {number} of {size}", key
    page.fill("#explorer-slider", "4")
    assert place(page).startswith("word 5 of")
    assert "word 5" in page.get_attribute("#explorer-slider", "aria-valuetext")
    page.locator("#explorer-map text.target").nth(7).click()
    assert place(page).startswith("word 8 of")
    page.click("#explorer-previous")
    assert place(page).startswith("word 7 of")
    page.keyboard.press("End")
    page.locator("#explorer-map").evaluate("map => { map.style.width = '150px'; }")
    page.locator("#explorer-map").evaluate("map => { map.scrollLeft = 60; }")
    frame = page.locator("#explorer-map").bounding_box()
    for label, side in (("columns", "y"), ("margin", "x")):  # labels stay visible
        box = page.locator(f"#explorer-map .{label}").last.bounding_box()
        assert box[side] >= frame[side] - 1


def test_fixed_vector_is_drawn(page: Any) -> None:
    page.select_option("#explorer-run", ENCDEC)
    assert "reads the one fixed vector" in said(page)
    assert not page.is_visible("#explorer-energies")
    words = int(place(page).split()[-1])
    assert page.locator("#explorer-map .feed").count() == words
    assert page.locator("#explorer-map .feed.now").count() == 1
    page.locator("#explorer-stage").focus()
    for _ in range(3):
        page.keyboard.press("r")
    assert page.input_value("#explorer-run") == "RNNsearch-50 seed 2"
    assert page.is_visible("#explorer-energies")


def test_sentences_can_be_sorted_and_searched(page: Any) -> None:
    def numbers() -> list[float]:
        texts = page.locator("#explorer-sentence option").all_inner_texts()
        return [float(text.split()[0]) for text in texts]

    assert numbers() == sorted(numbers())
    page.select_option("#explorer-sort", "difference")
    assert numbers() == sorted(numbers(), reverse=True)
    assert numbers()[0] > numbers()[-1]
    page.fill("#explorer-find", "no sentence has this")
    assert numbers() == []
    assert page.inner_text("#explorer-count") == "0 sentences"
    page.fill("#explorer-find", "")
    page.select_option("#explorer-set", "mine")
    assert len(numbers()) == 12


def test_link_restores_the_step(chromium: Any, built: Path, page: Any) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.select_option("#explorer-sentence", index=8)
    page.select_option("#explorer-run", "RNNsearch-50 seed 2")
    for _ in range(4):
        page.click("#explorer-next")
    page.click("#explorer-copy")
    until(page, "document.getElementById('explorer-copied').textContent === 'Copied.'")
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == page.input_value("#explorer-link")
    other = Opened(chromium, built, link[link.index("#") :])
    assert said(other.page) == said(page)
    assert other.page.input_value("#explorer-run") == "RNNsearch-50 seed 2"
    assert other.page.evaluate("window.scrollY") > 300
    other.page.evaluate("location.hash = '#set=newstest&sentence=0&run=nobody&word=99999'")
    other.close()


def test_translation_links_to_its_alignment(page: Any) -> None:
    page.fill("#translations-least", "0")
    page.select_option("#translations-order", "length")
    article = page.locator(".translation", has=page.locator("header button")).first
    identity = article.locator("header b").inner_text().split()[1]
    article.locator("header button").click()
    assert page.input_value("#explorer-sentence") == identity
    assert page.evaluate("document.activeElement.id") == "explorer-stage"
