import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from nmt.config import PageConfig
from nmt.report.comparison import compare_set
from nmt.report.finding import find_runs
from nmt.report.live_file import write_live
from nmt.report.page import build_explorer, build_page, fitting, live
from nmt.report.runs import FinishedRun
from tests.helpers.live import drawn_model, exported
from tests.helpers.run_folders import MARKUP
from tests.report.page.elements import Elements


@pytest.fixture(scope="module")
def page(runs: list[FinishedRun], tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "comparison.html"
    assert build_page(runs, path, resamples=50, unfinished=[Path("sweep/4")]) == path
    return path.read_text(encoding="utf-8")


def test_nothing_is_fetched(page: str) -> None:
    elements = Elements(page)
    for tag, attributes in elements.found:
        for name in ("src", "href"):
            value = attributes.get(name) or ""
            assert not value or value.startswith(("#", "data:")), (tag, value)
    policy = next(a for t, a in elements.found if a.get("http-equiv"))["content"]
    assert "default-src 'none'" in policy
    assert "connect-src 'none'" in policy
    scripts = next(part for part in policy.split("; ") if part.startswith("script-src"))
    assert re.fullmatch(r"script-src( 'sha256-[\w+/=]{44}'){2}", scripts)
    assert "@import" not in page
    assert "url(" not in page


def test_every_text_stays_text(page: str) -> None:
    scripts = [a for tag, a in Elements(page).found if tag == "script"]
    assert len(scripts) == 5  # overview, alignments, library, translations, main
    assert MARKUP not in page


def test_names_with_markup_are_escaped(runs: list[FinishedRun], tmp_path: Path) -> None:
    hostile = replace(runs[0], label=f"<img src=x onerror=alert(1)>{MARKUP}")
    path = build_page([hostile, runs[2]], tmp_path / "page.html", resamples=0)
    elements = Elements(path.read_text(encoding="utf-8"))
    assert "img" not in {tag for tag, _ in elements.found}
    overview = elements.packed("overview")
    assert overview["runs"][0]["label"] == hostile.label


def test_the_overview_has_what_the_charts_need(page: str, runs: list[FinishedRun]) -> None:
    overview = Elements(page).packed("overview")
    assert [run["group"] for run in overview["runs"]] == [0, 0, 1, 1]
    assert overview["groups"] == ["RNNencdec-50", "RNNsearch-50"]
    assert {entry["title"] for entry in overview["filters"]} == {"Model", "Scoring", "Seed"}
    assert list(overview["sets"]) == ["newstest", "mine"]
    rows = overview["sets"]["newstest"]["rows"]
    row = next(r for r in rows if r["run"] == "RNNsearch-50 seed 1" and r["bucket"] == "11-20")
    measured = runs[2].results["test"]["newstest"]["by_length"][1]
    ends = ("score", "low", "high", "sentences")
    assert row["bleu"] == [measured[end] for end in ends]
    assert row["bleu_no_unk"] == [measured["no_unk"][end] for end in ends]
    assert row["alignment_error_rate"] == [0.08 + 11 / 400, 0.07, 0.3, measured["sentences"]]
    shown = overview["sets"]["newstest"]["scores"]
    assert shown == [key for key in overview["scores"] if key in row]
    assert overview["scores"]["nll_per_word"] == {
        **{"title": "NLL a word (nats)", "digits": 3, "higher_is_better": False, "ratio": False}
    }
    assert overview["scores"]["length_ratio"]["ratio"] is True
    tested = overview["sets"]["newstest"]["significance"]
    assert set(tested) == set(overview["scores"]) - {"bleu_no_unk", "chrf"}
    first, second, bucket, *numbers = tested["bleu"][0]
    assert [overview["runs"][n]["label"] for n in (first, second)] == [runs[0].label, runs[1].label]
    assert (bucket, len(numbers)) == ("all", 6)


def test_tables_commands_and_unfinished_runs_are_in_the_page_itself(page: str) -> None:
    assert "python -m nmt.train +experiment=rnnsearch50 seed=2" in page
    assert "Not finished, so not here: sweep/4" in page
    assert page.count('data-run="RNNsearch-50 seed 2"') == 7  # three tables a set, and training
    assert 'value="0"' in page  # fewer than a hundred sentences have 30 words
    assert "model.scoring._target_" in page


def test_the_report_bounds_the_sentences_of_the_explorer(
    runs: list[FinishedRun], tmp_path: Path
) -> None:
    path = build_page(runs[2:], tmp_path / "p.html", PageConfig(sentences=5), resamples=0)
    alignments = Elements(path.read_text()).packed("alignments")
    lengths = [sentence["length"] for sentence in alignments["newstest"]]
    assert len(lengths) == 5
    assert lengths[-1] - lengths[0] > 10


def test_a_large_page_leaves_out_translations_but_no_alignment(
    runs: list[FinishedRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparisons = [compare_set(runs, name, 0) for name in ("newstest", "mine")]
    whole = build_page(runs, tmp_path / "whole.html", comparisons=comparisons)
    limit = whole.stat().st_size - 30_000
    monkeypatch.setattr(fitting, "PAGE_BYTES", limit)
    monkeypatch.setattr(fitting, "FEWEST", 10)
    path = build_page(runs, tmp_path / "small.html", comparisons=comparisons)
    assert path.stat().st_size < limit
    before, after = Elements(whole.read_text()), Elements(path.read_text())
    assert before.scripts["alignments"] == after.scripts["alignments"]
    kept = {sentence["id"] for sentence in after.packed("alignments")["newstest"]}
    translations = after.packed("translations")["newstest"]
    assert 12 <= len(translations["rows"]) < translations["total"] == 150
    assert kept <= {row["id"] for row in translations["rows"]}


def test_alignments_lose_small_weights_before_sentences(
    runs: list[FinishedRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def alignments(limit: int) -> tuple[int, list]:
        monkeypatch.setattr(fitting, "ALIGNMENT_BYTES", limit)
        path = build_page(runs[2:], tmp_path / "p.html", resamples=0)
        elements = Elements(path.read_text())
        assert len(elements.scripts["alignments"]) < limit
        return len(elements.scripts["alignments"]), elements.packed("alignments")["newstest"]

    whole, sentences = alignments(10**9)
    search = sentences[6]["by"]["RNNsearch-50 seed 1"]
    assert "floor" not in search
    _, floored = alignments(int(0.97 * whole))
    trimmed = floored[6]["by"]["RNNsearch-50 seed 1"]
    assert len(floored) == len(sentences)
    assert trimmed["floor"] == 2e-4
    assert sum(a != b for a, b in zip(search["w"], trimmed["w"], strict=True)) > 0
    assert all(
        a == b or (b == 0 and a <= 29) for a, b in zip(search["w"], trimmed["w"], strict=True)
    )
    _, few = alignments(int(0.3 * whole))
    assert 1 < len(few) < len(sentences)
    assert few[-1]["length"] > 3 * few[0]["length"]


def test_a_run_with_nothing_but_training_makes_a_page(tmp_path: Path) -> None:
    bare = FinishedRun("bare", {"config": {"a": 1}, "test": {}, "train": {"updates": 3}})
    page = build_page([bare], tmp_path / "bare.html").read_text()
    assert "<p>1 run</p>" in page
    assert "How to make it again" in page
    assert "The configurations are equal" not in page
    assert 'href="#significance-section"' not in page


def test_outside_systems_stand_beside_runs(runs: list[FinishedRun], tmp_path: Path) -> None:
    results = {"test": {"mine": runs[0].results["test"]["mine"]}}
    records = {("translations", "mine"): runs[0].translations("mine")}
    moses = FinishedRun("Moses", results, lines=records)
    page = build_page([runs[0], moses], tmp_path / "p.html", resamples=20).read_text()
    assert "1 run and 1 outside system on newstest, mine" in page
    translations = Elements(page).packed("translations")
    assert translations["mine"]["systems"] == ["RNNencdec-50 seed 1", "Moses"]
    assert translations["newstest"]["systems"] == ["RNNencdec-50 seed 1"]


def test_the_explorer_alone_holds_sentences_of_ones_own(
    runs: list[FinishedRun], tmp_path: Path
) -> None:
    rows = [{**row, "run": run.label} for run in runs[1:3] for row in run.alignments("mine")]
    path = build_explorer(rows, tmp_path / "mine.html", title="My <sentences>")
    elements = Elements(path.read_text(encoding="utf-8"))
    sentences = elements.packed("alignments")["text"]
    assert len(sentences) == 12
    assert list(sentences[0]["by"]) == [runs[1].label, runs[2].label]
    assert "overview" not in elements.scripts
    assert "library" not in elements.scripts
    assert path.stat().st_size < 200_000
    assert "<h1>My &lt;sentences&gt;</h1>" in path.read_text()


def test_models_are_put_in_and_left_out_by_name(
    runs: list[FinishedRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a group one run; of a run without a model the reason."""
    path = build_page(runs, tmp_path / "p.html", resamples=0)
    assert "worker-src 'none'" in path.read_text()
    for seed, run in ((1, runs[0]), (2, runs[2])):
        copied = shutil.copytree(run.folder, tmp_path / "runs" / str(seed))
        kind = run.results["model"]
        write_live(copied, exported(drawn_model(kind)))
    other = shutil.copytree(runs[2].folder, tmp_path / "runs" / "other")
    results = json.loads((other / "results.json").read_text())
    results["config"]["model"]["scoring"]["_target_"] = "mine.Bilinear"
    (other / "results.json").write_text(json.dumps(results))
    found = find_runs([tmp_path / "runs"]).runs
    text = build_page(found, tmp_path / "p.html", PageConfig(live_bits=8), resamples=0).read_text()
    held = Elements(text).packed("live")
    assert [each["model"] for each in held["models"]] == ["RNNsearch", "RNNencdec"]
    assert (held["format"], held["bits"]) == (1, 8)
    assert {"live-0", "live-1", "live-program"} <= set(Elements(text).scripts)
    assert "worker-src blob:" in text
    assert ": the page does not know Bilinear" in text
    monkeypatch.setattr(live, "LIMIT", len(Elements(text).scripts["live-0"]) + 100)
    text = build_page(found, tmp_path / "p.html", PageConfig(live_bits=8), resamples=0).read_text()
    assert [each["model"] for each in Elements(text).packed("live")["models"]] == ["RNNsearch"]
    assert "million parameters do not fit any more" in text
    text = build_page(found, tmp_path / "p.html", PageConfig(live=False), resamples=0).read_text()
    assert 'id="live-section"' not in text
    assert "live" not in Elements(text).scripts


def test_the_test_set_that_fills_most_lengths_is_shown_first(
    runs: list[FinishedRun], tmp_path: Path
) -> None:
    comparisons = [compare_set(runs, name, 0) for name in ("newstest", "mine")]
    for result in comparisons[1].results.values():
        for row in result["by_length"]:
            row["sentences"] = 200
    path = build_page(runs, tmp_path / "page.html", comparisons=comparisons)
    assert list(Elements(path.read_text()).packed("overview")["sets"]) == ["mine", "newstest"]
