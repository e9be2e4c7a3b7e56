"""A page made of what a stranger wrote runs nothing but its own two scripts."""

import copy
from dataclasses import replace

from nmt.report.page import build_page
from tests.helpers.browser import IN_BROWSER, Opened, until

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


def test_markup_in_place_of_numbers_is_text(chromium, runs, tmp_path):
    """Such a results.json is refused when it is read; here it comes to the page nevertheless."""
    results = copy.deepcopy(runs[2].results)
    results["train"] |= {"hours": IMAGE, "updates": IMAGE, "nll_per_sentence": IMAGE}
    results |= {"parameters": IMAGE, "command": IMAGE, "title": IMAGE}
    hostile = replace(runs[2], label=IMAGE, results=results)
    opened = Opened(chromium, build_page([runs[0], hostile], tmp_path / "p.html", resamples=20))
    assert opened.page.title() == f"RNNencdec-50 and {IMAGE}"
    assert opened.page.locator("img").count() == 0
    assert (
        opened.page.locator(f"td[data-value='{IMAGE.replace(chr(39), chr(92) + chr(39))}']").count()
        == 4
    )
    opened.close()


def test_a_script_that_is_put_into_a_page_is_not_run(chromium, built):
    opened = Opened(chromium, built)
    title = opened.page.title()
    opened.page.evaluate(INJECT)
    until(opened.page, "window.refused.length >= 2")
    assert set(opened.page.evaluate("window.refused")) == {"script-src-elem", "script-src-attr"}
    assert opened.page.title() == title
    opened.context.close()
