import base64
import copy
import json
import re
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nmt.config import EvaluationConfig
from nmt.evaluation.bleu import bleu
from nmt.evaluation.scores import REGISTERED, choose_scores
from nmt.evaluation.summary import summarise
from nmt.report.comparison import SetComparison, compare_set
from nmt.report.finding import find_runs
from nmt.report.page import build_page
from nmt.report.page.overview import overview
from nmt.report.runs import FinishedRun
from nmt.report.tables import lengths_table, scores_table, significance_table, write_tables
from nmt.utils.errors import InputError
from tests.helpers.run_folders import make_run


def bucket(first: int, last: int | None, score: float, sentences: int, mean: float) -> dict:
    return {"from": first, "to": last, "score": score, "sentences": sentences, "mean_length": mean}


def test_significance_covers_every_pair_on_the_set_and_in_each_bucket(
    comparison: SetComparison,
) -> None:
    tested = comparison.significance["bleu"]
    pairs = {(row["a"], row["b"]) for row in tested}
    assert len(pairs) == 6
    buckets = len(comparison.rows("RNNsearch-50 seed 1"))
    assert len(tested) == 6 * (1 + buckets)
    between = [row for row in tested if row["bucket"] == "all"]
    models = {(row["a"], row["b"]): row["p_corrected"] for row in between}
    assert models["RNNencdec-50 seed 1", "RNNsearch-50 seed 1"] < 0.01
    randomised = {(row["a"], row["b"]): row["p_randomised"] for row in between}
    assert randomised["RNNencdec-50 seed 1", "RNNsearch-50 seed 1"] < 0.01
    inside = [row for row in tested if row["bucket"] != "all"]
    assert all(row["p_randomised"] <= row["p_randomised_corrected"] <= 1 for row in inside)
    assert any(row["p_randomised"] != row["p"] for row in tested)


def test_of_many_runs_pairs_and_sentences_are_of_the_best(
    runs: list[FinishedRun], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("nmt.report.groups.MOST_PAIRED", 2)
    found = [compare_set(runs, name, 20) for name in ("newstest", "mine")]
    search = ["RNNsearch-50 seed 1", "RNNsearch-50 seed 2"]  # BLEU is higher with attention
    assert [one.paired for one in found] == [search, search]
    assert {(row["a"], row["b"]) for row in found[0].significance["bleu"]} == {tuple(search)}
    assert [row["run"] for row in scores_table(found[0]).rows] == [run.label for run in runs]
    note = "Of the 4 runs these are the 2 of the highest BLEU"
    assert note in significance_table(found[0]).notes[-1]
    page = build_page(runs, tmp_path / "page.html", comparisons=found).read_text()
    assert page.count(note) == 2 * 3  # a test set; pairs, alignments, translations
    packed = re.search(r'id="translations">([^<]*)', page)
    assert packed is not None
    translations = json.loads(zlib.decompress(base64.b64decode(packed[1])))
    assert translations["newstest"]["systems"] == search


def test_every_score_is_tested_between_the_runs_that_have_it(comparison: SetComparison) -> None:
    found = comparison.significance
    on = {key for key, score in REGISTERED.items() if score.default}
    assert set(found) == on - {"chrf"}  # what takes long is not computed anew
    buckets = len(comparison.rows("RNNsearch-50 seed 1"))
    assert len(found["nll_per_word"]) == 6 * (1 + buckets)
    assert [row["bucket"] for row in found["perplexity"]] == ["all"] * 6
    between = {(row["a"], row["b"]) for row in found["attention_entropy"]}
    assert between == {("RNNsearch-50 seed 1", "RNNsearch-50 seed 2")}
    whole = found["nll_per_sentence"][0]
    assert (whole["a"], whole["b"]) == ("RNNencdec-50 seed 1", "RNNencdec-50 seed 2")
    first, second = (comparison.results[whole[side]]["nll_per_sentence"] for side in "ab")
    assert whole["delta"] == pytest.approx(first["score"] - second["score"], abs=1e-3)


def test_the_differences_of_a_mean_are_those_of_its_sentences(runs: list[FinishedRun]) -> None:
    """Of a mean of one number a sentence the resampled difference is a mean of differences."""
    found = compare_set(runs[1:3], "newstest", 300, choose_scores(["nll_per_sentence"]))
    assert list(found.significance) == ["bleu", "nll_per_sentence"]
    [row] = found.significance["nll_per_sentence"]
    nll = [[r["nll"] for r in run.translations("newstest")] for run in runs[1:3]]
    differences = np.subtract(*nll)
    drawn = np.random.default_rng(12345).integers(150, size=(300, 150))
    expected = np.quantile(differences[drawn].mean(axis=1), [0.025, 0.975])
    assert [row["low"], row["high"]] == pytest.approx(list(expected))
    assert row["delta"] == pytest.approx(differences.mean())


def test_scores_that_results_lack_are_taken_from_the_sentences(runs: list[FinishedRun]) -> None:
    found = compare_set(runs[:2], "newstest", 40, choose_scores(["ter"]))
    label = runs[1].label
    sentences = runs[1].translations("newstest")
    whole = REGISTERED["ter"].table(sentences).sum(axis=0)
    score = found.results[label]["ter"]
    assert score["score"] == pytest.approx(100 * whole[0] / whole[1])
    assert score["low"] < score["score"] < score["high"]
    inside = [r for r in sentences if 11 <= r["length"] <= 20]
    edits, words = REGISTERED["ter"].table(inside).sum(axis=0)
    assert found.rows(label)[1]["ter"]["score"] == pytest.approx(100 * edits / words)
    assert found.known["ter"]["higher_is_better"] is False
    assert {row["bucket"] for row in found.significance["ter"]} >= {"all", "1-10", "61+"}


def test_scores_of_a_section_that_results_lack_are_shown_where_they_are_asked_for(
    runs: list[FinishedRun], tmp_path: Path
) -> None:
    linked = []
    for number, run in enumerate(runs[:2]):
        rows = [dict(row) for row in run.translations("newstest")]
        for row in rows:
            row["alignment_counts"] = [4, 3, 1 + number, 2 + number, 0, 5]
        results = copy.deepcopy(run.results)
        results["test"]["newstest"].pop("alignment", None)
        linked.append(replace(run, results=results, lines={("translations", "newstest"): rows}))
    found = compare_set(linked, "newstest", 40, choose_scores(["alignment_error_rate"]))
    first, second = (found.results[run.label]["alignment"] for run in linked)
    assert first["alignment_error_rate"]["score"] > second["alignment_error_rate"]["score"]
    assert first["sentences"] == len(linked[0].translations("newstest"))
    assert set(found.significance) == {"bleu", "alignment_error_rate"}
    assert "alignment_error_rate" in found.known
    write_tables(linked, [found], tmp_path)
    assert "alignment" not in compare_set(linked, "newstest", 40).results[linked[0].label]


def bucketed(run: FinishedRun, edges: list[int], side: str = "source") -> FinishedRun:
    """The run as it would be with other buckets."""
    rows = [dict(row) for row in run.translations("newstest")]
    for row in rows:
        row["length"] = len(row["reference" if side == "target" else "source"])
    settings = EvaluationConfig(edges=edges, bucket_by=side, resamples=20)
    results = copy.deepcopy(run.results)
    results["config"]["evaluation"] = {"edges": edges}
    old = results["test"]["newstest"]
    new = summarise(rows, settings)
    results["test"]["newstest"] = old | {key: new[key] for key in ("bucket_by", "by_length")}
    return replace(run, results=results, lines={("translations", "newstest"): rows})


@pytest.mark.parametrize("other", [([15, 45], "source"), ([10, 20, 30], "target")])
def test_buckets_are_those_of_the_first_run(tmp_path: Path, other: tuple) -> None:
    for seed in (1, 2):
        make_run(tmp_path / str(seed), seed=seed)
    runs = find_runs([tmp_path]).runs
    first, alike = (bucketed(run, [10, 20, 30]) for run in runs[:2])
    wanted = compare_set([first, alike], "newstest", 20)
    found = compare_set([first, bucketed(runs[1], *other)], "newstest", 20)
    label = runs[1].label
    assert (wanted.recounted, found.recounted) == ([], [label])
    for key in ("from", "to", "sentences", "score", "mean_length"):
        assert [row[key] for row in found.rows(label)] == [row[key] for row in wanted.rows(label)]
    assert found.results[label]["bucket_by"] == "source"
    assert found.significance["bleu"] == wanted.significance["bleu"]
    said = f"By length as the first run's sentences are counted: {label}."
    assert said in scores_table(found).notes
    assert said not in scores_table(wanted).notes


def test_other_statistics_of_a_score_are_refused(runs: list[FinishedRun]) -> None:
    rows = [dict(row) for row in runs[1].translations("newstest")]
    for row in rows:
        row["statistics"] = {"chrf": [1.0, 2.0]}
    other = replace(runs[1], lines={("translations", "newstest"): rows})
    said = rf"^{runs[1].label}: translations/newstest\.jsonl: chrf: 2 statistics a sentence, where"
    with pytest.raises(InputError, match=said):
        compare_set([runs[0], other], "newstest", 20, choose_scores(["chrf"]))


def test_other_buckets_without_sentences_are_refused(runs: list[FinishedRun]) -> None:
    gone = replace(bucketed(runs[1], [15]), lines={("translations", "newstest"): []})
    with pytest.raises(InputError, match=r"its buckets have other evaluation\.edges, or another"):
        compare_set([bucketed(runs[0], [10]), gone], "newstest", 20)


def test_equal_subsets_keep_the_measured_no_unk_scores(
    comparison: SetComparison, runs: list[FinishedRun]
) -> None:
    assert not comparison.no_unk_shared
    assert comparison.no_unk_pairs == 100
    measured = runs[0].results["test"]["newstest"]["bleu"]["no_unk"]
    assert comparison.results[runs[0].label]["bleu"]["no_unk"] == measured


def test_other_subsets_are_compared_on_what_they_share(runs: list[FinishedRun]) -> None:
    rows = [dict(row) for row in runs[1].translations("newstest")]
    for row in rows:
        if row["id"] % 2:
            row["no_unk"] = False
            row.pop("hypothesis_no_unk", None)
            row.pop("bleu_stats_no_unk", None)
    narrow = replace(runs[1], lines={("translations", "newstest"): rows})
    both = compare_set([runs[0], narrow], "newstest", resamples=50)
    assert both.no_unk_shared
    assert both.no_unk_pairs == 50
    shared = [
        row["bleu_stats_no_unk"]
        for row in runs[0].translations("newstest")
        if row["id"] % 3 > 0 and row["id"] % 2 == 0
    ]
    score = both.results[runs[0].label]["bleu"]["no_unk"]
    assert score["sentences"] == 50
    assert score["score"] == pytest.approx(bleu(np.sum(shared, axis=0)))
    assert score["low"] < score["score"] < score["high"]


def without_unknown(run: FinishedRun, known: Callable[[int], bool]) -> FinishedRun:
    """A run whose shortlists cover of its sentences those with a number that is `known`."""
    rows = [dict(row) for row in run.translations("newstest")]
    for row in rows:
        if not known(row["id"]):
            row |= {"no_unk": False, "bleu_stats_no_unk": None}
    results = copy.deepcopy(run.results)
    if not any(row["no_unk"] for row in rows):
        del results["test"]["newstest"]["bleu"]["no_unk"]
    return replace(run, results=results, lines={("translations", "newstest"): rows})


def assert_no_unk_is_empty(found: SetComparison, because: str) -> None:
    assert (found.no_unk_pairs, found.no_unk_shared) == (0, True)
    table = scores_table(found)
    assert [row["bleu_no_unk"] for row in table.rows] == [None, None]
    assert because in table.notes
    for run in found.runs:
        assert {row.get("no_unk") for row in found.rows(run.label)} == {None}


def test_runs_that_share_no_sentence_without_unknown_words_have_no_such_score(
    runs: list[FinishedRun],
) -> None:
    """Figures of different sentences in one column would be compared."""
    apart = [
        without_unknown(run, lambda n, rest=rest: n % 2 == rest)
        for rest, run in enumerate(runs[:2])
    ]
    found = compare_set(apart, "newstest", resamples=0)
    assert_no_unk_is_empty(
        found, "No UNK is empty: no sentence is covered by the shortlists of every run."
    )
    assert (
        apart[0].results["test"]["newstest"]["bleu"]["no_unk"] is not None
    )  # the run keeps its own


def test_a_run_whose_shortlists_cover_no_sentence_leaves_none_to_compare(
    runs: list[FinishedRun],
) -> None:
    empty = without_unknown(runs[1], lambda n: False)
    found = compare_set([runs[0], empty], "newstest", resamples=0)
    assert_no_unk_is_empty(
        found, f"No UNK is empty: the shortlists of {empty.label} cover no sentence."
    )


def test_intervals_are_of_the_runs_own_confidence(runs: list[FinishedRun]) -> None:
    def saying(run: FinishedRun, confidence: float) -> FinishedRun:
        config = {**run.config, "evaluation": {"confidence": confidence}}
        return replace(run, results={**run.results, "config": config})

    rows = [dict(row) for row in runs[1].translations("newstest")]
    for row in rows[::2]:
        row |= {"no_unk": False, "bleu_stats_no_unk": None}
    narrow = replace(runs[1], lines={("translations", "newstest"): rows})
    wide = compare_set([runs[0], narrow], "newstest", resamples=200)
    both = [saying(runs[0], 0.5), saying(narrow, 0.8)]
    found = compare_set(both, "newstest", resamples=200)
    label = runs[0].label
    ends = [one.results[label]["bleu"]["no_unk"] for one in (wide, found)]
    assert ends[0]["high"] - ends[0]["low"] > 2 * (ends[1]["high"] - ends[1]["low"])
    assert found.confidence == {label: 0.5, narrow.label: 0.8}
    assert "50 %/80 % interval" in lengths_table(found).notes[0]
    assert significance_table(found).notes[0].startswith("80 % intervals")
    widths = [
        one.significance["bleu"][0]["high"] - one.significance["bleu"][0]["low"]
        for one in (wide, found)
    ]
    assert 1.3 < widths[0] / widths[1] < 1.8  # 1.96 and 1.28 standard errors either side
    page = overview(both, [found])["sets"]["newstest"]
    assert page["confidence"] == {label: "50 %", narrow.label: "80 %"}
    assert page["tested"] == "80 %"


def test_outside_systems_narrow_no_subset(runs: list[FinishedRun]) -> None:
    rows = [
        {key: value for key, value in row.items() if key != "no_unk"}
        for row in runs[1].translations("newstest")
    ]
    results = {"test": {"newstest": runs[1].results["test"]["newstest"]}}
    outside = FinishedRun("Moses", results, lines={("translations", "newstest"): rows})
    assert compare_set([runs[0], outside], "newstest", resamples=0).no_unk_pairs == 100


def test_runs_without_the_set_are_passed_over(runs: list[FinishedRun]) -> None:
    other = replace(runs[1], results={**runs[1].results, "test": {}})
    alone = compare_set([runs[0], other], "mine", resamples=10)
    assert [run.label for run in alone.runs] == ["RNNencdec-50 seed 1"]
    assert alone.significance == {}
