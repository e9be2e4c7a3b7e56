"""The panel of falls with length: its payload, and what it draws."""

from pathlib import Path
from typing import Any

import pytest

from nmt.evaluation.results import SCORE_KEYS
from nmt.report.comparison import compare_set
from nmt.report.finding import find_runs
from nmt.report.page import build_page
from nmt.report.page.falls import falls_payload
from nmt.report.runs import FinishedRun
from tests.helpers.browser import IN_BROWSER, Opened, until
from tests.helpers.run_folders import make_run
from tests.report.page.elements import Elements


@pytest.fixture(scope="module")
def capped(tmp_path_factory: pytest.TempPathFactory) -> list[FinishedRun]:
    """Two caps of one model, and the other model."""
    folder = tmp_path_factory.mktemp("caps")
    for number, (model, cap) in enumerate(
        [("RNNencdec", 30), ("RNNencdec", 50), ("RNNsearch", 30)]
    ):
        make_run(folder / str(number), model=model, max_length=cap, pairs=400, kept=2)
    return find_runs([str(folder / "*")]).runs


@pytest.fixture(scope="module")
def panel(capped: list[FinishedRun], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("panel") / "comparison.html"
    return build_page(capped, path, resamples=100)


def test_payload_has_the_fits_and_the_swept_keys(capped: list[FinishedRun]) -> None:
    comparison = compare_set(capped, "newstest", 100)
    payload = falls_payload(capped, [comparison])
    scores = payload["sets"]["newstest"]
    group = scores["bleu"]["groups"]["RNNencdec-30"]
    found = comparison.falls.of_groups["bleu"]["RNNencdec-30"]
    slope = found["to_cap"]["slope"]
    assert group["figures"]["to_cap"] == [slope["score"], slope["low"], slope["high"]]
    assert group["verdicts"][0].startswith("BLEU falls by ")
    assert group["cap"] == 30
    assert group["line"][1][0] <= 30 < group["line"][2][0]
    assert len(group["points"]) >= 6
    bleu = comparison.results["RNNencdec-30"]["bleu"]["all"]
    assert group["figures"]["score"] == pytest.approx([bleu[end] for end in SCORE_KEYS])
    assert "perplexity" not in scores  # not given by length
    keys = {entry["key"]: entry["values"] for entry in payload["swept"]}
    assert keys["max_length"] == {"RNNencdec-30": "30", "RNNencdec-50": "50", "RNNsearch-30": "30"}
    assert "seed" not in keys


def test_the_score_of_a_group_of_seeds_has_an_interval(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        make_run(tmp_path / str(seed), seed=seed, pairs=200, kept=0)
    runs = find_runs([str(tmp_path / "*")]).runs
    comparison = compare_set(runs, "newstest", 100)
    [group] = falls_payload(runs, [comparison])["sets"]["newstest"]["bleu"]["groups"].values()
    score, low, high = group["figures"]["score"]
    bleu = [comparison.results[run.label]["bleu"]["all"] for run in runs]
    assert score == pytest.approx(sum(each["score"] for each in bleu) / 3)
    assert low < min(each["score"] for each in bleu)
    assert high > max(each["score"] for each in bleu)


def test_tables_stand_in_the_section(panel: Path) -> None:
    page = panel.read_text(encoding="utf-8")
    assert Elements(page).packed("falls")["sets"]["newstest"]["bleu"]["groups"]
    assert 'id="falls_newstest-table"' in page
    assert 'id="slope_differences_newstest-table"' in page


@IN_BROWSER[0]
@IN_BROWSER[1]
def test_lines_verdicts_and_swept_keys_are_drawn(chromium: Any, panel: Path) -> None:
    session = Opened(chromium, panel)
    try:
        page = session.page
        page.wait_for_selector("#falls-sweep-chart .mark-symbol path")
        # of two runs a line up to the cap and one beyond it, of the third one line
        assert page.locator("#falls-chart .mark-line path").count() == 5
        assert page.locator("#falls-chart .mark-rule.role-mark line").count() == 2  # the two caps
        said = page.inner_text("#falls-verdicts")
        assert "RNNencdec-30: BLEU falls by" in said
        assert "for each 10 words beyond 30." in said
        page.select_option("#falls-score", "nll_per_word")
        until(page, "document.querySelector('#falls-verdicts').innerText.includes('NLL')")
        page.select_option("#falls-figure", "beyond_cap")
        page.evaluate(
            "document.querySelectorAll('details.fold').forEach((d) => { d.open = true; })"
        )
        page.locator("#run-list").get_by_label("RNNencdec-50").first.uncheck()
        until(page, "document.querySelectorAll('#falls-chart .mark-line path').length === 4")
        assert page.locator("#falls_newstest-table").is_visible()
    finally:
        session.close()
