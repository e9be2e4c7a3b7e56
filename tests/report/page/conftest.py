from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nmt.report.comparison import compare_finished
from nmt.report.page.builder import build_page
from nmt.report.runs import FinishedRun
from tests.helpers.run_folders import MARKUP
from tests.report.page.browser import CHROMIUM, CURVES, Opened, until


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def built(runs: list[FinishedRun], tmp_path_factory: pytest.TempPathFactory) -> Path:
    records = {"newstest": runs[0].translations("newstest")}
    scores = runs[0].scores
    table = scores[scores["set"] == "newstest"]
    moses = FinishedRun(f"Moses {MARKUP}", {}, records=records, scores=table)
    path = tmp_path_factory.mktemp("page") / "comparison.html"
    return build_page(compare_finished([*runs, moses], resamples=100), path)


@pytest.fixture
def opened(chromium: Any, built: Path) -> Iterator[Opened]:
    session = Opened(chromium, built)
    yield session
    session.close()


@pytest.fixture
def page(opened: Opened) -> Any:
    opened.page.evaluate(
        "document.querySelectorAll('details.fold').forEach((d) => { d.open = true; })"
    )
    opened.page.uncheck("#grouped")
    drawn = f"#length-chart .concat_0_group {CURVES}"
    until(opened.page, f"document.querySelectorAll(`{drawn}`).length === 5")
    return opened.page
