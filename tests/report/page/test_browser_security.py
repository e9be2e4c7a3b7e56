"""A page built from hostile texts runs only its own two scripts."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from nmt.report.comparison import compare_finished
from nmt.report.page.builder import build_page
from nmt.report.runs import FinishedRun
from tests.report.page.browser import IN_BROWSER, Opened, until

pytestmark = IN_BROWSER

IMAGE = '"><img src=x onerror="document.title=\'broken\'">'

INJECT = """() => {
  window.refused = [];
  document.addEventListener("securitypolicyviolation", (event) => window.refused.push(event.effectiveDirective));
  const program = document.createElement("script");
  program.textContent = "document.title = 'broken'";
  document.head.append(program);
  document.body.insertAdjacentHTML("beforeend", `<img src="data:," onerror="document.title = 'broken'">`);
}"""


def test_markup_in_each_field_is_shown_as_text(
    chromium: Any, runs: list[FinishedRun], tmp_path: Path
) -> None:
    run = runs[2]
    train = {**run.results["train"], "device": IMAGE}
    written = dict.fromkeys(("name", "command", "model", "scoring"), IMAGE)
    results = {**run.results, "train": train, **written}
    results |= {"overrides": [f"x={IMAGE}"], "config": {**run.config, IMAGE: IMAGE}}
    words = {"reference": [IMAGE], "hypothesis": [IMAGE]}
    for kind in ("translations", "alignments"):
        rows = (run.translations if kind == "translations" else run.alignments)("newstest")
        rows = [{**row, "source": [IMAGE, *row["source"][1:]], **words} for row in rows]
        (tmp_path / kind).mkdir()
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
        (tmp_path / kind / "newstest.jsonl").write_text(text)
    table = run.scores.query("set == 'newstest'")
    changes = {"results": results, "records": {}, "scores": table, "folder": tmp_path}
    hostile = replace(run, label=IMAGE, name=IMAGE, **changes)
    page = build_page(compare_finished([runs[0], hostile], resamples=20), tmp_path / "p.html")
    opened = Opened(chromium, page)
    opened.page.select_option("#set", "newstest")
    opened.page.fill("#translations-find", "img")
    assert IMAGE in opened.page.inner_text("#translations-list")
    assert opened.page.title() == f"RNNencdec-50 and {IMAGE}"
    assert opened.page.locator("img").count() == 0
    opened.close()


def test_inserted_script_does_not_run(chromium: Any, built: Path) -> None:
    opened = Opened(chromium, built)
    title = opened.page.title()
    opened.page.evaluate(INJECT)
    until(opened.page, "window.refused.length >= 2")
    assert set(opened.page.evaluate("window.refused")) == {"script-src-elem", "script-src-attr"}
    assert opened.page.title() == title
    opened.context.close()
