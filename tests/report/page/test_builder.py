"""The written page has the right content, makes no requests, and never shows text as markup."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from sacrebleu.metrics import BLEU

from nmt.config.schema import PageConfig
from nmt.report.comparison import Comparison, compare_finished
from nmt.report.page import embed, payload
from nmt.report.page.builder import build_page, turned
from nmt.report.runs import FinishedRun, find_runs
from nmt.report.table import Table
from tests.helpers.models import drawn_model, write_live
from tests.helpers.run_folders import MARKUP, make_run
from tests.report.page.elements import Elements


@pytest.fixture(scope="module", autouse=True)
def small_library() -> Iterator[None]:
    """Replaces the chart library, which takes seconds to bundle and is not needed here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embed, "chart_library", lambda: "window.vegaEmbed = null;")
        yield


@pytest.fixture(scope="module")
def page(comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Elements:
    path = tmp_path_factory.mktemp("page") / "comparison.html"
    assert build_page(comparison, path) == path
    return Elements(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> list[FinishedRun]:
    """Makes small runs of RNNencdec and RNNsearch on two test sets."""
    folder = tmp_path_factory.mktemp("small")
    for model in ("RNNencdec", "RNNsearch"):
        sets = ("newstest", "mine")
        make_run(folder / model, model=model, pairs=12, kept=2, sets=sets)
    return find_runs([folder])


def built(
    runs: list[FinishedRun] | Comparison, path: Path, report: PageConfig | None = None
) -> Elements:
    comparison = runs if isinstance(runs, Comparison) else compare_finished(runs, resamples=0)
    return Elements(build_page(comparison, path, report).read_text("utf-8"))


def test_page_fetches_nothing_and_allows_only_its_own_scripts(page: Elements) -> None:
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
    assert "worker-src 'none'" in policy
    assert "@import" not in page.text
    assert "url(" not in page.text


@pytest.mark.slow
def test_text_is_escaped(small: list[FinishedRun], tmp_path: Path) -> None:
    hostile = f"<img src=x onerror=alert(1)>{MARKUP}"
    results = {**small[0].results, "command": hostile, "overrides": [f"{hostile}={hostile}"]}
    results["config"] = {**small[0].config, hostile: hostile}
    named = replace(small[0], label=hostile, results=results)
    elements = built([named, small[1]], tmp_path / "page.html")
    tags = [tag for tag, _ in elements.found]
    assert "img" not in tags
    assert tags.count("script") == 3  # the data, the chart library and the program
    assert MARKUP not in elements.text
    overview = elements.packed("data")["overview"]
    assert overview["runs"][0]["label"] == hostile


def test_charts_have_the_scores_of_the_frame(
    page: Elements, comparison: Comparison, runs: list[FinishedRun]
) -> None:
    overview = page.packed("data")["overview"]
    assert [run["group"] for run in overview["runs"]] == [0, 0, 1, 1]
    assert [run["cap"] for run in overview["runs"]] == [50] * 4
    assert overview["groups"] == ["RNNencdec-50", "RNNsearch-50"]
    place = {"set": "newstest", "run": runs[2].label, "bucket": "11-20"}
    frame = runs[2].scores.query("set == 'newstest' and score == 'bleu' and `from` == 11")
    for key, subset in (("bleu", "all"), ("bleu_no_unk", "no_unk")):
        [row] = [r for r in overview["buckets"] if {**r, **place, "key": key} == r]
        [wanted] = frame[frame["subset"] == subset].to_dict("records")
        for name in ("from", "to", "value", "low", "high", "sentences"):
            assert row[name] == pytest.approx(wanted[name])
    assert overview["scores"]["nll_per_word"] == {
        **{"title": "NLL per word (nats)", "digits": 3, "higher_is_better": False, "ratio": False}
    }
    pair = {"set": "newstest", "score": "bleu", "a": runs[0].label, "b": runs[2].label}
    [row] = [r for r in overview["differences"] if {**r, **pair, "bucket": "all"} == r]
    [wanted] = comparison.differences.query(
        "set == 'newstest' and score == 'bleu' and bucket == 'all' "
        f"and a == '{runs[0].label}' and b == '{runs[2].label}'"
    ).to_dict("records")
    for name in ("delta", "low", "high", "p_corrected", "sentences"):
        assert row[name] == pytest.approx(wanted[name], abs=1e-6)


def test_page_has_headline_tables_and_commands(page: Elements) -> None:
    assert re.search(r"From 10 to 50 words, .*RNNsearch-50 keeps \d+\xa0%", page.text)
    assert "<b>RNNencdec</b> reads the whole sentence into one fixed vector" in page.text
    assert "python -m nmt.train +experiment=rnnsearch50 seed=2" in page.text
    # A run has a row in three tables (BLEU by length on two test sets; training), and a column in
    # two tables (scores on two test sets).
    for tag, count in (("tr", 3), ('th scope="col"', 2)):
        assert page.text.count(f'<{tag} data-run="RNNsearch-50 seed 2"') == count
    assert "model.scoring._target_" in page.text


@pytest.mark.slow
def test_large_page_omits_sentences_of_all_lengths(
    page: Elements, comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = page.packed("data")
    for row in full["translations"]["newstest"]["rows"][100:110]:
        own = BLEU(tokenize="none", effective_order=True).sentence_score(row["h"][3], [row["r"]])
        assert row["b"][3] == round(own.score, 1)
    for name, key in (("ALIGNMENT", "alignments"), ("TRANSLATION", "translations")):
        room = len(payload.packed(full[key], 6)) // 3
        monkeypatch.setattr(payload, f"MAX_{name}_BYTES", room)
    small = built(comparison, tmp_path / "page.html").packed("data")
    few = small["alignments"]["newstest"]
    assert 1 < len(few) < len(full["alignments"]["newstest"]) / 2
    assert few[-1]["length"] > 3 * few[0]["length"]
    rows = small["translations"]["newstest"]
    assert 50 < len(rows["rows"]) < rows["total"] == 220
    assert {sentence["id"] for sentence in few} <= {row["id"] for row in rows["rows"]}


def test_only_sentences_that_may_fit_are_looked_at(
    comparison: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    aligned, every = payload.fitted_sentences(comparison, 2)
    monkeypatch.setattr(payload, "MOST_TRANSLATIONS", 5)
    _, chosen = payload.fitted_sentences(comparison, 2)
    for name, own in chosen.items():
        assert own["total"] == every[name]["total"] > 5
        also = [row["id"] for row in aligned[name]]
        assert {row["id"] for row in own["rows"]} > {*also}
        assert len(own["rows"]) <= 5 + len(also)
        assert all(row in every[name]["rows"] for row in own["rows"])


def test_score_table_of_few_runs_is_transposed() -> None:
    table = Table("scores", "", pd.DataFrame({"Run": ["a", "b"], "BLEU": [1, 2], "chrF": [3, 4]}))
    frame = turned(table).frame
    assert frame.to_dict("list") == {"Score": ["BLEU", "chrF"], "a": [1, 3], "b": [2, 4]}
    many = replace(table, frame=pd.concat([table.frame] * 3))
    assert turned(many) is many


@pytest.mark.slow
def test_page_of_runs_without_scores_and_of_systems(
    small: list[FinishedRun], tmp_path: Path
) -> None:
    bare = FinishedRun("bare", {"config": {"a": 1}, "train": {"updates": 3}})
    text = built([bare], tmp_path / "bare.html").text
    assert "<p>1 system</p>" in text
    assert "How to reproduce this run" in text
    assert 'href="#significance-section"' not in text
    records = {"mine": small[0].translations("mine")}
    table = small[0].scores.query("set == 'mine'")
    moses = FinishedRun("Moses", {}, records=records, scores=table)
    elements = built([small[0], moses], tmp_path / "p.html")
    assert "2 systems on newstest and mine" in elements.text
    assert "<p>1 system on mine</p>" in built([moses], tmp_path / "s.html").text
    translations = elements.packed("data")["translations"]
    assert translations["mine"]["systems"] == ["RNNencdec-50", "Moses"]
    assert translations["newstest"]["systems"] == ["RNNencdec-50"]


@pytest.mark.slow
def test_models_are_embedded_up_to_the_size_limit(
    small: list[FinishedRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page embeds one model file per group, up to a total size."""
    for seed, run in enumerate(small, 1):
        assert run.folder is not None
        copied = shutil.copytree(run.folder, tmp_path / "runs" / str(seed))
        write_live(drawn_model(run.results["model"]), copied)
    assert small[1].folder is not None
    other = shutil.copytree(small[1].folder, tmp_path / "runs" / "other")
    results = json.loads((other / "results.json").read_text())
    results["config"]["model"]["scoring"]["_target_"] = "mine.Bilinear"
    (other / "results.json").write_text(json.dumps(results))
    comparison = compare_finished(find_runs([tmp_path / "runs"]), resamples=0)
    page = built(comparison, tmp_path / "p.html")
    names = page.packed("data")["live"]["models"]
    assert ["RNNsearch" in name for name in names] == [True, False]
    assert {"live-0", "live-1", "live-program"} <= set(page.scripts)
    assert "worker-src blob:" in page.text
    monkeypatch.setattr(payload, "LIMIT", len(page.scripts["live-0"]) + 100)
    page = built(comparison, tmp_path / "p.html")
    assert page.packed("data")["live"]["models"] == names[:1]
    page = built(comparison, tmp_path / "p.html", PageConfig(live=False))
    assert 'id="live-section"' not in page.text
