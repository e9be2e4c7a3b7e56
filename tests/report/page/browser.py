"""Opens a page in headless Chromium, and reads the page's messages and charts.

The environment variable CHROMIUM names the browser. By default it is searched on PATH. If SCREENSHOTS
names a folder, tests write screenshots to it.
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
    """An open page, with its errors, console messages and network requests."""

    def __init__(self, browser: Any, path: Path, link: str = "", **options: Any) -> None:
        options.setdefault("viewport", {"width": 1400, "height": 900})
        self.context = browser.new_context(reduced_motion="reduce", **options)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(f"file://{path}{link}")
        self.page.wait_for_selector("html[data-ready]", timeout=30_000)

    def close(self) -> None:
        self.context.close()
        assert not self.complaints, self.complaints[:3]
        asked = [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))]
        assert asked == []


def drawn_after(page: Any, chart: str, act: Any) -> None:
    """Calls `act`, then waits until the chart is redrawn."""
    before = page.get_attribute(chart, "data-drawn")
    act()
    until(page, f"document.querySelector('{chart}').dataset.drawn !== '{before}'")


def until(page: Any, condition: str, seconds: float = 60) -> None:
    """Waits until a condition in JavaScript is true.

    Playwright's own wait calls `eval` in the page, which the page's content security policy forbids.
    """
    last = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < last, condition
        page.wait_for_timeout(50)


# JavaScript that finds text with too little contrast. axe-core does not check text in SVG.
CONTRAST = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((total, v, i) => total + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
  };
  const found = [];
  for (const element of document.body.querySelectorAll("*")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !element.checkVisibility() || element.matches("script, :disabled, option")) continue;
    const style = getComputedStyle(element);
    const ink = parse(element.ownerSVGElement ? style.fill : style.color);
    const [a, b] = [light(ink), light(behind(element))].sort((x, y) => y - x);
    if (ink.length === 4 && ink[3] === 0) continue; // only its background is seen
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) found.push([element.tagName, ratio.toFixed(2), element.textContent.slice(0, 30)]);
  }
  return found;
}"""


def barriers(page: Any) -> list[str]:
    """Returns violations of accessibility rules (axe-core), and text with too little contrast."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe is not installed"
    )
    found = axe.Axe().run(page).response["violations"]
    named = [f"{each['id']}: {node['html'][:120]}" for each in found for node in each["nodes"]]
    return named + [str(each) for each in page.evaluate(CONTRAST)]


# CSS selector of all curves except the dashed ones (simulated systems with a constant error rate)
CURVES = '.mark-line path:not([stroke-dasharray="5,3"])'


def lines(page: Any, chart: str = "#length-chart .concat_0_group") -> int:
    return page.locator(f"{chart} {CURVES}").count()
