"""The written page: what it holds, that it asks for nothing, and that no text becomes markup."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from nmt.config import PageConfig
from nmt.report.comparison import Comparison, compare_runs
from nmt.report.live_file import write_live
from nmt.report.page import build_explorer, build_page, live, payload
from nmt.report.runs import FinishedRun, find_runs
from tests.helpers.live import drawn_model, exported
from tests.helpers.run_folders import MARKUP
from tests.report.page.elements import Elements


@pytest.fixture(scope="module")
def page(comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Elements:
    path = tmp_path_factory.mktemp("page") / "comparison.html"
    shown = replace(comparison, unfinished=[Path("sweep/4")])
    assert build_page(shown, path) == path
    return Elements(path.read_text(encoding="utf-8"))


def built(runs: list[FinishedRun], path: Path, report: PageConfig | None = None) -> Elements:
    return Elements(build_page(compare_runs(runs, resamples=0), path, report).read_text("utf-8"))


def test_nothing_is_fetched_and_only_known_programs_run(page: Elements) -> None:
    for tag, attributes in page.found:
        for name in ("src", "href"):
            value = attributes.get(name) or ""
            assert not value or value.startswith(("#", "data:")), (tag, value)
    policy = next(a for t, a in page.found if a.get("http-equiv"))["content"]
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "connect-src 'none'" in policy
    scripts = next(part for part in policy.split("; ") if part.startswith("script-src"))
    assert re.fullmatch(r"script-src( 'sha256-[\w+/=]{44}'){2}", scripts)
    assert "@import" not in page.text
    assert "url(" not in page.text


def test_text_of_a_stranger_is_never_markup(runs: list[FinishedRun], tmp_path: Path) -> None:
    hostile = f"<img src=x onerror=alert(1)>{MARKUP}"
    results = {**runs[0].results, "command": hostile, "overrides": [f"{hostile}={hostile}"]}
    results["config"] = {**runs[0].config, hostile: hostile}
    named = replace(runs[0], label=hostile, results=results)
    elements = built([named, runs[2]], tmp_path / "page.html")
    tags = [tag for tag, _ in elements.found]
    assert "img" not in tags
    assert tags.count("script") == 3  # data, chart library, program
    assert MARKUP not in elements.text
    overview = elements.packed("data")["overview"]
    assert overview["runs"][0]["label"] == hostile


def test_the_charts_have_the_scores_of_the_frame(page: Elements, runs: list[FinishedRun]) -> None:
    overview = page.packed("data")["overview"]
    assert [run["group"] for run in overview["runs"]] == [0, 0, 1, 1]
    assert [run["cap"] for run in overview["runs"]] == [50] * 4
    assert overview["groups"] == ["RNNencdec-50", "RNNsearch-50"]
    assert {entry["title"] for entry in overview["filters"]} == {"Model", "Scoring", "Seed"}
    rows = overview["sets"]["newstest"]["buckets"]
    row = next(r for r in rows if r["run"] == runs[2].label and r["bucket"] == "11-20")
    frame = runs[2].scores.query("set == 'newstest' and score == 'bleu' and `from` == 11")
    for key, subset in (("bleu", "all"), ("bleu_no_unk", "no_unk")):
        [wanted] = frame[frame["subset"] == subset].to_dict("records")
        assert row[key] == pytest.approx([wanted[e] for e in ("value", "low", "high", "sentences")])
    assert overview["scores"]["nll_per_word"] == {
        **{"title": "NLL per word (nats)", "digits": 3, "higher_is_better": False, "ratio": False}
    }
    first, second, bucket, *numbers = overview["sets"]["newstest"]["significance"]["bleu"][0]
    assert [overview["runs"][n]["label"] for n in (first, second)] == [runs[0].label, runs[1].label]
    assert (bucket, len(numbers)) == ("all", 6)


def test_headline_tables_commands_and_unfinished_runs_stand_in_the_page(page: Elements) -> None:
    assert re.search(
        r"RNNsearch-50: BLEU \d+ at 10 words, \d+ at 50 words: \d+\xa0% \[\d+, \d+\] left",
        page.text,
    )
    assert "python -m nmt.train +experiment=rnnsearch50 seed=2" in page.text
    assert "Not finished, so not here: sweep/4" in page.text
    assert page.text.count('data-run="RNNsearch-50 seed 2"') == 7  # three a set, and training
    assert "model.scoring._target_" in page.text


def test_a_large_page_leaves_out_translations_then_small_weights_then_sentences(
    runs: list[FinishedRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "page.html"
    whole = built(runs, path).packed("data")
    monkeypatch.setattr(payload, "MAX_PAGE_BYTES", path.stat().st_size - 20_000)
    monkeypatch.setattr(payload, "MIN_TRANSLATIONS", 10)
    small = built(runs, path).packed("data")
    assert small["alignments"] == whole["alignments"]
    rows = small["translations"]["newstest"]
    assert 12 <= len(rows["rows"]) < rows["total"] == 400
    kept = {sentence["id"] for sentence in small["alignments"]["newstest"]}
    assert kept <= {row["id"] for row in rows["rows"]}
    size = len(payload.packed(whole["alignments"], 6))
    monkeypatch.setattr(payload, "MAX_ALIGNMENT_BYTES", size // 3)
    few = built(runs, path).packed("data")["alignments"]["newstest"]
    assert 1 < len(few) < len(whole["alignments"]["newstest"])
    assert few[-1]["length"] > 3 * few[0]["length"]
    assert few[0]["by"]["RNNsearch-50 seed 1"]["floor"] == payload.SMALL_WEIGHT


def test_weights_keep_what_the_page_shows() -> None:
    weights = [[0.9999, 0.0001], [0.25, 0.75]]
    row = {"target": ["a", "</s>"], "weights": weights, "log_normaliser": [1.23456, float("nan")]}
    packed = payload.decoding(row)
    codes = [(code / payload.WEIGHT_SCALE) ** 2 for code in packed["w"]]
    assert codes == pytest.approx([w for step in weights for w in step], abs=5e-4)
    assert packed["z"] == [1.235, None]


def test_runs_without_scores_and_outside_systems_make_a_page(
    runs: list[FinishedRun], tmp_path: Path
) -> None:
    bare = FinishedRun("bare", {"config": {"a": 1}, "train": {"updates": 3}})
    text = built([bare], tmp_path / "bare.html").text
    assert "<p>1 run</p>" in text
    assert "How to make it again" in text
    assert 'href="#significance-section"' not in text
    records = {"mine": runs[0].translations("mine")}
    table = runs[0].scores.query("set == 'mine'").drop(columns="run")
    moses = FinishedRun("Moses", {}, records=records, table=table)
    elements = built([runs[0], moses], tmp_path / "p.html")
    assert "1 run and 1 other system on newstest, mine" in elements.text
    assert "<p>1 system on mine</p>" in built([moses], tmp_path / "s.html").text
    translations = elements.packed("data")["translations"]
    assert translations["mine"]["systems"] == ["RNNencdec-50 seed 1", "Moses"]
    assert translations["newstest"]["systems"] == ["RNNencdec-50 seed 1"]


def test_the_explorer_alone_holds_any_sentences(runs: list[FinishedRun], tmp_path: Path) -> None:
    rows = [{**row, "run": run.label} for run in runs[1:3] for row in run.alignments("mine")]
    path = build_explorer(rows, tmp_path / "mine.html", title="My <sentences>")
    elements = Elements(path.read_text(encoding="utf-8"))
    sentences = elements.packed("data")["alignments"]["text"]
    assert len(sentences) == 12
    assert list(sentences[0]["by"]) == [runs[1].label, runs[2].label]
    assert path.stat().st_size < 200_000
    assert "<h1>My &lt;sentences&gt;</h1>" in elements.text


def test_models_are_put_in_and_left_out_by_name(
    runs: list[FinishedRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One run a group; of a run without a model the reason."""
    assert "worker-src 'none'" in built(runs, tmp_path / "p.html").text
    for seed, run in ((1, runs[0]), (2, runs[2])):
        assert run.folder is not None
        copied = shutil.copytree(run.folder, tmp_path / "runs" / str(seed))
        write_live(copied, exported(drawn_model(run.results["model"])))
    assert runs[2].folder is not None
    other = shutil.copytree(runs[2].folder, tmp_path / "runs" / "other")
    results = json.loads((other / "results.json").read_text())
    results["config"]["model"]["scoring"]["_target_"] = "mine.Bilinear"
    (other / "results.json").write_text(json.dumps(results))
    found, _ = find_runs([tmp_path / "runs"])
    page = built(found, tmp_path / "p.html", PageConfig(live_bits=8))
    held = page.packed("data")["live"]
    assert [each["model"] for each in held["models"]] == ["RNNsearch", "RNNencdec"]
    assert {"live-0", "live-1", "live-program"} <= set(page.scripts)
    assert "worker-src blob:" in page.text
    assert ": the page does not know Bilinear" in page.text
    monkeypatch.setattr(live, "LIMIT", len(page.scripts["live-0"]) + 100)
    page = built(found, tmp_path / "p.html", PageConfig(live_bits=8))
    assert [each["model"] for each in page.packed("data")["live"]["models"]] == ["RNNsearch"]
    assert "million parameters do not fit any more" in page.text
    page = built(found, tmp_path / "p.html", PageConfig(live=False))
    assert 'id="live-section"' not in page.text
