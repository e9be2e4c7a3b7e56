"""The page's models in a browser: translation, longer sentences, single steps, settings and links."""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from nmt.report.comparison import compare_finished
from nmt.report.page.builder import build_page
from nmt.report.runs import FinishedRun, find_runs
from tests.helpers.models import drawn_model, rounded, write_live
from tests.helpers.run_folders import make_run
from tests.report.page.browser import IN_BROWSER, Opened, barriers, until
from tests.report.page.test_live_model import in_python, sentences

pytestmark = IN_BROWSER

MODELS = {
    "RNNencdec-50": drawn_model("RNNencdec", seed=1),
    "RNNsearch-50": drawn_model("RNNsearch", dictionary={"zebra": "zèbre"}, seed=2),
}


@pytest.fixture(scope="module")
def live_runs(tmp_path_factory: pytest.TempPathFactory) -> list[FinishedRun]:
    folder = tmp_path_factory.mktemp("live")
    for name, trained in MODELS.items():
        run = make_run(folder / name, model=name.partition("-")[0], pairs=40, kept=4)
        write_live(trained, run)
    return find_runs([folder])


@pytest.fixture(scope="module")
def live_page(live_runs: list[FinishedRun], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "live.html"
    return build_page(compare_finished(live_runs, resamples=0), path)


@pytest.fixture
def live(chromium: Any, live_page: Path) -> Iterator[Any]:
    opened = Opened(chromium, live_page)
    opened.page.wait_for_selector("html[data-translated]")
    opened.page.click("#live-settings summary")
    yield opened.page
    opened.close()


def translated_after(page: Any, act: Any) -> None:
    """Calls `act`, and waits for the translation that it starts."""
    before = int(page.get_attribute("html", "data-translated"))
    act()
    until(page, f"Number(document.documentElement.dataset.translated) > {before}")


def enter(page: Any, text: str) -> None:
    page.fill("#live-text", text)
    translated_after(page, lambda: page.press("#live-text", "Enter"))


def words(page: Any, column: int) -> list[str]:
    return page.locator(".live-column").nth(column).locator(".written button").all_inner_texts()


def greedily(page: Any) -> None:
    def set_beam() -> None:
        page.locator("#live-beam").evaluate(
            "e => { e.value = 1; e.dispatchEvent(new Event('input'));"
            " e.dispatchEvent(new Event('change')); }"
        )

    translated_after(page, set_beam)


def test_typed_sentence_is_translated_as_in_python(live: Any) -> None:
    first = "document.querySelector('input:not([type=checkbox]):not([type=radio]), textarea').id"
    assert live.evaluate(first) == "live-text"
    greedily(live)
    for text in sentences(3, 9):
        enter(live, text)
        for column, trained in enumerate(MODELS.values()):
            (hypothesis,) = in_python(rounded(trained), [text], 1)
            target = trained.target
            assert words(live, column) == [*target.decode(hypothesis.tokens), "</s>"]
        said = live.inner_text("#live-said")
        assert said.startswith("RNNencdec-50: ")
        assert ". RNNsearch-50: " in said


def test_first_words_appear_before_the_end(live: Any) -> None:
    live.evaluate("""() => {
      window.parts = [];
      const look = () => window.parts.push(document.querySelector('.written').textContent);
      new MutationObserver(look).observe(document.querySelector('.written'), { childList: true });
    }""")
    enter(live, "the agreement on the European area " * 20)
    *parts, last = live.evaluate("window.parts")
    assert parts
    assert all(part.endswith("…") for part in parts)
    assert len(parts[0].split()) < len(last.split())


def test_step_shows_attention_and_alternatives(live: Any) -> None:
    greedily(live)
    enter(live, "agreement on the European area")
    search = live.locator(".live-column").nth(1)
    live.focus("#live-stage")
    live.keyboard.press("ArrowRight")
    live.keyboard.press("ArrowRight")
    assert live.input_value("#live-slider") == "2"
    assert search.locator("[aria-pressed=true]").inner_text() == words(live, 1)[2]
    reads = search.locator(".bars").first.locator("tbody tr")
    shown = [float(row.locator("td").nth(1).inner_text()) for row in reads.all()]
    assert shown == sorted(shown, reverse=True)
    assert 0.9 < sum(shown) < 1.004  # each weight is rounded to three digits
    assert re.search(r"entropy \d\.\d\d nats", search.inner_text())
    fixed = live.locator(".live-column").nth(0)
    assert fixed.locator("canvas.states").get_attribute("width") == "6"
    assert "writing" in fixed.inner_text()
    other = search.locator(".bars").last.locator("tbody button").first
    wanted = other.inner_text()
    before = words(live, 1)
    translated_after(live, other.click)
    assert words(live, 1)[:2] == before[:2]
    assert words(live, 1)[2] == wanted != before[2]


def test_sentence_translation_and_map_share_a_screen(live: Any) -> None:
    greedily(live)
    live.set_viewport_size({"width": 1280, "height": 800})
    enter(live, " ".join(["agreement"] * 10))
    live.locator("#live-section").evaluate("(part) => part.scrollIntoView()")
    boxes = [live.locator(part).first.bounding_box() for part in ("#live-text", ".written")]
    rows = live.locator(".live-column").nth(1).locator(".map text.target").all()
    assert all(box["y"] >= 40 and box["y"] + box["height"] <= 800 for box in boxes)
    assert all(row.bounding_box()["y"] <= 800 for row in rows[:11])
    sizes = "[...document.querySelectorAll('.map text')].map((t) => getComputedStyle(t).fontSize)"
    assert min(float(size.removesuffix("px")) for size in live.evaluate(sizes)) >= 12


@pytest.mark.parametrize("width", [390, 800, 1280])
def test_step_in_words_stays_visible(live: Any, width: int) -> None:
    live.set_viewport_size({"width": width, "height": 900})
    enter(live, "the agreement on the European area " * 6)
    column = live.locator(".live-column").first
    column.locator(".map").evaluate("(part) => part.scrollIntoView({ block: 'end' })")
    assert 60 < column.locator(".said").bounding_box()["y"] < 200  # below the fixed bar at the top


def test_lecture_mode_shows_the_equations_of_each_step(live: Any) -> None:
    greedily(live)
    enter(live, "agreement on the European area")
    live.focus("#live-stage")
    live.keyboard.press("l")
    live.wait_for_selector("#lecture[open]")
    smallest = """Math.min(...[...document.querySelectorAll('#lecture *')].filter((e) => e.innerText)
      .map((e) => parseFloat(getComputedStyle(e).fontSize)))"""
    assert live.evaluate(smallest) >= 24
    live.keyboard.press("ArrowRight")
    assert live.locator("#lecture-equations dt").all_inner_texts()[1].startswith("αij = exp(eij)")
    score, share, context = live.locator("#lecture-equations dd").all_inner_texts()
    weight = re.fullmatch(r"α2, (.+) = exp\((.+)\) / exp\((.+)\) = (.+)", share)
    assert weight is not None
    word, energy, total, alpha = weight.groups()
    value = math.exp(float(energy.replace("−", "-")) - float(total.replace("−", "-")))
    assert value == pytest.approx(float(alpha), abs=0.02)
    assert score.startswith(f"e2, {word} = {energy}")
    assert context.startswith(f"c2 = {alpha} h({word})")
    live.keyboard.press("2")
    equal = "document.querySelector('#lecture-equations dd').innerText"
    until(live, f"{equal} === 'α2, j = 1 / 6 = 0.17 for every j'")
    live.keyboard.press("3")
    until(live, f"{equal}.startsWith('c = (') && {equal}.endsWith('also at step 2')")
    assert barriers(live) == []
    live.keyboard.press("Escape")
    until(live, "!document.querySelector('#lecture').open")
    assert live.input_value("#live-slider") == "1"


def test_picture_is_saved_as_svg(live: Any) -> None:
    enter(live, "agreement on the European area")
    with live.expect_download() as saved:
        live.locator(".live-column").nth(1).get_by_text("Save the picture").click()
    root = ElementTree.parse(saved.value.path()).getroot()
    assert saved.value.suggested_filename == "RNNsearch-50.svg"
    texts = ["".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "European" in "".join(texts)
    assert all(
        "fill" in each.get("style") for each in root.iter("{http://www.w3.org/2000/svg}rect")
    )


def test_known_words_are_listed(live: Any) -> None:
    listed = live.evaluate("document.querySelector('#live-known').textContent").split(", ")
    assert set(listed) == set(MODELS["RNNsearch-50"].source.words)


def test_longer_and_shorter_keep_earlier_results(live: Any) -> None:
    enter(live, "the agreement")
    translated_after(live, lambda: live.click("#live-longer"))
    text = live.input_value("#live-text")
    assert text.startswith("the agreement ")
    assert len(text.split()) > 2
    rows = live.locator("#live-table tbody tr")
    assert rows.last.locator("th").inner_text() == str(len(text.split()))
    # Columns: nats per word of each model, and the number of source words with almost no attention in RNNsearch
    assert rows.last.locator("td").count() == 3
    count = rows.count()
    translated_after(live, lambda: live.click("#live-shorter"))
    assert live.input_value("#live-text") == "the agreement"
    assert rows.count() == count + 1
    assert live.is_disabled("#live-shorter")


def test_attention_beam_and_unknown_words_can_be_changed(live: Any) -> None:
    greedily(live)
    enter(live, "the zebra was signed")
    assert live.inner_text("#live-unknown") == "unknown to RNNencdec-50 and RNNsearch-50: zebra"
    as_trained = words(live, 1)
    fixed = words(live, 0)
    translated_after(live, lambda: live.check("[name=live-attention][value=uniform]"))
    weights = live.locator(".live-column").nth(1).locator(".bars").first.locator("tbody tr td")
    assert weights.nth(1).inner_text() == "0.200"
    assert words(live, 0) == fixed
    translated_after(live, lambda: live.check("[name=live-attention][value=trained]"))
    assert words(live, 1) == as_trained
    assert not live.locator("#live-replace option[value=dictionary]").is_disabled()
    translated_after(live, lambda: live.select_option("#live-replace", "dictionary"))
    assert "<unk>" in as_trained or words(live, 1) == as_trained


def test_link_restores_sentence_and_settings(chromium: Any, live_page: Path, live: Any) -> None:
    live.check("[name=live-attention][value=argmax]")
    enter(live, "future & people, 100 % <b>")
    link = live.input_value("#live-link").partition("#")[2]
    again = Opened(chromium, live_page, f"#{link}")
    again.page.wait_for_selector("html[data-translated]")
    assert again.page.input_value("#live-text") == "future & people, 100 % <b>"
    assert again.page.is_checked("[name=live-attention][value=argmax]")
    assert words(again.page, 1) == words(live, 1)
    assert abs(again.page.locator("#live-section").bounding_box()["y"]) <= 80
    again.close()


@pytest.mark.parametrize(("width", "scheme"), [(400, "light"), (1400, "dark")])
def test_panel_is_accessible(chromium: Any, live_page: Path, width: int, scheme: str) -> None:
    size = {"width": width, "height": 900}
    opened = Opened(chromium, live_page, viewport=size, color_scheme=scheme)
    page = opened.page
    page.wait_for_selector("html[data-translated]")
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    enter(page, "the zebra was signed in Europe")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert barriers(page) == []
    opened.close()


@pytest.mark.parametrize("section", ["live", "explorer", "scores"])
def test_address_opens_its_section(chromium: Any, live_page: Path, section: str) -> None:
    opened = Opened(chromium, live_page, f"#{section}-section")
    opened.page.wait_for_selector("html[data-translated]")
    opened.page.wait_for_timeout(300)
    assert abs(opened.page.locator(f"#{section}-section").bounding_box()["y"]) <= 80
    opened.close()


STRANGE = {
    "markup": "</script><img src=x onerror=\"document.title='broken'\"> & <b>",
    "strange": "xyzzy 😀 👩‍🔬 🇫🇷 שלום the عالم",
    "long": "the agreement on environment " * 180,
}


@pytest.mark.parametrize("kind", list(STRANGE))
def test_odd_texts_do_not_break_the_page(live: Any, kind: str) -> None:
    title = live.title()
    greedily(live)
    enter(live, STRANGE[kind])
    for column in (0, 1):
        assert words(live, column)[-1] == "</s>"
    assert live.title() == title
    assert live.evaluate("document.documentElement.scrollWidth") <= 1400
    live.fill("#live-text", " ")
    live.press("#live-text", "Enter")
    told = "document.querySelector('.written').textContent"
    until(live, f"{told} === 'There is no word to translate.'")


def test_page_runs_in_a_sandboxed_frame(chromium: Any, live_page: Path, tmp_path: Path) -> None:
    frame = tmp_path / "frame.html"
    frame.write_text(
        f'<iframe sandbox="allow-scripts" src="file://{live_page}" width=1200 height=900></iframe>'
    )
    page = chromium.new_context().new_page()
    page.goto(f"file://{frame}")
    inner = page.frame_locator("iframe")
    inner.locator("html[data-translated]").wait_for()
    inner.locator("#live-text").fill("the agreement")
    inner.locator("#live-text").press("Enter")
    inner.locator("#live-said", has_text="RNNsearch-50").wait_for(state="attached")
    page.context.close()
