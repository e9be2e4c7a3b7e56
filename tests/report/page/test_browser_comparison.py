"""The comparison page in a browser: runs, scores, tables, curves and translations."""

import re
from pathlib import Path
from typing import Any

from nmt.config.commands import CompareConfig
from nmt.report.comparison import build_comparison
from nmt.report.page.builder import build_page
from tests.report.page.browser import (
    ENCDEC,
    IN_BROWSER,
    SEARCH,
    Opened,
    barriers,
    drawn_after,
    lines,
)
from tests.report.page.elements import Elements

pytestmark = IN_BROWSER


def test_runs_can_be_hidden_and_grouped(page: Any) -> None:
    assert lines(page) == 5
    assert page.inner_text("#run-count") == "5 of 5 runs shown"
    drawn_after(
        page, "#length-chart", lambda: page.locator("#run-list").get_by_label(ENCDEC).uncheck()
    )
    assert lines(page) == 4
    hidden = page.locator(f'#scores-section tr[data-run="{ENCDEC}"]').first
    assert not hidden.is_visible()
    drawn_after(page, "#length-chart", lambda: page.click("#all-on"))
    assert lines(page) == 5
    drawn_after(page, "#length-chart", lambda: page.click("#grouped"))
    assert lines(page) == 3
    assert "Band: 95 % confidence interval over sentences" in page.inner_text("#length-note")
    assert "RNNsearch-50" in page.inner_text("#length-legend").split("\n")
    drawn_after(page, "#length-chart", lambda: page.click("#all-off"))
    assert page.is_visible("#length-empty")
    assert page.inner_text("#run-count") == "0 of 5 runs shown"


def test_each_score_has_bands_counts_and_numbers(page: Any, built: Path) -> None:
    options = page.locator("#metric option").all_inner_texts()
    assert len(options) == 7
    for index in range(len(options)):
        drawn_after(page, "#length-chart", lambda i=index: page.select_option("#metric", index=i))
        assert lines(page) >= 1  # some scores exist for one system only
    drawn_after(page, "#length-chart", lambda: page.select_option("#metric", "bleu"))
    drawn_after(page, "#length-chart", lambda: page.click("#grouped"))
    bands = page.locator("#length-chart .concat_0_group .mark-area path")
    assert bands.count() == 3
    # Two curves per group (brevity penalty; precisions), so six bands for three groups.
    assert page.locator("#length-chart .concat_2_group .mark-area path").count() == 6
    drawn_after(page, "#length-chart", lambda: page.click("#bands"))
    assert bands.count() == 0
    drawn_after(page, "#length-chart", lambda: page.click("#grouped"))
    table = page.inner_text("#length-data")
    overview = Elements(built.read_text(encoding="utf-8")).packed("data")["overview"]
    row = next(r for r in overview["buckets"] if (r["set"], r["key"]) == ("newstest", "bleu"))
    assert f"{row['value']:.2f} [{row['low']:.2f}, {row['high']:.2f}]" in table
    counts = page.locator("#length-chart .mark-text text").all_text_contents()
    assert str(row["sentences"]) in counts
    page.locator("#length-chart .mark-symbol path").last.hover()
    assert "Sentences" in page.inner_text("#tooltip")
    page.mouse.move(5, 5)


def test_runs_are_compared_with_a_control(page: Any) -> None:
    options = page.locator("#compared option").all_inner_texts()
    assert len(options) == 1 + 3
    control = "RNNencdec-50"
    choose = lambda: page.select_option("#compared", f"difference\n{control}")  # noqa: E731
    drawn_after(page, "#length-chart", choose)
    assert lines(page) == 2
    assert page.locator("#length-chart .concat_0_group .mark-rule.role-mark line").count() == 2
    assert f"compared with {control}" in page.inner_text("#length-note")
    assert control not in page.inner_text("#length-legend").split("\n")


def test_test_set_selector_changes_all_sections(page: Any) -> None:
    before = page.text_content("#length-data")
    drawn_after(page, "#length-chart", lambda: page.select_option("#set", "mine"))
    assert page.text_content("#length-data") != before
    assert page.is_visible("#scores_mine-table")
    assert not page.is_visible("#scores_newstest-table")
    assert lines(page) == 0  # too few sentences for curves, so only points are shown
    assert page.locator("#length-chart .concat_0_group .mark-symbol path").count() == 28


def test_tables_sort_by_any_column(page: Any) -> None:
    heading = page.locator("#scores_newstest-table th", has_text="BLEU, all")

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
    assert "28.45" in page.inner_text("#published-table")


def test_matrix_shows_differences_and_p_values(page: Any) -> None:
    """A lower NLL is better. For the attention entropy, neither direction is better."""

    def cell() -> Any:
        return page.locator("#significance tbody tr", has_text=SEARCH).first.locator("td").first

    assert cell().get_attribute("class") == "better"
    assert re.fullmatch(r"\+\d+\.\d\d\*+\np [<\d.]+", cell().inner_text())
    assert f"{SEARCH} minus {ENCDEC}: +" in cell().get_attribute("aria-label")
    assert page.locator("#bucket option").first.inner_text() == "the whole set"
    before = cell().inner_text()
    page.select_option("#bucket", index=3)
    assert cell().inner_text() != before
    page.select_option("#bucket", index=0)
    page.select_option("#tested", "nll_per_word")
    assert cell().get_attribute("class") == "better"
    assert re.fullmatch(r"−\d\.\d{3}\*+\np [<\d.]+", cell().inner_text())
    page.select_option("#tested", "attention_entropy")
    assert page.locator("#significance tbody tr").count() == 2


def test_training_curves(page: Any) -> None:
    for index in range(3):
        drawn_after(
            page, "#training-chart", lambda i=index: page.select_option("#training-metric", index=i)
        )
        assert lines(page, "#training-chart") == 4
    assert "RNNsearch-50 seed 2" in page.inner_text("#training-data")


def test_translations_can_be_filtered_and_paged(page: Any) -> None:
    def lengths() -> list[int]:
        spans = page.locator(".translation header span").all_inner_texts()
        return [int(text.split()[0]) for text in spans]

    page.fill("#translations-least", "30")
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
    page.locator("#run-list").get_by_label(ENCDEC).uncheck()
    assert page.locator(".translation").first.locator("dt").count() == 6


def test_navigation_links_lead_to_sections(page: Any) -> None:
    shown = page.locator("nav a:visible")
    links = [link.get_attribute("href") for link in shown.all()]
    assert "#length-section" in links
    for link in links:
        assert page.is_visible(link), link


def test_only_some_of_many_systems_are_coloured(chromium: Any, tmp_path: Path) -> None:
    """Two to four of twelve systems are highlighted; a click on a name in the table highlights its system."""
    text = [" ".join(f"w{n}x{i}" for i in range(50 if n % 2 else 10)) for n in range(80)]
    (tmp_path / "t.en").write_text("\n".join(text) + "\n")
    (tmp_path / "systems").mkdir()
    for k in range(12):
        lines = [" ".join(line.split()[: -2 - k * len(line) // 200]) + " x" for line in text]
        (tmp_path / f"systems/s{k:02}.de").write_text("\n".join(lines) + "\n")
    source = str(tmp_path / "t.en")
    config = CompareConfig(
        source=source,
        reference=source,
        systems=[f"{tmp_path}/systems/*"],
        languages=["en", "de"],
        resamples=0,
    )
    opened = Opened(chromium, build_page(build_comparison(config), tmp_path / "many.html"))
    page = opened.page
    page.wait_for_selector("#length-chart[data-drawn]")
    assert page.is_visible("#length-grey")
    assert page.locator("nav a[href='#explorer-section']").count() == 0  # systems lack attention
    before = page.locator("#length-legend li").all_inner_texts()
    assert 2 <= len(before) <= 4
    assert {"s00", "s11"} <= {name.strip() for name in before}
    row = page.locator("#retention_t-table button.line", has_text="s05").first
    drawn_after(page, "#length-chart", row.click)
    after = page.locator("#length-legend li").all_inner_texts()
    assert len(after) == len(before) + 1
    assert row.get_attribute("aria-pressed") == "true"
    row.focus()
    drawn_after(page, "#length-chart", lambda: row.press("Enter"))
    assert row.evaluate("(button) => document.activeElement === button")
    assert page.locator("#length-legend li").all_inner_texts() == before

    def thick() -> int:
        found = page.locator("#length-chart .concat_0_group .mark-line path[stroke-width='4']")
        return int(found.count())

    assert thick() == 1  # the curve of the focused name
    row.evaluate("(button) => button.blur()")
    assert thick() == 0
    page.locator("#retention_t-table button.line", has_text="s07").first.hover()
    assert thick() == 1
    assert barriers(page) == []
    opened.close()


def test_retention_table_sorts_by_any_column(page: Any) -> None:
    """Cells such as `> 60` come last; the percentage in the heading is not yet lost at 60 words."""
    table = page.locator("#retention_newstest-table")
    for column, heading in enumerate(table.locator("thead th").all()):
        heading.get_by_role("button").press("Enter")
        assert heading.get_attribute("aria-sort") == "ascending"
        if "lost" not in heading.inner_text():
            continue
        cells = table.locator(f"tbody tr td:nth-child({column + 1})").all_inner_texts()
        unreached = [text.startswith(">") for text in cells]
        assert unreached == sorted(unreached)
        assert not all(unreached) or "50%" in heading.inner_text()


def test_scores_without_translations_have_a_chart(chromium: Any, tmp_path: Path) -> None:
    rows = [f"{name}\t{n}\t{n % 40 + 5}\t0.5" for name in "AB" for n in range(200)]
    table = tmp_path / "comet.tsv"
    table.write_text("\n".join(["system\tseg_id\twords\tcomet", *rows]) + "\n")
    comparison = build_comparison(CompareConfig(scores={"comet": str(table)}, resamples=0))
    opened = Opened(chromium, build_page(comparison, tmp_path / "scores.html"))
    opened.page.wait_for_selector("#length-chart[data-drawn]")
    assert lines(opened.page) == 2
    assert opened.page.locator("nav a[href='#translations-section']").count() == 0
    opened.close()
