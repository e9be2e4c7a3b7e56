"""The page as people use it, in headless Chromium: every control, every key, what is drawn and what is said.

Chromium is found on the path or named by CHROMIUM; with SCREENSHOTS set to a folder pictures are left there.
"""

import json
import math
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from run_folders import MARKUP, make_run, make_ten

from nmt.report.page import build_explorer, build_page
from nmt.report.runs import Run, find_runs

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed (see CHROMIUM)"),
]

ENCDEC, SEARCH = "RNNencdec-50 seed 1", "RNNsearch-50 seed 1"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def built(runs: list[Run], tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = {"test": {"newstest": runs[0].results["test"]["newstest"]}}
    records = {("translations", "newstest"): runs[0].translations("newstest")}
    moses = Run(f"Moses {MARKUP}", results, lines=records)
    path = tmp_path_factory.mktemp("page") / "comparison.html"
    return build_page(runs, path, external=[moses], resamples=100)


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
        self.page.goto(f"file://{path}{link}")
        self.page.wait_for_selector("html[data-ready]", timeout=30_000)

    def close(self) -> None:
        self.context.close()
        assert self.complaints == []
        asked = [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))]
        assert asked == []


@pytest.fixture
def opened(chromium: Any, built: Path) -> Iterator[Opened]:
    session = Opened(chromium, built)
    yield session
    session.close()


@pytest.fixture
def page(opened: Opened) -> Any:
    opened.page.uncheck("#grouped")
    opened.page.wait_for_function(
        "document.querySelectorAll('#length-chart .mark-line path').length === 5"
    )
    return opened.page


def drawn_after(page: Any, chart: str, act: Any) -> None:
    """Acts, then waits until the chart was drawn anew."""
    before = page.get_attribute(chart, "data-drawn")
    act()
    page.wait_for_function(f"document.querySelector('{chart}').dataset.drawn !== '{before}'")


def lines(page: Any, chart: str = "#length-chart") -> int:
    return page.locator(f"{chart} .mark-line path").count()


def test_runs_are_switched_filtered_and_grouped(page: Any) -> None:
    assert lines(page) == 5
    assert page.inner_text("#run-count") == "5 of 5 runs shown"
    drawn_after(page, "#length-chart", lambda: page.get_by_label(ENCDEC).first.uncheck())
    assert lines(page) == 4
    hidden = page.locator(f'#scores-section tr[data-run="{ENCDEC}"]').first
    assert not hidden.is_visible()
    drawn_after(page, "#length-chart", lambda: page.click("#all-on"))
    assert lines(page) == 5
    seeds = page.locator("#filters fieldset", has_text="Seed")
    drawn_after(page, "#length-chart", lambda: seeds.get_by_label("2").uncheck())
    assert page.inner_text("#run-count") == "3 of 5 runs shown"
    models = page.locator("#filters fieldset", has_text="Model")
    drawn_after(page, "#length-chart", lambda: models.get_by_label("RNNencdec").uncheck())
    assert page.inner_text("#run-count") == "2 of 5 runs shown"
    drawn_after(page, "#length-chart", lambda: page.click("#all-on"))
    drawn_after(page, "#length-chart", lambda: page.click("#grouped"))
    assert lines(page) == 3
    assert "one standard deviation" in page.inner_text("#length-note")
    assert "RNNsearch-50" in page.inner_text("#length-legend").split("\n")
    drawn_after(page, "#length-chart", lambda: page.click("#all-off"))
    assert page.is_visible("#length-empty")
    assert page.inner_text("#run-count") == "0 of 5 runs shown"


def test_every_score_is_drawn_with_bands_counts_and_numbers(page: Any) -> None:
    options = page.locator("#metric option").all_inner_texts()
    assert len(options) == 8
    for index in range(len(options)):
        drawn_after(page, "#length-chart", lambda i=index: page.select_option("#metric", index=i))
        assert lines(page) >= 2
    drawn_after(page, "#length-chart", lambda: page.select_option("#metric", "all"))
    assert page.locator("#length-chart .mark-area path").count() == 5
    drawn_after(page, "#length-chart", lambda: page.click("#bands"))
    assert page.locator("#length-chart .mark-area path").count() == 0
    page.click("#length-section summary")
    table = page.inner_text("#length-data")
    row = json.loads(page.text_content("#overview"))["sets"]["newstest"]["rows"][0]
    assert f"{row['all'][0]:.2f} [{row['all'][1]:.2f}, {row['all'][2]:.2f}]" in table
    counts = page.locator("#length-chart .mark-text text").all_text_contents()
    assert str(row["sentences"]) in counts
    page.locator("#length-chart .mark-symbol path").last.hover()
    assert "Sentences" in page.inner_text("#tooltip")
    page.mouse.move(5, 5)


def test_another_test_set_changes_everything(page: Any) -> None:
    before = page.text_content("#length-data")
    drawn_after(page, "#length-chart", lambda: page.select_option("#set", "mine"))
    assert page.text_content("#length-data") != before
    assert page.is_visible("#scores_mine-table")
    assert not page.is_visible("#scores_newstest-table")
    assert lines(page) == 4


def test_tables_sort_by_any_column(page: Any) -> None:
    heading = page.locator("#scores_newstest-table th", has_text="BLEU all")

    def column() -> list[float]:
        cells = page.locator("#scores_newstest-table tbody tr td:nth-child(2)")
        return [float(cell.get_attribute("data-value")) for cell in cells.all()]

    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert column() == sorted(column())
    heading.get_by_role("button").press("Enter")
    assert heading.get_attribute("aria-sort") == "descending"
    assert column() == sorted(column(), reverse=True)
    page.locator("#training-table th").nth(3).get_by_role("button").click()
    page.click("#scores-section summary")
    assert "28.45" in page.inner_text("#published-table")


def test_the_matrix_says_what_is_better_by_how_much_and_how_surely(page: Any) -> None:
    cells = page.locator("#significance tbody tr", has_text=SEARCH).first.locator("td")
    assert cells.first.get_attribute("class") == "better"
    assert re.fullmatch(r"\+\d+\.\d\d\*+\np [<\d.]+", cells.first.inner_text())
    assert f"{SEARCH} less {ENCDEC}: +" in cells.first.get_attribute("aria-label")
    options = page.locator("#bucket option").all_inner_texts()
    assert options[0] == "the whole set"
    before = cells.first.inner_text()
    page.select_option("#bucket", index=3)
    assert (
        page.locator("#significance tbody tr", has_text=SEARCH)
        .first.locator("td")
        .first.inner_text()
        != before
    )


def test_training_curves(page: Any) -> None:
    for index in range(3):
        drawn_after(
            page, "#training-chart", lambda i=index: page.select_option("#training-metric", index=i)
        )
        assert lines(page, "#training-chart") == 4
    page.click("#training-section summary")
    assert "RNNsearch-50 seed 2" in page.inner_text("#training-data")


def test_translations_are_filtered_marked_and_turned_over(page: Any) -> None:
    def lengths() -> list[int]:
        spans = page.locator(".translation header span").all_inner_texts()
        return [int(text.split()[0]) for text in spans]

    assert lengths()
    assert min(lengths()) >= 30
    first = page.locator(".translation").first
    assert first.locator("dt").count() == 7
    assert first.locator("mark").count() > 0
    first_before = first.inner_text()
    page.click("#translations-next")
    assert "page 2" in page.inner_text("#translations-count")
    assert page.locator(".translation").first.inner_text() != first_before
    page.click("#translations-previous")
    assert page.locator(".translation").first.inner_text() == first_before
    page.fill("#translations-least", "0")
    page.fill("#translations-most", "9")
    assert max(lengths()) <= 9
    page.select_option("#translations-order", "length")
    assert lengths() == sorted(lengths())
    page.select_option("#translations-order", "difference")
    page.select_option("#translations-against", SEARCH)
    rows = page.locator(".translation").first.locator(".line", has_text=SEARCH)
    assert rows.locator("mark").count() == 0
    page.fill("#translations-most", "")
    page.fill("#translations-find", "document.title")
    assert len(lengths()) > 0
    page.get_by_label(ENCDEC).first.uncheck()
    assert page.locator(".translation").first.locator("dt").count() == 6


def test_markup_in_text_is_shown_as_text(page: Any) -> None:
    assert page.title() == "Comparison of runs"
    page.fill("#translations-least", "0")
    page.fill("#translations-find", "document.title")
    assert MARKUP in page.locator(".translation").first.inner_text()
    assert MARKUP in page.inner_text("#run-list")
    page.fill("#explorer-find", "document.title")
    count = page.locator("#explorer-sentence option").count()
    if count:
        page.select_option("#explorer-sentence", index=0)
        assert MARKUP in page.inner_text("#explorer-energies")
    assert page.title() == "Comparison of runs"
    assert page.locator("script").count() == 6 + 1  # and the chart library, which the page starts


def said(page: Any) -> str:
    return page.inner_text("#explorer-said")


def place(page: Any) -> str:
    return page.inner_text("#explorer-place").split(",")[0]


def test_a_step_tells_weights_energies_sum_spread_and_runners_up(
    page: Any, runs: list[Run]
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
    assert cells.count() == len(row["source"])
    most = max(range(len(weights)), key=lambda j: weights[j])
    shown = cells.nth(most).locator("td").all_inner_texts()
    assert float(shown[1]) == pytest.approx(weights[most], abs=1.5e-3)
    energy = math.log(weights[most]) + row["log_normaliser"][2]
    assert float(shown[2].replace("\u2212", "-")) == pytest.approx(energy, abs=0.02)
    totals = page.inner_text("#explorer-totals")
    assert "Sum of the weights 1.00" in totals
    assert f"spread {row['spread'][2]:.2f} nats" in totals
    percent = round(100 * weights[most])
    assert said(page).startswith(f"writing {row['target'][2]}, reads {row['source'][most]} ")
    assert re.search(rf"reads .* ({percent - 1}|{percent}|{percent + 1})\s%", said(page))
    assert f"{weights[most]:.2f} h({row['source'][most]})" in page.inner_text("#explorer-context")
    runners = page.locator("#explorer-runners tbody tr")
    assert runners.count() == 6
    assert "written" in runners.first.inner_text()
    assert row["runners_up"][2][0][0] in runners.nth(1).inner_text()
    assert page.inner_text("#explorer-title") == row["target"][2]
    assert page.locator("#explorer-map .cells rect").count() > len(row["target"])


def test_steps_by_button_key_slider_and_click_are_logged(page: Any) -> None:
    page.click("[data-preset=long]")
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
    log = page.locator("#explorer-log li")
    assert log.count() == 9
    log.nth(0).get_by_role("button").click()
    assert place(page).startswith("word 1 of")
    page.click("#explorer-clear")
    assert log.count() == 0
    page.locator("#explorer-map .cells rect").nth(3).hover()
    assert re.search(r" ← .*: weight \d\.\d\d\d, energy", page.inner_text("#explorer-hover"))


def test_playing_goes_on_until_paused(page: Any) -> None:
    page.click("[data-preset=words]")
    page.clock.install()
    page.click("#explorer-play")
    assert page.inner_text("#explorer-play") == "Pause"
    page.clock.run_for(2000)
    assert place(page).startswith("word 3 of")
    page.click("#explorer-play")
    page.clock.run_for(3000)
    assert place(page).startswith("word 3 of")
    page.locator("#explorer-stage").focus()
    page.keyboard.press("Space")
    page.clock.run_for(200_000)
    size = place(page).split()[-1]
    assert place(page) == f"word {size} of {size}"
    assert page.inner_text("#explorer-play") == "Play"
    assert said(page).startswith("ending the sentence, reads")


def test_one_switch_shows_the_fixed_vector(page: Any) -> None:
    page.click("[data-preset=reordered]")
    page.check("#explorer-kind input[value=fixed]")
    assert page.input_value("#explorer-run") == ENCDEC
    assert "reads the one fixed vector" in said(page)
    assert not page.is_visible("#explorer-energies")
    words = int(place(page).split()[-1])
    assert page.locator("#explorer-map .feed").count() == words
    assert page.locator("#explorer-map .feed.now").count() == 1
    page.check("#explorer-kind input[value=attention]")
    assert page.is_visible("#explorer-energies")
    page.locator("#explorer-stage").focus()
    page.keyboard.press("r")
    assert page.input_value("#explorer-run") == "RNNsearch-50 seed 2"
    page.select_option("#explorer-run", ENCDEC)
    assert page.is_checked("#explorer-kind input[value=fixed]")


def test_presets_choose_a_diagonal_a_reordering_and_the_longest(page: Any) -> None:
    page.click("[data-preset=reordered]")
    first = page.locator("#explorer-energies tr.most").inner_text().split()[0]
    order = page.locator("#explorer-energies tbody th").all_inner_texts()
    page.click("#explorer-next")
    second = page.locator("#explorer-energies tr.most").inner_text().split()[0]
    assert order.index(second) == order.index(first) - 1
    page.click("[data-preset=long]")
    longest = page.locator("#explorer-sentence option").last.inner_text()
    chosen = page.locator("#explorer-sentence option:checked").inner_text()
    assert chosen.split()[0] == longest.split()[0]
    page.click("[data-preset=words]")
    assert place(page).startswith("word 1 of")


def test_sentences_are_sorted_and_found(page: Any) -> None:
    def numbers() -> list[float]:
        texts = page.locator("#explorer-sentence option").all_inner_texts()
        return [float(text.split()[0]) for text in texts]

    assert numbers() == sorted(numbers())
    page.select_option("#explorer-sort", "difference")
    assert numbers() == sorted(numbers(), reverse=True)
    assert numbers()[0] > numbers()[-1]
    page.select_option("#explorer-sort", "spread")
    assert numbers() == sorted(numbers(), reverse=True)
    page.fill("#explorer-find", "no sentence has this")
    assert numbers() == []
    assert page.inner_text("#explorer-count") == "0 sentences"
    page.fill("#explorer-find", "")
    page.select_option("#explorer-set", "mine")
    assert len(numbers()) == 12


def test_a_link_leads_to_the_same_word(chromium: Any, built: Path, page: Any) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.select_option("#explorer-sentence", index=8)
    page.select_option("#explorer-run", "RNNsearch-50 seed 2")
    for _ in range(4):
        page.click("#explorer-next")
    page.click("#explorer-copy")
    page.wait_for_function("document.getElementById('explorer-copied').textContent === 'Copied.'")
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == page.input_value("#explorer-link")
    other = Opened(chromium, built, link[link.index("#") :])
    assert said(other.page) == said(page)
    assert other.page.input_value("#explorer-run") == "RNNsearch-50 seed 2"
    assert other.page.evaluate("window.scrollY") > 300
    other.page.evaluate("location.hash = '#sentence=newstest/0&run=nobody&word=99999'")
    other.close()


def test_a_translation_leads_to_its_alignment(page: Any) -> None:
    page.fill("#translations-least", "0")
    page.select_option("#translations-order", "length")
    article = page.locator(".translation", has=page.locator("header button")).first
    identity = article.locator("header b").inner_text().split()[1]
    article.locator("header button").click()
    assert page.input_value("#explorer-sentence") == identity
    assert page.evaluate("document.activeElement.id") == "explorer-stage"


def test_colours_follow_the_system_or_the_choice(page: Any) -> None:
    def background() -> str:
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    assert background() == "rgb(255, 255, 255)"
    page.emulate_media(color_scheme="dark")
    assert background() == "rgb(20, 23, 27)"
    drawn_after(page, "#length-chart", lambda: page.select_option("#theme", "light"))
    assert background() == "rgb(255, 255, 255)"
    page.emulate_media(color_scheme="light")
    drawn_after(page, "#length-chart", lambda: page.select_option("#theme", "dark"))
    assert background() == "rgb(20, 23, 27)"
    text = page.locator("#length-chart .role-axis-label text").first
    assert text.get_attribute("fill") == "#e9ecf0"


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
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) found.push([element.tagName, ratio.toFixed(2), element.textContent.slice(0, 30)]);
  }
  return found;
}"""

UNNAMED = """() => [...document.querySelectorAll("input, select, button, [tabindex]")].filter((element) => {
  if (!element.checkVisibility()) return false;
  const label = element.labels?.length && [...element.labels].some((l) => l.textContent.trim());
  return !(label || element.getAttribute("aria-label") || element.textContent.trim());
}).map((element) => element.outerHTML.slice(0, 100))"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1600])
def test_every_width_and_scheme_can_be_read(
    chromium: Any, built: Path, width: int, scheme: str, tmp_path: Path
) -> None:
    viewport = {"width": width, "height": 900}
    session = Opened(chromium, built, viewport=viewport, color_scheme=scheme)
    page = session.page
    page.fill("#translations-find", "a")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    chart = page.locator("#length-chart svg").bounding_box()["width"]
    assert min(width, 1400) * 0.8 < chart < width
    assert page.evaluate(CONTRAST) == []
    assert page.evaluate(UNNAMED) == []
    folder = Path(os.environ.get("SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    picture = folder / f"page-{width}-{scheme}.png"
    page.screenshot(path=picture, full_page=True)
    page.locator("#explorer-section").screenshot(path=folder / f"explorer-{width}-{scheme}.png")
    page.check("#explorer-kind input[value=fixed]")
    page.locator("#explorer-section").screenshot(path=folder / f"fixed-{width}-{scheme}.png")
    assert picture.stat().st_size > 50_000
    session.close()


def test_the_chart_follows_the_width_of_the_window(page: Any) -> None:
    def width() -> float:
        return page.locator("#length-chart svg").bounding_box()["width"]

    wide = width()
    drawn_after(
        page, "#length-chart", lambda: page.set_viewport_size({"width": 500, "height": 900})
    )
    assert width() < min(wide, 500)


def test_every_control_is_reached_by_the_tabulator(opened: Opened) -> None:
    page = opened.page
    reached = set()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    for _ in range(140):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
    controls = {"theme", "set", "grouped", "all-on", "metric", "bands", "bucket", "training-metric"}
    explorer = {
        "sort",
        "find",
        "sentence",
        "run",
        "play",
        "next",
        "slider",
        "stage",
        "link",
        "copy",
    }
    assert controls | {f"explorer-{name}" for name in explorer} <= reached


def test_the_explorer_alone(chromium: Any, runs: list[Run], tmp_path: Path) -> None:
    rows = runs[2].alignments("mine")
    session = Opened(chromium, build_explorer(rows, tmp_path / "mine.html", label="my model"))
    page = session.page
    assert page.locator("#explorer-sentence option").count() == 12
    page.click("[data-preset=long]")
    page.click("#explorer-next")
    assert "reads" in said(page)
    assert page.input_value("#explorer-run") == "my model"
    assert page.is_disabled("#explorer-kind input[value=fixed]")
    session.close()


def test_pages_with_little_in_them(chromium: Any, tmp_path: Path) -> None:
    empty = Opened(chromium, build_explorer([], tmp_path / "empty.html"))
    assert "No sentence was kept" in empty.page.inner_text("#explorer-section")
    empty.close()
    bare = Run("bare", {"config": {"a": 1}, "test": {}})
    opened = Opened(chromium, build_page([bare], tmp_path / "bare.html"))
    assert not opened.page.is_visible("#length-section")
    opened.close()
    alone = find_runs([make_run(tmp_path / "run", pairs=40, kept=5)]).runs
    single = Opened(chromium, build_page(alone, tmp_path / "single.html"))
    assert lines(single.page) == 1
    assert not single.page.is_visible("#significance-section")
    single.close()


@pytest.mark.slow
def test_ten_runs_of_three_thousand_sentences(chromium: Any, tmp_path: Path) -> None:
    make_ten(tmp_path / "sweep")
    runs = find_runs([tmp_path / "sweep"]).runs
    started = time.process_time()  # of this process: other work on the machine is not the page's
    path = build_page(runs, tmp_path / "ten.html")
    assert time.process_time() - started < 20
    assert path.stat().st_size < 3_000_000
    took = []
    while True:  # the best of three: other work on the machine is not the page's
        started = time.perf_counter()
        session = Opened(chromium, path, viewport={"width": 1600, "height": 1000})
        took.append(time.perf_counter() - started)
        if took[-1] < 2 or len(took) == 3:
            break
        session.close()
    assert min(took) < 2
    page = session.page
    page.evaluate("""() => { const list = document.getElementById("explorer-sentence");
      const at = [...list.options].findIndex((option) => option.textContent.startsWith("60 "));
      list.selectedIndex = at < 0 ? list.options.length - 1 : at; list.dispatchEvent(new Event("change")); }""")
    times = page.evaluate("""() => { const next = document.getElementById("explorer-next"); const times = [];
      for (let i = 0; i < 50; i++) { const start = performance.now(); next.click(); document.body.offsetHeight;
        times.push(performance.now() - start); } return times; }""")
    assert sorted(times)[-3] < 50  # other work may hold up two of the fifty
    session.close()
