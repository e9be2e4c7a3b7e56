"""The layout of the page: colours, contrast, widths, keyboard, and pages with few or many runs."""

import os
from pathlib import Path
from typing import Any

import pytest

from nmt.report.comparison import compare_finished
from nmt.report.page.builder import build_page
from nmt.report.runs import FinishedRun, find_runs
from tests.helpers.run_folders import make_run
from tests.report.page.browser import ENCDEC, IN_BROWSER, Opened, barriers, drawn_after, lines

pytestmark = IN_BROWSER


def test_colours_follow_the_system_or_the_selector(page: Any) -> None:
    def background() -> str:
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    def words() -> str:
        return page.inner_text("#explorer-section .see")

    assert background() == "rgb(255, 255, 255)"
    assert "The darker a square" in words()
    page.emulate_media(color_scheme="dark")
    assert background() == "rgb(20, 23, 27)"
    assert "The lighter a square" in words()
    drawn_after(page, "#length-chart", lambda: page.select_option("#theme", "light"))
    assert background() == "rgb(255, 255, 255)"
    assert "The darker a square" in words()
    page.emulate_media(color_scheme="light")
    drawn_after(page, "#length-chart", lambda: page.select_option("#theme", "dark"))
    assert background() == "rgb(20, 23, 27)"
    assert "The lighter a square" in words()
    text = page.locator("#length-chart .role-axis-label text").first
    assert text.get_attribute("fill") == "#e9ecf0"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1600])
def test_page_is_readable_at_each_width_and_scheme(
    chromium: Any, built: Path, width: int, scheme: str
) -> None:
    viewport = {"width": width, "height": 900}
    session = Opened(chromium, built, viewport=viewport, color_scheme=scheme)
    page = session.page
    page.fill("#translations-find", "a")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    chart = page.locator("#length-chart svg").bounding_box()["width"]
    assert min(width, 1400) * 0.8 < chart < width
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert barriers(page) == []
    page.select_option("#explorer-run", ENCDEC)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=Path(folder, f"page-{width}-{scheme}.png"), full_page=True)
    session.close()


def test_table_by_length_fits_a_small_screen(
    chromium: Any, runs: list[FinishedRun], tmp_path: Path
) -> None:
    path = build_page(compare_finished(runs[2:3], resamples=0), tmp_path / "run.html")
    session = Opened(chromium, path, viewport={"width": 1200, "height": 900})
    box = session.page.locator(".scroll", has=session.page.locator("#by_length_newstest-table"))
    assert box.evaluate("element => element.scrollWidth - element.clientWidth") <= 0
    session.close()


def test_chart_follows_the_window_width(page: Any) -> None:
    def width() -> float:
        return page.locator("#length-chart svg").bounding_box()["width"]

    wide = width()
    drawn_after(
        page, "#length-chart", lambda: page.set_viewport_size({"width": 500, "height": 900})
    )
    assert width() < min(wide, 500)


def test_each_control_is_reached_by_tab(opened: Opened) -> None:
    page = opened.page
    reached = set()
    page.evaluate("for (const each of document.querySelectorAll('details.fold')) each.open = true")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    for _ in range(170):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
    for name in ("set", "grouped", "all-on", "metric", "bands", "tested", "bucket"):
        assert name in reached
    for name in ("find", "sentence", "run", "next", "slider", "stage", "link", "copy"):
        assert f"explorer-{name}" in reached


def test_page_with_little_content(chromium: Any, tmp_path: Path) -> None:
    bare = FinishedRun("bare", {"config": {"a": 1}, "test": {}})
    opened = Opened(chromium, build_page(compare_finished([bare]), tmp_path / "bare.html"))
    assert not opened.page.is_visible("#length-section")
    assert "No sentence was kept" in opened.page.inner_text("#explorer-section")
    opened.close()
    alone = find_runs([make_run(tmp_path / "run", pairs=40, kept=5)])
    single = Opened(chromium, build_page(compare_finished(alone), tmp_path / "single.html"))
    assert lines(single.page) == 0  # too few sentences for a curve
    assert single.page.locator("#length-chart .mark-symbol path").count() > 4
    assert not single.page.is_visible("#significance-section")
    single.close()
