"""The page as people open it: headless Chromium, and what was said and drawn.

Chromium is found on the path or named by CHROMIUM; with SCREENSHOTS set to a folder pictures are left there.
"""

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
IN_BROWSER = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed (see CHROMIUM)"),
]

ENCDEC, SEARCH = "RNNencdec-50 seed 1", "RNNsearch-50 seed 1"


class Opened:
    """A page, and everything it complained about or asked the network for."""

    def __init__(self, browser: Any, path: Path, link: str = "", **options: Any) -> None:
        options.setdefault("viewport", {"width": 1400, "height": 900})
        self.context = browser.new_context(reduced_motion="reduce", **options)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self._metrics = self.context.new_cdp_session(self.page)
        self._metrics.send("Performance.enable", {"timeDomain": "threadTicks"})
        self.page.goto(f"file://{path}{link}")
        self.page.wait_for_selector("html[data-ready]", timeout=30_000)

    def busy(self) -> float:
        """Seconds of processor time of the page's thread: other work on the machine is not its."""
        metrics = self._metrics.send("Performance.getMetrics")["metrics"]
        return {metric["name"]: metric["value"] for metric in metrics}["TaskDuration"]

    def close(self) -> None:
        self.context.close()
        assert self.complaints == []
        asked = [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))]
        assert asked == []


def drawn_after(page: Any, chart: str, act: Any) -> None:
    """Acts, then waits until the chart was drawn anew."""
    before = page.get_attribute(chart, "data-drawn")
    act()
    until(page, f"document.querySelector('{chart}').dataset.drawn !== '{before}'")


def until(page: Any, condition: str, seconds: float = 30) -> None:
    """Waits for a condition in JavaScript.

    Playwright's own wait has the page evaluate it by `eval`, which the page's policy forbids.
    """
    last = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < last, condition
        page.wait_for_timeout(50)


def barriers(page: Any) -> list[str]:
    """What keeps people from using the page, as axe-core finds it (WCAG 2, and its best practices)."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe is not installed"
    )
    found = axe.Axe().run(page).response["violations"]
    return [f"{each['id']}: {node['html'][:120]}" for each in found for node in each["nodes"]]


def lines(page: Any, chart: str = "#length-chart") -> int:
    return page.locator(f"{chart} .mark-line path").count()


def said(page: Any) -> str:
    return page.inner_text("#explorer-said")


def place(page: Any) -> str:
    return page.inner_text("#explorer-place").split(",")[0]
